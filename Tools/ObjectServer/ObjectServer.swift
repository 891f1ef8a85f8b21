package import Foundation
import Larder
package import LarderAWS
import NIOCore
import NIOHTTP1
import NIOPosix

/// A small object storage on the loopback interface, for demonstrations and measurements. It speaks as S3 does, as far
/// as transfers need, and looks at no signatures.
package struct ObjectServer: Sendable {
    package static let region = "eu-west-1"
    package static let bucket = "media"

    package let url: URL
    package let shelf: ObjectShelf
    private let listener: any Channel
    private let group: MultiThreadedEventLoopGroup

    /// Listens on a free port.
    package static func start(keeping: ObjectShelf.Keeping) async throws -> ObjectServer {
        let shelf = ObjectShelf(keeping)
        let group = MultiThreadedEventLoopGroup(numberOfThreads: 2)
        do {
            let listener = try await ServerBootstrap(group: group)
                .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
                .childChannelOption(.tcpOption(.tcp_nodelay), value: 1)
                .childChannelOption(.recvAllocator, value: FixedSizeRecvByteBufferAllocator(capacity: 256 << 10))
                .childChannelInitializer { channel in
                    channel.eventLoop.makeCompletedFuture {
                        try channel.pipeline.syncOperations.configureHTTPServerPipeline()
                        try channel.pipeline.syncOperations.addHandler(ObjectHandler(shelf: shelf))
                    }
                }
                .bind(host: "127.0.0.1", port: 0).get()
            guard let port = listener.localAddress?.port, let url = URL(string: "http://127.0.0.1:\(port)") else {
                throw ChannelError.unknownLocalAddress
            }
            return ObjectServer(url: url, shelf: shelf, listener: listener, group: group)
        } catch {
            try? await group.shutdownGracefully()
            throw error
        }
    }

    package func stop() async throws {
        try await listener.close()
        try await group.shutdownGracefully()
    }

    /// Runs `body` with a way to the server at an address.
    ///
    /// - Parameter smallestPart: In bytes; the server takes any.
    package static func withTransport<Result>(
        to url: URL, smallestPart: Int64 = ObjectLimits.s3.smallestPart, isolation: isolated (any Actor)? = #isolation,
        _ body: (S3Transport) async throws -> Result
    ) async throws -> Result {
        var options = S3Transport.Options()
        options.endpoint = url
        // It knows neither chunks nor checksums; what arrived is compared by its ETag.
        options.payload = .unsigned
        options.limits.smallestPart = smallestPart
        let keys = Credentials.CloudCredentials(
            accessKeyID: "demonstration", secretAccessKey: "nobody looks at it", expires: nil)
        return try await S3Transport.withTransport(
            region: region, credentials: { _ in keys }, options: options, body)
    }
}
