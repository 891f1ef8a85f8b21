package import Foundation

/// The object storage of `Tests/Server`, which is not ours and checks signatures, as a child process on the loopback
/// interface.
///
/// Tests that use it are enabled where `Tools/test` has made its Python:
/// `@Test(.enabled(if: StorageServer.isAvailable, "\(StorageServer.requirement)"))`.
package struct StorageServer: Sendable {
    /// Why a test that needs the storage is skipped.
    package static let requirement =
        "needs LARDER_TEST_PYTHON, a Python with Tests/Server/requirements-storage.txt; "
        + "run Tools/test, which makes one"

    package static var isAvailable: Bool { ServerProcess.python != nil }

    /// The region of `bucket`.
    package static let region = "eu-west-1"

    /// Where it is: `http://127.0.0.1:PORT`.
    package let url: URL
    /// A bucket that is empty at first.
    package let bucket = "photos"
    /// The keys of a user who may do everything.
    package let accessKeyID: String
    package let secretAccessKey: String
    private let process: ServerProcess

    /// Runs `body` with a storage, which has ended when this returns or throws.
    ///
    /// - Parameter smallestPart: In bytes: the smallest part but the last that it takes.
    package static func run<Result>(
        smallestPart: Int = 1 << 10, startingWithin timeout: Duration = .seconds(60),
        _ body: (StorageServer) async throws -> Result
    ) async throws -> Result {
        let server = try await start(smallestPart: smallestPart, within: timeout)
        return try await withStarted(server, stop: { await $0.stop() }, body)
    }

    /// Starts a storage and waits until it listens. To be stopped; it ends with this process in any case.
    package static func start(
        smallestPart: Int = 1 << 10, within timeout: Duration = .seconds(60)
    ) async throws -> StorageServer {
        let process = try await ServerProcess.start(
            "storage.py", ["photos@\(region)"], environment: ["S3_UPLOAD_PART_MIN_SIZE": String(smallestPart)],
            within: timeout)
        guard process.words.count == 3, let url = URL(string: "http://127.0.0.1:\(process.words[0])") else {
            await process.stop()
            throw ServerProcess.DidNotStart(description: "The storage did not say its port and keys")
        }
        return StorageServer(
            url: url, accessKeyID: process.words[1], secretAccessKey: process.words[2], process: process)
    }

    /// Ends the storage and waits for it. Stopping twice does nothing.
    package func stop() async { await process.stop() }

    /// Its process.
    package var identifier: Int32 { get async { await process.identifier } }
}
