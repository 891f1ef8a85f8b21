import Foundation
import Larder
import LarderAWS
import LarderTestSupport
import Testing

/// Small transfers in parts over a wire, and what they are to be in the end.
struct BadWireLoad {
    private static let bytes = randomBytes(2500, seed: 11)

    private let folder: URL
    private let app: Partition
    private let server: StorageServer
    private let storage: S3Transport
    private let wired: S3Transport
    private let object: ObjectLocation

    /// Runs `body` with a store, a storage, and a wire between them.
    static func run(_ plan: @escaping FaultyWire.Planner, _ body: (BadWireLoad) async throws -> Void) async throws {
        try await withStorage {
            Self.configure(&$0, $0.endpoint)
        } _: { (server, storage) in
            try await withTemporaryFolder { folder in
                let store = try Store.open(
                    at: folder.appending(path: "store"), schema: try Schema(parsing: "type Query { nothing: Int }"))
                let object = server.location("object")
                _ = try await storage.put(ObjectBody(bytes), to: object, ObjectAttributes(), idle: .ample)
                try await FaultyWire.run(to: server.url.port ?? 0, plan: plan) { wire in
                    try await withTransport(to: server, { Self.configure(&$0, URL(string: wire.url)) }) { wired in
                        try await body(
                            BadWireLoad(
                                folder: folder, app: try store.partition(), server: server, storage: storage,
                                wired: wired,
                                object: object))
                    }
                }
                try store.close()
            }
        }
    }

    /// With parts as small as the storage takes them.
    private static func configure(_ options: inout S3Transport.Options, _ endpoint: URL?) {
        options.endpoint = endpoint
        options.limits.smallestPart = 1 << 10
    }

    private static var options: TransferRunner.Options {
        var options = TransferRunner.Options()
        options.multipartThreshold = 1024
        options.partSize = 1024
        options.idle = .milliseconds(1500)
        options.timeout = .milliseconds(3000)
        options.completionTimeout = .milliseconds(3000)
        options.connectionsPerHost = 2
        options.maximumFaults = 20
        options.backoff = Backoff(first: .milliseconds(5), cap: .milliseconds(20))
        return options
    }

    /// Carries out one transfer, and expects that it is whole, or has failed, says why and is whole when it is tried
    /// again over a good wire. Nothing but that is left.
    ///
    /// - Returns: What had become of it on the wire.
    func carry(
        isUpload: Bool, _ note: Comment, _ change: (inout TransferRunner.Options) -> Void = { _ in }
    ) async throws -> TransferStatus {
        let location = isUpload ? server.location("upload") : object
        let file = folder.appending(path: UUID().uuidString)
        let transfer: Transfer
        if isUpload {
            try Data(Self.bytes).write(to: file)
            transfer = try await app.transfers.upload(file, to: location)
        } else {
            transfer = try await app.transfers.download(location, to: file)
        }
        var options = Self.options
        change(&options)
        try await TransferRunner(app, storage: wired, options: options).drain()
        let end = try transfer.status()
        if end.state == .failed {
            #expect(end.failure?.code.rawValue.isEmpty == false && end.failure?.message.isEmpty == false, note)
            if !isUpload { #expect(!FileManager.default.fileExists(atPath: file.path), note) }
            try await expectNothingLeft(location, note)
            try await transfer.retry()
            // The machine may be busy, and nothing else is in the way.
            (options.idle, options.timeout, options.completionTimeout) = (.ample, .ample, .ample)
            try await TransferRunner(app, storage: storage, options: options).drain()
        }
        #expect(try transfer.status().state == .done, note)
        let arrived = isUpload ? try await storage.bytes(of: location) : try Array(Data(contentsOf: file))
        #expect(arrived == Self.bytes, note)
        try await expectNothingLeft(location, note)
        return end
    }

    private func expectNothingLeft(_ location: ObjectLocation, _ note: Comment) async throws {
        let uploads = try await storage.uploads(
            in: server.bucket, region: nil, prefix: location.key, within: .seconds(10))
        #expect(uploads.isEmpty, note)
        let partials = try? FileManager.default.contentsOfDirectory(
            atPath: folder.appending(path: "store/transfers").path)
        #expect(partials ?? [] == [], note)
    }
}

extension S3Transport {
    /// All of an object.
    func bytes(of location: ObjectLocation) async throws -> [UInt8] {
        let object = try await object(at: location, within: .ample)
        guard let size = object.size, size > 0 else { return [] }
        let collected = Collected()
        _ = try await get(0..<size, of: location, etag: object.etag, into: collected.sink(), idle: .ample)
        return collected.bytes
    }
}
