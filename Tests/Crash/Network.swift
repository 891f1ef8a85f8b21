#if os(Linux)
import Foundation
import Larder
import Synchronization

/// Takes the network away from a runner, and gives it back: in a network namespace of its own, where it may.
enum Network {
    static func run(in folder: URL) async throws {
        try ip("link", "set", "lo", "up")
        try ip("link", "add", "v0", "type", "veth", "peer", "name", "v1")
        for link in ["v0", "v1"] { try ip("link", "set", link, "up") }
        let network = RouteConnectivity()
        let heard = Heard()
        let observation = network.observe { heard.isConnected.store($0, ordering: .sequentiallyConsistent) }
        defer { observation.stop() }
        say("at first \(network.isConnected)")
        let store = try Store.open(at: folder, schema: try Schema(parsing: Mutations.schema))
        let app = try store.partition(server: Answering())
        var options = MutationRunner.Options()
        options.connectivity = network
        let runner = MutationRunner(app, options: options)
        let work = Task { try await runner.run() }
        try ip("addr", "add", "10.9.8.7/24", "dev", "v0")
        try await until { heard.isConnected.load(ordering: .sequentiallyConsistent) && runner.state == .running }
        say("with an address \(network.isConnected)")
        try ip("addr", "del", "10.9.8.7/24", "dev", "v0")
        try await until { runner.state == .offline }
        say("without it \(network.isConnected)")
        let receipt = try await app.enqueue(
            GraphQLOperation("mutation { rate(recipe: \"1\", stars: 5) { id stars } }"))
        try ip("link", "set", "v0", "down")
        try ip("addr", "add", "10.9.8.7/24", "dev", "v0")
        try ip("link", "set", "v0", "up")
        _ = try await receipt.outcome(within: .seconds(120))
        say("sent \(network.isConnected)")
        work.cancel()
        _ = await work.result
        try store.close()
    }

    private final class Heard: Sendable {
        let isConnected = Atomic(false)
    }

    private struct Answering: GraphQLTransport {
        func send(_ request: GraphQLRequest, within time: Duration) async throws(TransportError)
            -> GraphQLAnswer
        {
            GraphQLAnswer(body: Array(#"{"data":{"rate":{"__typename":"Recipe","id":"1","stars":5}}}"#.utf8))
        }
    }

    private static func until(_ isSo: () -> Bool) async throws {
        let deadline = SuspendingClock.now + .seconds(120)
        while !isSo() {
            guard .now < deadline else { throw CocoaError(.userCancelled) }
            try await Task.sleep(for: .milliseconds(5))
        }
    }

    /// By the shell: Foundation's `Process` needs a loopback that is up.
    private static func ip(_ arguments: String...) throws {
        guard system((["ip"] + arguments).joined(separator: " ")) == 0 else { throw CocoaError(.userCancelled) }
    }
}
#endif
