import ArgumentParser
import Larder
import LarderCommandLine

struct Plan: Verb {
    static let configuration = CommandConfiguration(
        abstract: "Shows what up would do, step by step, and does nothing.",
        discussion: "The exit status is 3 if there is anything to be done.")

    @OptionGroup var store: StoreOptions
    @OptionGroup var backup: BackupOptions

    func perform(_ output: Output) async throws {
        let store = try MigratedStore(store, output)
        let plan = try MigrationPlan(for: store.status(), backingUpInto: backup.folder(of: store.url))
        try output.result(
            .object([("steps", plan.json)]), text: plan.steps.isEmpty ? "nothing is to be done" : plan.text)
        if !plan.steps.isEmpty { throw Ended(.miss) }
    }
}
