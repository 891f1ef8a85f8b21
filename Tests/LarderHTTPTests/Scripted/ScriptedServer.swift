import Foundation
import NIOCore
import NIOHTTP1
import NIOPosix
import Synchronization
import Testing

/// An HTTP server on the loopback interface that does with each request what a test says, and keeps what it saw.
final class ScriptedServer: Sendable {
    typealias Script = @Sendable (Received) -> Reply

    let url: URL
    private let log: ServerLog
    private let channel: any Channel

    var requests: [Received] { log.seen.withLock { $0.requests } }

    private init(url: URL, log: ServerLog, channel: any Channel) {
        self.url = url
        self.log = log
        self.channel = channel
    }

    /// Runs `body` with a server that follows `script`.
    static func run<Result>(
        _ script: @escaping Script, _ body: (ScriptedServer) async throws -> Result
    ) async throws -> Result {
        let log = ServerLog()
        let channel = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
            .childChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    try channel.pipeline.syncOperations.configureHTTPServerPipeline(withPipeliningAssistance: false)
                    try channel.pipeline.syncOperations.addHandler(ScriptedHandler(script: script, log: log))
                }
            }
            .bind(host: "127.0.0.1", port: 0).get()
        let port = try #require(channel.localAddress?.port)
        let url = try #require(URL(string: "http://127.0.0.1:\(port)/graphql"))
        let outcome: Swift.Result<Result, any Error>
        do {
            outcome = .success(try await body(ScriptedServer(url: url, log: log, channel: channel)))
        } catch {
            outcome = .failure(error)
        }
        try await channel.close()
        return try outcome.get()
    }

    /// Waits until what the server saw is as asked; fails the test if it does not come to that.
    func waitUntil(
        _ what: Comment, sourceLocation: SourceLocation = #_sourceLocation, _ isSo: (ServerLog.Seen) -> Bool
    ) async throws {
        try await LarderHTTPTests.waitUntil(what, sourceLocation: sourceLocation) { isSo(log.seen.withLock { $0 }) }
    }
}

/// What a scripted server saw.
final class ServerLog: Sendable {
    struct Seen: Sendable {
        var requests: [Received] = []
        /// Connections that the client closed while one of its requests had no whole reply.
        var exchangesBroken = 0
    }

    let seen = Mutex(Seen())
}
