package import Foundation
import LarderGraphQL
import NIOCore
import NIOHTTP1
import NIOPosix
import Synchronization

/// A small GraphQL server over a data set of its own, for demonstrations and tests: recipes with authors, steps,
/// comments and ingredients. It listens on the loopback interface and keeps everything in memory.
///
///     let server = try await RecipeServer.start()
///     // … server.url, server.requestCount …
///     try await server.stop()
package final class RecipeServer: Sendable {
    /// What the server holds and how it behaves.
    package struct Configuration: Sendable {
        /// The same seed gives the same data on every machine.
        package var seed: UInt64 = 2_024
        package var recipes = 1_000
        package var authors = 120
        /// 0 takes a free port.
        package var port = 0
        /// How long each answer is held back.
        package var latency: Duration = .zero

        package init() {}
    }

    /// The schema that it serves, in the schema definition language.
    package static var schema: String { recipeSchema }

    /// The header by which a mutation says its key; one that took effect does not take effect again under the same key.
    package static let idempotencyHeader = "Idempotency-Key"

    /// Where it takes operations, by POST and, for queries, by GET.
    package let url: URL
    private let port: Int
    private let service: RecipeService
    private let listening: Mutex<Listening?>

    private struct Listening {
        var listener: any Channel
        var group: MultiThreadedEventLoopGroup
    }

    private init(url: URL, port: Int, service: RecipeService, listening: Listening) {
        self.url = url
        self.port = port
        self.service = service
        self.listening = Mutex(listening)
    }

    /// Makes the data and begins to listen on 127.0.0.1.
    package static func start(_ configuration: Configuration = Configuration()) async throws -> RecipeServer {
        let service = try RecipeService(configuration)
        let listening = try await listen(on: configuration.port, service)
        guard let port = listening.listener.localAddress?.port,
            let url = URL(string: "http://127.0.0.1:\(port)/graphql")
        else {
            try? await listening.group.shutdownGracefully()
            throw ChannelError.unknownLocalAddress
        }
        return RecipeServer(url: url, port: port, service: service, listening: listening)
    }

    private static func listen(on port: Int, _ service: RecipeService) async throws -> Listening {
        let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
        do {
            let listener = try await ServerBootstrap(group: group)
                .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
                .childChannelOption(.tcpOption(.tcp_nodelay), value: 1)
                .childChannelInitializer { channel in
                    channel.eventLoop.makeCompletedFuture {
                        try channel.pipeline.syncOperations.configureHTTPServerPipeline()
                        try channel.pipeline.syncOperations.addHandler(RecipeHandler(service: service))
                    }
                }
                .bind(host: "127.0.0.1", port: port).get()
            return Listening(listener: listener, group: group)
        } catch {
            try? await group.shutdownGracefully()
            throw error
        }
    }

    /// How many operations have been received.
    package var requestCount: Int { service.requestCount }

    /// How many mutations have been received, repeats and refused ones included.
    package var mutationCount: Int { service.mutationCount }

    /// How many mutations have had an effect.
    package var effectCount: Int { service.effectCount }

    /// How many objects with an id the data holds.
    package var objectCount: Int { service.objectCount }

    /// How long each answer is held back; for requests to come.
    package var latency: Duration {
        get { service.latency }
        set { service.latency = newValue }
    }

    /// Stops listening and closes all connections. Stopping twice does nothing.
    package func stop() async throws {
        // A loop that has been shut down would leave what is asked of it unanswered.
        guard
            let ending = listening.withLock({ listening in
                defer { listening = nil }
                return listening
            })
        else { return }
        try await ending.listener.close()
        try await ending.group.shutdownGracefully()
    }

    /// Listens again after it has stopped, at the same address, with what it holds and has counted. The caller lets no
    /// other task stop or start it meanwhile.
    package func startAgain() async throws {
        guard listening.withLock({ $0 == nil }) else { return }
        let again = try await Self.listen(on: port, service)
        listening.withLock { $0 = again }
    }
}
