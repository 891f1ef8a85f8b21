import ArgumentParser
import Foundation
import LarderCommandLine
import LarderOperations

struct Transfers: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Shows the files on their way to and from object storage, and works on them.",
        subcommands: [
            List.self, Show.self, Pause.self, Resume.self, Cancel.self, Retry.self, Watch.self, CollectGarbage.self,
        ],
        defaultSubcommand: List.self)
}

extension Transfers {
    struct List: Verb {
        static let configuration = CommandConfiguration(
            abstract: "Lists the transfers that are known, in the order in which they were queued.",
            discussion: """
                One a line: state, id, which way, bytes that have arrived and in all, attempts, object, file, whose it \
                is (its environment and user, or its partition), since when it is queued, and the last failure. All \
                partitions, unless one is named.
                """)
        static let name = "transfers list"

        @OptionGroup var store: StoreOptions
        @OptionGroup var partition: PartitionOptions
        @Option(
            help: ArgumentHelp(
                "Only those in this state: pending, running, paused, failed, cancelling, done or cancelled.",
                valueName: "state"))
        var state: StateName<TransferState>?
        @OptionGroup var limit: LimitOptions

        func perform(_ output: Output) async throws {
            let found = try await store.folder(rowsOf: partition).withOperations(.reading, output) { database in
                let owners = try RowOwners(database, of: partition)
                return try database.transfers.list(states: state.map { [$0.state] })
                    .filter { owners.includes($0.partition) }
                    .map { OwnedRow(row: $0, owner: owners[$0.partition]) }
            }
            try limit.show(found ?? [], as: "transfers", output, json: \.summary, cells: \.cells)
        }
    }

    struct Show: Verb {
        static let configuration = CommandConfiguration(abstract: "Shows one transfer.")
        static let name = "transfers show"

        @OptionGroup var store: StoreOptions
        @Argument(help: ArgumentHelp("The transfer's id.", valueName: "id"), transform: Transfers.id) var id: UUID

        func perform(_ output: Output) async throws {
            let found = try await store.folder().withOperations(.reading, output) { database in
                try database.transfers.find(id).map { transfer in
                    ShownTransfer(
                        transfer: transfer, owner: try RowOwners(database)[transfer.partition],
                        parts: try database.transfers.parts(of: id).count,
                        waiting: try database.mutations.list().filter { $0.transfers.contains(id) }.map(\.id))
                }
            }
            guard let shown = found ?? nil else { throw Failure.unknownTransfer(id) }
            try output.result(shown.json, text: shown.lines)
        }
    }
}

extension Transfers {
    static func id(_ text: String) throws -> UUID {
        guard let id = UUID(uuidString: text) else { throw ValidationError("\(text) is no transfer's id.") }
        return id
    }
}
