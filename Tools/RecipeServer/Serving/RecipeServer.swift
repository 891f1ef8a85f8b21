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

    /// Where it takes operations, by POST and, for queries, by GET.
    package let url: URL
    private let service: RecipeService
    private let listener: any Channel
    private let group: MultiThreadedEventLoopGroup
    private let isStopped = Mutex(false)

    private init(url: URL, service: RecipeService, listener: any Channel, group: MultiThreadedEventLoopGroup) {
        self.url = url
        self.service = service
        self.listener = listener
        self.group = group
    }

    /// Makes the data and begins to listen on 127.0.0.1.
    package static func start(_ configuration: Configuration = Configuration()) async throws -> RecipeServer {
        let service = try RecipeService(configuration)
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
                .bind(host: "127.0.0.1", port: configuration.port).get()
            guard let port = listener.localAddress?.port, let url = URL(string: "http://127.0.0.1:\(port)/graphql")
            else { throw ChannelError.unknownLocalAddress }
            return RecipeServer(url: url, service: service, listener: listener, group: group)
        } catch {
            try? await group.shutdownGracefully()
            throw error
        }
    }

    /// How many operations have been received.
    package var requestCount: Int { service.requestCount }

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
        let isFirst = isStopped.withLock { isStopped in
            defer { isStopped = true }
            return !isStopped
        }
        guard isFirst else { return }
        try await listener.close()
        try await group.shutdownGracefully()
    }
}
