import ArgumentParser
import Foundation
import LarderCommandLine
import LarderOperations

struct Mutations: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Shows the mutations that wait for the server, and works on those that were set aside.",
        subcommands: [List.self, Show.self, Edit.self, Replay.self, Discard.self], defaultSubcommand: List.self)
}

extension Mutations {
    struct List: Verb {
        static let configuration = CommandConfiguration(
            abstract: "Lists the mutations that are not settled, in their order.",
            discussion: "One a line: state, id, place in the order, lane, attempts, operation, and the last failure.")
        static let name = "mutations list"

        @OptionGroup var store: StoreOptions
        @Option(help: ArgumentHelp(
            "Only those in this state: pending, inFlight, acknowledged or deadLetter.", valueName: "state"))
        var state: State?
        @Option(help: ArgumentHelp("At most as many.", valueName: "n"))
        var limit: Int?

        func validate() throws {
            guard limit ?? 0 >= 0 else { throw ValidationError("--limit must not be negative.") }
        }

        func perform(_ output: Output) async throws {
            let limit = min(limit ?? .max, .max - 1)
            var found = try await store.folder().withQueue(.reading, output) { queue in
                // One more than wanted tells whether there are more.
                try queue.list(MutationFilter(states: state.map { [$0.ofQueue] }), limit: limit + 1)
            } ?? []
            let hasMore = found.count > limit
            if hasMore { found.removeLast() }
            if hasMore { output.note("there are more than \(limit)") }
            try output.result(
                .object([("mutations", .array(found.map(\.summary))), ("hasMore", .boolean(hasMore))]),
                text: found.map(\.line).joined(separator: "\n"))
        }
    }

    struct Show: Verb {
        static let configuration = CommandConfiguration(abstract: "Shows one mutation, or how it ended.")
        static let name = "mutations show"

        @OptionGroup var store: StoreOptions
        @Argument(help: ArgumentHelp("The mutation's id.", valueName: "id"), transform: Mutations.id) var id: UUID

        func perform(_ output: Output) async throws {
            let standing = try await store.folder().withQueue(.reading, output) { try $0.find(id) } ?? .unknown
            switch standing {
            case .present(let mutation):
                try output.result(mutation.whole, text: mutation.lines)
            case .settled(let outcome):
                try output.result(outcome.json, text: outcome.line)
            case .unknown: throw Failure.unknownMutation(id)
            }
        }
    }
}

extension Mutations {
    enum State: String, CaseIterable, ExpressibleByArgument {
        case pending, inFlight, acknowledged, deadLetter

        var ofQueue: MutationState {
            switch self {
            case .pending: .pending
            case .inFlight: .inFlight
            case .acknowledged: .acknowledged
            case .deadLetter: .deadLetter
            }
        }
    }

    static func id(_ text: String) throws -> UUID {
        guard let id = UUID(uuidString: text) else { throw ValidationError("\(text) is no mutation's id.") }
        return id
    }
}
