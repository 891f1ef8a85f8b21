import ArgumentParser
import Foundation
import LarderCommandLine
import LarderOperations

struct EnvUse: Verb {
    static let configuration = CommandConfiguration(
        commandName: "use", abstract: "Makes an environment the current one.",
        discussion: """
            One transaction: programs that have the store open see either the one or the other, whole. What is left \
            comes back untouched. plan --use shows what it would do. Refused while the variable LARDER_ENV is set: env \
            current and env show would go on naming the other one.
            """)
    static let name = "env use"

    @OptionGroup var store: StoreOptions
    @OptionGroup var lock: LockOptions
    @OptionGroup var work: PendingWorkOptions
    @OptionGroup var user: UserOptions
    @OptionGroup var confirmation: Confirmation
    @ArgumentParser.Argument(help: ArgumentHelp("Its name.", valueName: "name"))
    var environment: String

    func perform(_ output: Output) async throws {
        let store = try MigratedStore(store, timeout: lock.duration(), output)
        try store.refuseWhereVariableDecides()
        if work.choice == .discard { try store.requireConfirmed(confirmation, to: "discard its mutations", output) }
        let report = try await store.withLock(for: "env use") { _ in
            try await store.withDatabase(.writing) { database in
                try database.environments.enterNow(
                    user.destination(environment), leaving: work.choice, now: Date())
            }
        }
        output.note("environment \(environment)")
        if let decided = try DecidedEnvironment.find(flag: nil), decided.name != environment {
            output.note("\(decided.origin.text) says \(decided.name) to the command line")
        }
        try output.result(.object([("switch", report.json)]), text: report.text)
    }
}

struct EnvNone: Verb {
    static let configuration = CommandConfiguration(
        commandName: "none", abstract: "Leaves the current environment, and enters none.")
    static let name = "env none"

    @OptionGroup var store: StoreOptions
    @OptionGroup var lock: LockOptions
    @OptionGroup var work: PendingWorkOptions
    @OptionGroup var confirmation: Confirmation

    func validate() throws {
        guard !work.carry else { throw ValidationError("There is nowhere to carry mutations to.") }
    }

    func perform(_ output: Output) async throws {
        let store = try MigratedStore(store, timeout: lock.duration(), output)
        try store.refuseWhereVariableDecides()
        if work.choice == .discard { try store.requireConfirmed(confirmation, to: "discard its mutations", output) }
        let report = try await store.withLock(for: "env none") { _ in
            try await store.withDatabase(.writing) { database in
                try await database.environments.leave(work.choice, now: Date())
            }
        }
        try output.result(.object([("switch", report.json)]), text: report.text)
    }
}

extension MigratedStore {
    fileprivate func refuseWhereVariableDecides() throws(Failure) {
        if let name = DecidedEnvironment.saidByVariable {
            throw Failure(
                .decidedElsewhere, .refused,
                "The variable \(DecidedEnvironment.variable) says \(name), and env current would go on saying so; "
                    + "unset it first",
                details: [("environment", .string(name))])
        }
    }
}
