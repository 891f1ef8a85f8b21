import ArgumentParser
import Foundation
import LarderCommandLine
import LarderOperations

/// A verb that works on one mutation which was set aside.
protocol MutationChange: Verb {
    /// What the verb is called after `mutations`, and in `did` of its result.
    static var verb: String { get }
    /// The same as something that was done.
    static var done: String { get }
    /// What is done with `--write` only.
    static var purpose: String { get }

    var target: MutationOptions { get }

    /// The change to make, once all that the arguments name has been read.
    ///
    /// - Returns: Gives the mutations that were set aside for it; nil of a verb that sets none aside.
    func change() throws -> (MutationQueue) async throws -> [UUID]?
}

/// What all of them take.
struct MutationOptions: ParsableArguments {
    @OptionGroup var store: StoreOptions
    @OptionGroup var permission: WritePermission
    @Argument(help: ArgumentHelp("The mutation's id.", valueName: "id"), transform: Mutations.id) var id: UUID
}

extension MutationChange {
    static var name: String { "mutations \(verb)" }
    var store: StoreOptions { target.store }

    func perform(_ output: Output) async throws {
        try target.permission.require(for: Self.purpose)
        let change = try change()
        let others = try await store.folder().requireQueue(output, change)
        let id = target.id.text
        try output.result(
            .object(
                [("id", .string(id)), ("did", .string(Self.verb))]
                    + (others.map { [("setAside", .strings($0.map(\.text)))] } ?? [])),
            text: "\(Self.done) \(id)" + (others ?? []).map { "\nset aside \($0.text)" }.joined())
    }
}

extension Mutations {
    struct Edit: MutationChange {
        static let configuration = CommandConfiguration(
            abstract: "Changes the variables of a mutation that was set aside. Wants --write.",
            discussion: """
                The variables must be a JSON object. Whether they fit the operation and the schema is not checked \
                here: a server that refuses them makes the mutation be set aside again.
                """)
        static let verb = "edit", done = "edited", purpose = "changing what is sent"

        @OptionGroup var target: MutationOptions
        @Option(help: ArgumentHelp("The new variables: a file with a JSON object.", valueName: "file"))
        var variables: String

        func change() throws -> (MutationQueue) async throws -> [UUID]? {
            let text = try InputFile(role: "the variables", path: variables).bytes()
            return { queue in
                try await queue.edit(target.id, Revision(variables: text))
                return nil
            }
        }
    }

    struct Replay: MutationChange {
        static let configuration = CommandConfiguration(
            abstract: "Makes a mutation that was set aside pending again, at its old place. Wants --write.")
        static let verb = "replay", done = "replayed", purpose = "sending it again"

        @OptionGroup var target: MutationOptions

        func change() -> (MutationQueue) async throws -> [UUID]? {
            { queue in
                try await queue.replay(target.id, now: Date())
                return nil
            }
        }
    }

    struct Discard: MutationChange {
        static let configuration = CommandConfiguration(
            abstract: "Gives up a mutation that was set aside. Wants --write.")
        static let verb = "discard", done = "discarded", purpose = "giving it up"

        @OptionGroup var target: MutationOptions
        @Option(
            help: ArgumentHelp(
                "What becomes of the mutations that depend on it: setAside, or release them from waiting for it.",
                valueName: "how"))
        var dependents: Dependents = .setAside

        func change() -> (MutationQueue) async throws -> [UUID]? {
            { queue in
                try await queue.discard(
                    target.id,
                    dependents: dependents == .release
                        ? .release : .setAside(reason: "the mutation that it depends on was discarded"),
                    now: Date())
            }
        }
    }

    enum Dependents: String, CaseIterable, ExpressibleByArgument { case setAside, release }
}
