import ArgumentParser
import Foundation
import LarderCommandLine
import LarderOperations

/// A verb that works on mutations which were set aside.
protocol MutationChange: RowChange where State == MutationState {}

extension MutationChange {
    static var row: String { "mutation" }
    static var states: Set<MutationState> { [.deadLetter] }
    static func unknown(_ id: UUID) -> Failure { .unknownMutation(id) }

    static func ids(
        _ database: OperationsDatabase, in states: Set<MutationState>, of owners: RowOwners
    ) throws -> [UUID] {
        try database.mutations.list(MutationFilter(states: states)).filter { owners.includes($0.partition) }.map(\.id)
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

        @OptionGroup var target: RowOptions<MutationState>
        @Option(help: ArgumentHelp("The new variables: a file with a JSON object.", valueName: "file"))
        var variables: String

        func validate() throws {
            guard !target.all else { throw ValidationError("Variables are those of one mutation; name its id.") }
        }

        func change() throws -> (UUID, OperationsDatabase) async throws -> [UUID]? {
            let text = try InputFile(role: "the variables", path: variables).bytes()
            return { id, database in
                try await database.mutations.edit(id, Revision(variables: text))
                return nil
            }
        }
    }

    struct Replay: MutationChange {
        static let configuration = CommandConfiguration(
            abstract: "Makes mutations that were set aside pending again, at their old places. Wants --write.")
        static let verb = "replay", done = "replayed", purpose = "sending it again"

        @OptionGroup var target: RowOptions<MutationState>

        func change() -> (UUID, OperationsDatabase) async throws -> [UUID]? {
            { id, database in
                try await database.mutations.replay(id, now: Date())
                return nil
            }
        }
    }

    struct Discard: MutationChange {
        static let configuration = CommandConfiguration(
            abstract: "Gives up mutations that were set aside. Wants --write.")
        static let verb = "discard", done = "discarded", purpose = "giving it up"

        @OptionGroup var target: RowOptions<MutationState>
        @Option(
            help: ArgumentHelp(
                "What becomes of the mutations that depend on it: setAside, or release them from waiting for it.",
                valueName: "how"))
        var dependents: Dependents = .setAside

        func change() -> (UUID, OperationsDatabase) async throws -> [UUID]? {
            { id, database in
                try await database.mutations.discard(
                    id,
                    dependents: dependents == .release
                        ? .release : .setAside(reason: "the mutation that it depends on was discarded"),
                    now: Date())
            }
        }
    }

    enum Dependents: String, CaseIterable, ExpressibleByArgument { case setAside, release }
}
