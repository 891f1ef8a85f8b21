import Foundation
import Larder
import LarderTestSupport
import Testing

/// A store with a file, and the runner's options of these tests.
struct TransferBench {
    static let bytes = randomBytes(3000, seed: 21)

    let folder: URL
    let app: Partition
    let source: URL
    var copy: URL { folder.appending(path: "copy") }

    static func run(_ body: (TransferBench) async throws -> Void) async throws {
        try await withTemporaryFolder { folder in
            let store = try Store.open(
                at: folder.appending(path: "store"), schema: try Schema(parsing: "type Query { nothing: Int }"))
            let source = folder.appending(path: "source")
            try Data(bytes).write(to: source)
            try await body(TransferBench(folder: folder, app: try store.partition(), source: source))
            try store.close()
        }
    }

    var options: TransferRunner.Options {
        var options = TransferRunner.Options()
        options.multipartThreshold = 4 << 10
        options.partSize = 1024
        options.connectionsPerHost = 2
        options.maximumFaults = 3
        options.backoff = Backoff(first: .milliseconds(2), cap: .milliseconds(10))
        return options
    }

    func runner(_ storage: any ObjectTransport) -> TransferRunner {
        TransferRunner(app, storage: storage, options: options)
    }

    /// Expects that a transfer has failed for this reason, and that nothing is left of it.
    func expectFailed(
        _ transfer: Transfer, _ code: ObjectError.Code, sourceLocation: SourceLocation = #_sourceLocation
    ) async throws {
        let error = await #expect(throws: LarderError.self, sourceLocation: sourceLocation) {
            try await transfer.finished(within: .zero)
        }
        #expect(error?.code.rawValue == code.rawValue, "\(error?.message ?? "")", sourceLocation: sourceLocation)
        #expect(!FileManager.default.fileExists(atPath: copy.path), sourceLocation: sourceLocation)
        let partials = try? FileManager.default.contentsOfDirectory(
            atPath: folder.appending(path: "store/transfers").path)
        #expect(partials ?? [] == [], sourceLocation: sourceLocation)
    }
}

/// A CRC-32C as the storage's headers hold it.
func checksumText(_ bytes: some Collection<UInt8>) -> String {
    withUnsafeBytes(of: CRC32C(of: bytes).value.bigEndian) { Data($0).base64EncodedString() }
}
