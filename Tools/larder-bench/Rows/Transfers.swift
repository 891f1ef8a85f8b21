import Foundation
import Larder
import LarderOperations
import Synchronization

extension Bench {
    private func withTransferFixture<Result>(_ body: (Store, Partition, URL) async throws -> Result) async throws
        -> Result
    {
        let folder = URL(filePath: freshPath("transfers"))
        defer { remove(folder.path) }
        let store = try Store.open(at: folder, schema: try Schema(parsing: ItemShop.schemaText))
        let result = try await body(store, try store.partition(), folder)
        try store.close()
        return result
    }

    /// Many small uploads that are queued in one call.
    func queueUploads() async throws -> [BenchRow] {
        let count = 10_000
        return try await withTransferFixture { store, app, folder in
            let file = folder.appending(path: "small")
            try Data(repeating: 7, count: 1000).write(to: file)
            let own = try BareTransfers(file: folder.appending(path: "own.sqlite").path, table: .own)
            let bare = try BareTransfers(file: folder.appending(path: "bare.sqlite").path, table: .bare)
            // Foundation's `UUID()` would take longer than the rows.
            let ids = { UUID.ascending(count, at: Date()) }
            let times = try await Measurement.times(
                rounds: max(rounds / 3, 3),
                [
                    {
                        let uploads = (0..<count).map { number in
                            (
                                file: file, location: ObjectLocation(bucket: "media", key: "photos/\(number).jpg"),
                                options: UploadOptions()
                            )
                        }
                        return try await Measurement.time { keep(try await app.transfers.upload(uploads).count) }
                    },
                    {
                        let ids = ids()
                        return try Measurement.time { try own.insert(ids, path: file.path) }
                    },
                    {
                        let ids = ids()
                        return try Measurement.time { try bare.insert(ids, path: file.path) }
                    },
                ])
            let ratio = String(
                format: "%.2f x of rows without indices and checks", times[0].median / times[2].median)
            return [
                BenchRow(
                    name: "queue-uploads", what: "10,000 small uploads queued, durable", times,
                    floorName: "10,000 INSERTs of the same rows in one commit", reach: .ratio(2), note: ratio)
            ]
        }
    }

    /// From opening a store whose program was killed in the middle of an upload to the first byte that is sent.
    func resumeUpload() async throws -> [BenchRow] {
        let parts = 100
        let size = Int64(parts) << 20
        let folder = URL(filePath: freshPath("transfers"))
        defer { remove(folder.path) }
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        let file = folder.appending(path: "large")
        try Data().write(to: file)
        let handle = try FileHandle(forWritingTo: file)
        try handle.truncate(atOffset: UInt64(size))
        try handle.close()
        var changed = TransferRunner.Options()
        changed.partSize = 1 << 20
        let options = changed
        let schema = try Schema(parsing: ItemShop.schemaText)
        func open() throws -> (Store, Partition) {
            let store = try Store.open(at: folder.appending(path: "store"), schema: schema)
            return (store, try store.partition())
        }
        var (times, sentAgain) = ([Double](), 0)
        for _ in 0..<max(rounds, 3) {
            let storage = HalvingStorage(stopsAfter: parts / 2)
            let (killed, before) = try open()
            let upload = try await before.transfers.upload(file, to: .init(bucket: "media", key: "large"))
            // The storage answers no more, and the program goes: what is under way is lost.
            let runner = TransferRunner(before, storage: storage, options: options)
            let first = Task { try await runner.drain() }
            try await storage.waitUntilStopped()
            first.cancel()
            _ = try? await first.value
            try killed.close()
            storage.goOn()
            let begin = SuspendingClock.now
            let (store, app) = try open()
            let next = TransferRunner(app, storage: storage, options: options)
            let second = Task { try await next.drain() }
            let time = try await storage.firstByte() - begin
            try await second.value
            guard try app.transfers[upload.id].status().state == .done else {
                throw BenchFailure("the upload was not done")
            }
            sentAgain = max(sentAgain, storage.sent.count - Set(storage.sent).count)
            try store.close()
            times.append(time / .seconds(1))
        }
        let note = "at most \(sentAgain) of \(parts) parts sent again, over \(options.connectionsPerHost) connections"
        return [
            BenchRow(
                name: "resume-upload", what: "a store opened in the middle of an upload, to the first byte sent",
                value: times.sorted()[times.count / 2], reach: .most(0.1), note: note)
        ]
    }

    /// Uploads one after the other, whose exchanges are let go of when they are over.
    func transferMemory() async throws -> [BenchRow] {
        try await ChildProcess.withObjectServer { server in
            try [(small: 20_000, parts: 0), (0, 10_000)].map { small, parts in
                let folder = freshPath("memory")
                defer { remove(folder) }
                try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
                let child = try ChildProcess.own(["repeat-transfers", folder, server, "\(small)", "\(parts)"])
                let grown = try ChildProcess.run(child).output.split(separator: " ").compactMap { Int($0) }
                guard grown.count == 2 else { throw BenchFailure("the uploads were not done") }
                return BenchRow(
                    name: small > 0 ? "small-uploads-memory" : "parts-memory",
                    what: "growth of memory by \(small > 0 ? "20,000 small uploads" : "10,000 parts") after a thousand",
                    unit: .bytes, value: Double(grown[0]), reach: .most(Double(8 << 20)),
                    note: "freed memory given back first; not freed: \(grown[1]) bytes")
            }
        }
    }
}
