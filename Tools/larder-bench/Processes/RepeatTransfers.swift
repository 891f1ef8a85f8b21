import ArgumentParser
import CAllocations
import Foundation
import Larder
import ObjectServer

/// Carries out many uploads in a process of its own, and says by how much its memory has grown since it was warm, and
/// by how much what it has not freed. What was freed is given back to the system first: how much of that the allocator
/// keeps says nothing of what is held.
struct RepeatTransfers: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "repeat-transfers", abstract: "Sends many small files or parts, and prints how memory has grown.",
        shouldDisplay: false)

    private static let partSize = 1024

    /// An empty one.
    @ArgumentParser.Argument var folder: String
    @ArgumentParser.Argument var url: String
    @ArgumentParser.Argument var small: Int
    @ArgumentParser.Argument var parts: Int

    func run() async throws {
        guard let url = URL(string: url) else { throw ValidationError("\(url) is no URL.") }
        let folder = URL(filePath: folder)
        let store = try Store.open(
            at: folder.appending(path: "store"), schema: try Schema(parsing: ItemShop.schemaText))
        let app = try store.partition()
        var (growth, held) = (0, 0)
        try await ObjectServer.withTransport(to: url, smallestPart: Int64(Self.partSize)) { storage in
            let uploads: [(Int) async throws -> Void] = [
                { try await send(files: $0, of: 1, in: folder, app, storage) },
                { try await send(files: 1, of: $0, in: folder, app, storage) },
            ]
            for (upload, count) in zip(uploads, [small, parts]) where count > 0 {
                try await upload(min(count, 1_000))
                let (heldBefore, before) = (larder_allocations_trim(), Memory.current)
                try await upload(count)
                let (heldAfter, after) = (larder_allocations_trim(), Memory.current)
                guard let before, let after, heldBefore >= 0 else {
                    throw BenchFailure("the system does not say how much memory a process has")
                }
                (growth, held) = (max(growth, after - before), max(held, heldAfter - heldBefore))
            }
        }
        try store.close()
        try FileHandle.standardOutput.write(contentsOf: Data("\(growth) \(held)\n".utf8))
    }

    private func send(
        files count: Int, of parts: Int, in folder: URL, _ app: Partition, _ storage: any ObjectTransport
    ) async throws {
        let file = folder.appending(path: "file")
        try Data(repeating: 7, count: parts * Self.partSize).write(to: file)
        var options = TransferRunner.Options()
        options.partSize = Int64(Self.partSize)
        options.multipartThreshold = Int64(Self.partSize)
        let runner = TransferRunner(app, storage: storage, options: options)
        // Not all at once: what queueing takes is not what is asked here.
        for first in stride(from: 0, to: count, by: 1_000) {
            _ = try await app.transfers.upload(
                (first..<min(first + 1_000, count)).map { number in
                    (file, ObjectLocation(bucket: ObjectServer.bucket, key: "\(parts)/\(number)"), UploadOptions())
                })
            try await runner.drain()
        }
        guard try app.transfers.list(in: [.failed, .pending]).isEmpty else {
            throw BenchFailure("not all uploads were done")
        }
    }
}
