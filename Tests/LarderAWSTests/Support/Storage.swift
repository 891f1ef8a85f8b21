import Foundation
import Larder
import LarderAWS
import LarderTestSupport

/// Runs `body` with a storage that checks signatures, and a transport of a user who may do everything.
func withStorage<Result>(
    _ configure: (inout S3Transport.Options) -> Void = { _ in },
    _ body: (StorageServer, S3Transport) async throws -> Result
) async throws -> Result {
    try await StorageServer.run { server in
        try await withTransport(to: server, configure) { try await body(server, $0) }
    }
}

/// Runs `body` with a transport to a storage.
func withTransport<Result>(
    to server: StorageServer, region: String = StorageServer.region, secret: String? = nil,
    _ configure: (inout S3Transport.Options) -> Void = { _ in }, _ body: (S3Transport) async throws -> Result
) async throws -> Result {
    var options = S3Transport.Options()
    options.endpoint = server.url
    configure(&options)
    let keys = Credentials.CloudCredentials(
        accessKeyID: server.accessKeyID, secretAccessKey: secret ?? server.secretAccessKey, expires: nil)
    return try await S3Transport.withTransport(
        region: region, credentials: { _ in keys }, options: options, body)
}

extension StorageServer {
    /// A place in its bucket.
    func location(_ key: String) -> ObjectLocation { ObjectLocation(bucket: bucket, key: key) }
}
