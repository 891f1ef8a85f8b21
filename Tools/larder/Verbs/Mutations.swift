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
            discussion: "One a line: state, id, place in the order, lane, attempts, operation, and the last failure.")
        static let name = "mutations list"

        @OptionGroup var store: StoreOptions
        @Option(
            help: ArgumentHelp(
                "Only those in this state: pending, inFlight, acknowledged or deadLetter.", valueName: "state"))
        var state: StateName<MutationState>?
        @OptionGroup var limit: LimitOptions

        func perform(_ output: Output) async throws {
            let found = try await store.folder().withQueue(.reading, output) { queue in
                try queue.list(MutationFilter(states: state.map { [$0.state] }), limit: limit.sought)
            }
            try limit.show(found ?? [], as: "mutations", output, json: \.summary, line: \.line)
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
    static func id(_ text: String) throws -> UUID {
        guard let id = UUID(uuidString: text) else { throw ValidationError("\(text) is no mutation's id.") }
        return id
    }
}
