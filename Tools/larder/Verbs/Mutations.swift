import ArgumentParser
import Foundation
import LarderCommandLine
import LarderOperations

struct Mutations: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Shows the mutations that wait for the server, and works on the ones that were set aside.",
        subcommands: [List.self, Show.self, Edit.self, Replay.self, Discard.self], defaultSubcommand: List.self)
}

extension Mutations {
    struct List: Verb {
        static let configuration = CommandConfiguration(
            abstract: "Lists the mutations that are not settled, in their order.",
            discussion: """
                One a line: state, id, place in the order, lane, attempts, operation, whose it is (its environment and \
                user, or its partition), since when it is queued, and the last failure. All partitions, unless one is \
                named.
                """)
        static let name = "mutations list"

        @OptionGroup var store: StoreOptions
        @OptionGroup var partition: PartitionOptions
        @Option(
            help: ArgumentHelp(
                "Only those in this state: pending, inFlight, acknowledged or deadLetter.", valueName: "state"))
        var state: StateName<MutationState>?
        @OptionGroup var limit: LimitOptions

        func perform(_ output: Output) async throws {
            let found = try await store.folder(rowsOf: partition).withOperations(.reading, output) { database in
                let owners = try RowOwners(database, of: partition)
                let limit = owners.isFiltered ? .max : limit.sought
                return try database.mutations.list(MutationFilter(states: state.map { [$0.state] }), limit: limit)
                    .filter { owners.includes($0.partition) }.prefix(self.limit.sought)
                    .map { OwnedRow(row: $0, owner: owners[$0.partition]) }
            }
            try limit.show(found ?? [], as: "mutations", output, json: \.summary, cells: \.cells)
        }
    }

    struct Show: Verb {
        static let configuration = CommandConfiguration(abstract: "Shows one mutation, or how it ended.")
        static let name = "mutations show"

        @OptionGroup var store: StoreOptions
        @Argument(help: ArgumentHelp("The mutation's id.", valueName: "id"), transform: Mutations.id) var id: UUID

        func perform(_ output: Output) async throws {
            let found = try await store.folder().withOperations(.reading, output) { database in
                (try database.mutations.find(id), try RowOwners(database))
            }
            guard let (standing, owners) = found else { throw Failure.unknownMutation(id) }
            switch standing {
            case .present(let mutation):
                let row = OwnedRow(row: mutation, owner: owners[mutation.partition])
                try output.result(row.whole, text: row.lines)
            case .settled(let outcome):
                try output.result(
                    .object(outcome.members + owners[outcome.partition].members), text: outcome.line)
            case .unknown: throw Failure.unknownMutation(id)
            }
        }
    }
}

extension Mutations {
    static func id(_ text: String) throws -> UUID {
        guard let id = UUID(uuidString: text) else { throw ValidationError("\(text) is no mutation's id.") }
        return id
    }
}
