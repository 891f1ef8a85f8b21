import Foundation
import Larder
import LarderAWS
import LarderTestSupport

/// The storage of all tests of a run, which ends with it: it takes seconds to start.
private let sharedStorage = Task { try await StorageServer.start() }

/// Runs `body` with a storage that checks signatures, and a transport of a user who may do everything. Other tests work
/// there too: under other keys.
func withStorage<Result>(
    _ configure: (inout S3Transport.Options) -> Void = { _ in },
    _ body: (StorageServer, S3Transport) async throws -> Result
) async throws -> Result {
    let server = try await sharedStorage.value
    return try await withTransport(to: server, configure) { try await body(server, $0) }
}

/// Runs `body` with a transport to a storage.
func withTransport<Result>(
    to server: StorageServer, region: String = StorageServer.region, accessKeyID: String? = nil, secret: String? = nil,
    _ configure: (inout S3Transport.Options) -> Void = { _ in }, _ body: (S3Transport) async throws -> Result
) async throws -> Result {
    var options = S3Transport.Options()
    options.endpoint = server.url
    configure(&options)
    let keys = Credentials.CloudCredentials(
        accessKeyID: accessKeyID ?? server.accessKeyID, secretAccessKey: secret ?? server.secretAccessKey, expires: nil)
    return try await S3Transport.withTransport(
        region: region, credentials: { _ in keys }, options: options, body)
}

extension StorageServer {
    /// A place in its bucket that no other test uses.
    func location(_ key: String = #function) -> ObjectLocation {
        ObjectLocation(bucket: bucket, key: "\(UUID().uuidString)/\(key)")
    }
}
