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
                One a line: state, id, which way, bytes that have arrived and in all, attempts, object, file, and the \
                last failure.
                """)
        static let name = "transfers list"

        @OptionGroup var store: StoreOptions
        @Option(help: ArgumentHelp(
            "Only those in this state: pending, running, paused, failed, cancelling, done or cancelled.",
            valueName: "state"))
        var state: State?
        @Option(help: ArgumentHelp("At most as many.", valueName: "n"))
        var limit: Int?

        func validate() throws {
            guard limit ?? 0 >= 0 else { throw ValidationError("--limit must not be negative.") }
        }

        func perform(_ output: Output) async throws {
            let found = try await store.folder().withTransfers(.reading, output) { transfers in
                try transfers.list(states: state.map { [$0.stored] })
            } ?? []
            let shown = Array(found.prefix(limit ?? .max))
            let hasMore = shown.count < found.count
            if hasMore { output.note("there are more than \(shown.count)") }
            try output.result(
                .object([("transfers", .array(shown.map(\.summary))), ("hasMore", .boolean(hasMore))]),
                text: shown.map(\.line).joined(separator: "\n"))
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
                        transfer: transfer, parts: try database.transfers.parts(of: id).count,
                        waiting: try database.mutations.list().filter { $0.transfers.contains(id) }.map(\.id))
                }
            }
            guard let shown = found ?? nil else { throw Failure.unknownTransfer(id) }
            try output.result(shown.json, text: shown.lines)
        }
    }
}

extension Transfers {
    enum State: String, CaseIterable, ExpressibleByArgument {
        case pending, running, paused, failed, cancelling, done, cancelled

        var stored: TransferState {
            switch self {
            case .pending: .pending
            case .running: .running
            case .paused: .paused
            case .failed: .failed
            case .cancelling: .cancelling
            case .done: .done
            case .cancelled: .cancelled
            }
        }
    }

    static func id(_ text: String) throws -> UUID {
        guard let id = UUID(uuidString: text) else { throw ValidationError("\(text) is no transfer's id.") }
        return id
    }
}
