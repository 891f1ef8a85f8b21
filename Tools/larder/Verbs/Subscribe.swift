import ArgumentParser
import Foundation
import Larder
import LarderCommandLine

struct Subscribe: Verb {
    static let configuration = CommandConfiguration(
        abstract: "Subscribes to a server, stores each event, and prints it.",
        discussion: """
            Prints one line for each event and for each state of the subscription, until it ends, is interrupted, or \
            --count events have come. With --catch-up, what was missed is fetched whenever the subscription has begun. \
            Events come over a WebSocket: by the protocol graphql-transport-ws, or by AppSync's with --auth.
            """)

    @OptionGroup var store: StoreOptions
    @OptionGroup var partition: PartitionOptions
    @OptionGroup var schema: SchemaOptions
    @OptionGroup var operation: OperationOptions
    @OptionGroup var server: ServerOptions
    @Option(
        name: .customLong("catch-up"),
        help: ArgumentHelp("A GraphQL document with the query that fetches what was missed.", valueName: "file"))
    var catchUp: String?
    @Option(help: ArgumentHelp("End after so many events.", valueName: "n"))
    var count: Int?

    func validate() throws {
        guard count ?? 1 > 0 else { throw ValidationError("--count must be at least 1.") }
    }

    func perform(_ output: Output) async throws {
        let (folder, schema, operation) = (try store.folder(partition), try schema.texts(), try operation.value())
        var options = SubscriptionOptions()
        if let catchUp {
            options.catchUp = GraphQLOperation(try InputFile(role: "the query that catches up", path: catchUp).text())
        }
        let interruption = Interruption()
        try await server.withTransport { transport in
            try await folder.withPartition(
                .writing, schema: schema, asking: (operation, .subscription), transport: transport, output
            ) { partition in
                let subscription = try await partition.subscribe(operation, options: options)
                try await withThrowingTaskGroup(of: Void.self) { group in
                    group.addTask { [count] in try await Self.read(subscription, count, output) }
                    group.addTask { await interruption.wait() }
                    defer { group.cancelAll() }
                    try await group.next()
                }
            }
        }
    }

    private static func read(_ subscription: Subscription, _ count: Int?, _ output: Output) async throws {
        var told = 0
        for await event in subscription {
            switch event {
            case .data(let response):
                try output.result(
                    .object([
                        ("event", .string("data")), ("data", .raw(response.json)),
                        ("errors", .array(response.errors.map(JSONText.init))),
                    ]), response: response.envelope)
                told += 1
                if told == count { return }
            case .missed(let number):
                try output.result(
                    .object([("event", .string("missed")), ("missed", .int(number))]), text: "missed \(number)")
            case .state(let state):
                try output.result(state.result, text: Output.oneLine(state.text))
                if state.phase == .ended, let error = state.error { throw error }
            }
        }
    }
}

extension SubscriptionState {
    fileprivate var result: JSONText {
        .object([
            ("event", .string("state")), ("phase", .string(phase.name)),
            ("staleSince", staleSince.map { .string($0.text) } ?? .null),
            ("code", error.map { .string($0.code.rawValue) } ?? .null),
            ("message", error.map { .string($0.message) } ?? .null),
        ])
    }

    fileprivate var text: String {
        phase.name + (staleSince.map { ", stale since \($0.shown)" } ?? "")
            + (error.map { ": \($0.message) [\($0.code.rawValue)]" } ?? "")
    }
}

extension SubscriptionState.Phase {
    fileprivate var name: String {
        switch self {
        case .connecting: "connecting"
        case .catchingUp: "catchingUp"
        case .live: "live"
        case .ended: "ended"
        }
    }
}
