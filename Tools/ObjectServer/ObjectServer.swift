import Foundation
import Larder
import LarderAWS
import NIOCore
import NIOHTTP1
import NIOPosix

/// A small object storage of the demonstration's own, in this process, on the loopback interface. It speaks as S3 does,
/// as far as transfers need, and looks at no signatures.
struct ObjectStorage: Sendable {
    static let region = "eu-west-1"
    static let bucket = "media"

    let url: URL
    let shelf: ObjectShelf
    private let listener: any Channel
    private let group: MultiThreadedEventLoopGroup

    /// - Parameter folder: Of the objects' bytes; it is there, and empty.
    static func start(in folder: URL) async throws -> ObjectStorage {
        let shelf = ObjectShelf(in: folder)
        let group = MultiThreadedEventLoopGroup(numberOfThreads: 2)
        do {
            let listener = try await ServerBootstrap(group: group)
                .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
                .childChannelOption(.tcpOption(.tcp_nodelay), value: 1)
                .childChannelInitializer { channel in
                    channel.eventLoop.makeCompletedFuture {
                        try channel.pipeline.syncOperations.configureHTTPServerPipeline()
                        try channel.pipeline.syncOperations.addHandler(ObjectStorageHandler(shelf: shelf))
                    }
                }
                .bind(host: "127.0.0.1", port: 0).get()
            guard let port = listener.localAddress?.port, let url = URL(string: "http://127.0.0.1:\(port)") else {
                throw ChannelError.unknownLocalAddress
            }
            return ObjectStorage(url: url, shelf: shelf, listener: listener, group: group)
        } catch {
            try? await group.shutdownGracefully()
            throw error
        }
    }

    func stop() async throws {
        try await listener.close()
        try await group.shutdownGracefully()
    }

    /// Runs `body` with a way to the storage at an address.
    static func withTransport<Result>(
        to url: URL, isolation: isolated (any Actor)? = #isolation, _ body: (S3Transport) async throws -> Result
    ) async throws -> Result {
        var options = S3Transport.Options()
        options.endpoint = url
        // It knows neither chunks nor checksums; what arrived is compared by its MD5.
        options.payload = .unsigned
        let keys = Credentials.CloudCredentials(
            accessKeyID: "demonstration", secretAccessKey: "nobody looks at it", expires: nil)
        return try await S3Transport.withTransport(
            region: region, credentials: { _ in keys }, options: options, body)
    }
}
