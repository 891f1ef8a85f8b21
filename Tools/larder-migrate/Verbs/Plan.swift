import ArgumentParser
import Foundation
import Larder
import LarderCommandLine
import LarderOperations

struct Plan: Verb {
    static let configuration = CommandConfiguration(
        abstract: "Shows what up would do, step by step, or what env use would do, and does nothing.",
        discussion: """
            With --use, a switch is worked out by making it and taking it back. The exit status is 3 if there is \
            anything to be done.
            """)

    @OptionGroup var store: StoreOptions
    @OptionGroup var backup: BackupOptions
    @Option(help: ArgumentHelp("Shows what env use of this environment would do instead.", valueName: "name"))
    var use: String?
    @OptionGroup var work: PendingWorkOptions
    @OptionGroup var user: UserOptions

    func perform(_ output: Output) async throws {
        let store = try MigratedStore(store, output)
        if let use {
            let report = try await store.withDatabase(.writing) { database in
                try database.environments.rehearse(user.destination(use), leaving: work.choice, now: Date())
            }
            try output.result(.object([("switch", report.json)]), text: report.text)
            if report.isSwitch {
                throw Ended(.miss, hint: "'larder-migrate env use \(Output.oneLine(use))' does it")
            }
            return
        }
        let plan = try MigrationPlan(for: store.status(), backingUpInto: backup.folder(of: store.url))
        try output.result(
            .object([("steps", plan.json)]), text: plan.steps.isEmpty ? "nothing is to be done" : plan.text)
        if !plan.steps.isEmpty { throw Ended(.miss, hint: "'larder-migrate up' takes the steps") }
    }
}
