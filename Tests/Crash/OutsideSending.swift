import Foundation
import Larder
import LarderTestSupport
import Synchronization

/// Carries the files that another program hands over, and goes on when that is killed. Now and then it fails, or forgets
/// what it was handed, before it has carried the file or after; or it says that a download is there that is not, or is of
/// other bytes.
enum OutsideSending {
    private enum Fate: CaseIterable { case failsBefore, failsAfter, forgetsBefore, forgetsAfter, lies }

    static func run(_ place: OutsideFolder, seed: UInt64) async throws {
        var random = SeededNumbers(seed: seed)
        let ledger = try Ledger(file: place.folder.appending(path: "ledger"))
        while true {
            for id in try place.jobs where !FileManager.default.fileExists(atPath: place.end(of: id).path) {
                try await Task.sleep(for: .milliseconds(Int(random.next() % 12)))
                let fate = random.next() % 4 == 0 ? Fate.allCases[Int(random.next() % 5)] : nil
                guard let job: OutsideFolder.Job = try place.read(place.job(id)) else { continue }
                var end = OutsideFolder.End(failure: "as the seed says")
                if fate != .failsBefore, fate != .forgetsBefore {
                    if let etag = job.etag {
                        end = try receive(job, etag, place, ledger, lies: fate == .lies, random.next())
                    } else {
                        end = try send(id, job, place, ledger)
                    }
                }
                switch fate {
                case .forgetsBefore, .forgetsAfter: try place.remove(place.job(id))
                case .failsAfter: end = OutsideFolder.End(failure: "as the seed says")
                case .failsBefore, .lies, nil: break
                }
                guard fate != .forgetsBefore, fate != .forgetsAfter else { continue }
                try JSONEncoder().encode(end).write(to: place.end(of: id), options: .atomic)
            }
            try await Task.sleep(for: .milliseconds(1))
        }
    }

    private static func send(
        _ id: UUID, _ job: OutsideFolder.Job, _ place: OutsideFolder, _ ledger: Ledger
    ) throws -> OutsideFolder.End {
        let bytes = try Data(contentsOf: job.file)
        let crc32c = OutsideFolder.checksum(bytes)
        guard crc32c == job.crc32c else { return OutsideFolder.End(failure: "the file has another checksum") }
        ledger.note("sent", job.key)
        try bytes.write(to: place.object(job.key), options: .atomic)
        return OutsideFolder.End(etag: "\"\(crc32c)\"", size: Int64(bytes.count), crc32c: crc32c)
    }
}

extension OutsideSending {
    private static func receive(
        _ job: OutsideFolder.Job, _ etag: String, _ place: OutsideFolder, _ ledger: Ledger, lies: Bool, _ number: UInt64
    ) throws -> OutsideFolder.End {
        var bytes = try Data(contentsOf: place.object(job.key))
        let end = OutsideFolder.End(
            etag: etag, size: Int64(bytes.count), crc32c: OutsideFolder.checksum(bytes))
        if lies {
            if number % 3 == 0 || bytes.isEmpty { return end }
            if number % 3 == 1 { bytes.removeLast() } else { bytes[bytes.startIndex] ^= 1 }
        } else {
            ledger.note("received", job.key)
        }
        try bytes.write(to: job.file, options: .atomic)
        return end
    }
}

/// The storage of an `OutsideFolder`, which takes nothing from the program itself.
struct OutsideStorage: StandInStorage {
    let place: OutsideFolder
    let limits = ObjectLimits.s3

    func object(
        at location: ObjectLocation, within time: Duration
    ) async throws(ObjectError) -> StoredObject {
        guard let bytes = FileManager.default.contents(atPath: place.object(location.key).path) else {
            throw ObjectError(.notFound, "there is no such object")
        }
        let crc32c = OutsideFolder.checksum(bytes)
        return StoredObject(
            etag: "\"\(crc32c)\"", etagIsDigest: false, size: Int64(bytes.count), crc32c: crc32c)
    }

    func put(
        _ body: ObjectBody, to location: ObjectLocation, _ attributes: ObjectAttributes, idle: Duration
    ) async throws(ObjectError) -> StoredObject { throw Self.refusal }

    func putPart(
        _ number: Int, _ body: ObjectBody, of upload: MultipartUpload, idle: Duration
    ) async throws(ObjectError) -> UploadedPart { throw Self.refusal }

    func parts(
        of upload: MultipartUpload, within time: Duration
    ) async throws(ObjectError) -> [UploadedPart] { throw Self.refusal }

    func get(
        _ range: Range<Int64>, of location: ObjectLocation, etag: String, into sink: ObjectSink, idle: Duration
    ) async throws(ObjectError) -> StoredObject { throw Self.refusal }

    private static let refusal = ObjectError(.rejected, "the program sends nothing itself")
}

/// Has what is queued in a store sent by the other process, and kills itself after a step.
enum OutsideCarrying {
    static func run(_ folder: URL, _ place: OutsideFolder, killedAfter step: (TransferRunner.KillPoint, Int)?)
        async throws
    {
        let store = try Store.open(at: folder, schema: try Schema(parsing: "type Query { nothing: Int }"))
        var options = TransferRunner.Options()
        options.background = place
        options.maximumFaults = 1000
        options.idle = .milliseconds(100)
        options.backoff = Backoff(first: .milliseconds(2), cap: .milliseconds(20))
        let left = Mutex(step?.1 ?? 0)
        options.reached = { made in
            guard made == step?.0 else { return }
            let mustDie = left.withLock { left in
                left -= 1
                return left == 0
            }
            if mustDie { kill(getpid(), SIGKILL) }
        }
        try await TransferRunner(try store.partition(), storage: OutsideStorage(place: place), options: options).drain()
        try store.close()
    }
}
