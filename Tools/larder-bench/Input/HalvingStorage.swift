import Crypto
import Foundation
import Larder
import LarderFiles
import Synchronization

/// A storage within this process that takes the parts of one upload, and stops in the middle until it is told to go on.
final class HalvingStorage: ObjectTransport {
    private struct State {
        var sent: [Int] = []
        var parts: [Int: UploadedPart] = [:]
        var isStopped = false
        var isSecondHalf = false
        var firstByte: SuspendingClock.Instant?
    }

    private let stopsAfter: Int
    private let state = Mutex(State())
    let limits = ObjectLimits.s3.with(smallestPart: 1 << 20)

    init(stopsAfter: Int) { self.stopsAfter = stopsAfter }

    /// The parts that were sent whole, each as often as it was.
    var sent: [Int] { state.withLock { $0.sent } }

    func waitUntilStopped() async throws {
        while !state.withLock({ $0.isStopped }) { try await Task.sleep(for: .milliseconds(1)) }
    }

    func goOn() {
        state.withLock { state in
            state.isStopped = false
            state.isSecondHalf = true
        }
    }

    func firstByte() async throws -> SuspendingClock.Instant {
        while true {
            if let time = state.withLock({ $0.firstByte }) { return time }
            try await Task.sleep(for: .microseconds(200))
        }
    }

    func host(of location: ObjectLocation) -> String { location.bucket }

    func putPart(
        _ number: Int, _ body: ObjectBody, of upload: MultipartUpload, idle: Duration
    ) async throws(ObjectError) -> UploadedPart {
        let mustWait = state.withLock { state in
            if state.isSecondHalf, state.firstByte == nil { state.firstByte = .now }
            if !state.isSecondHalf, state.sent.count >= stopsAfter { state.isStopped = true }
            return state.isStopped
        }
        if mustWait {
            do { try await Task.sleep(for: .seconds(60)) } catch { throw ObjectError(.cancelled, "cancelled") }
        }
        var md5 = Insecure.MD5()
        var bytes = [UInt8](repeating: 0, count: Int(body.size))
        do {
            try bytes.withUnsafeMutableBytes { try body.read(0, $0) }
        } catch { throw ObjectError(.local, "the body cannot be read", cause: error) }
        md5.update(data: bytes)
        let tag = "\"" + hexadecimal(md5.finalize()) + "\""
        let part = UploadedPart(number: number, size: body.size, etag: tag)
        state.withLock { state in
            state.sent.append(number)
            state.parts[number] = part
        }
        return part
    }

    func beginUpload(
        to location: ObjectLocation, _ attributes: ObjectAttributes, within time: Duration
    ) async throws(ObjectError) -> MultipartUpload { MultipartUpload(location: location, id: "upload") }

    func parts(
        of upload: MultipartUpload, within time: Duration
    ) async throws(ObjectError) -> [UploadedPart] {
        state.withLock { $0.parts }.values.sorted { $0.number < $1.number }
    }

    func completeUpload(
        _ upload: MultipartUpload, _ parts: [UploadedPart], within time: Duration
    ) async throws(ObjectError) -> StoredObject {
        StoredObject(etag: "\"made\"", size: parts.reduce(0) { $0 + ($1.size ?? 0) })
    }

    func uploads(
        in bucket: String, region: String?, prefix: String, within time: Duration
    ) async throws(ObjectError) -> [MultipartUpload] { [] }

    func abortUpload(_ upload: MultipartUpload, within time: Duration) async throws(ObjectError) {}

    func put(
        _ body: ObjectBody, to location: ObjectLocation, _ attributes: ObjectAttributes, idle: Duration
    ) async throws(ObjectError) -> StoredObject { throw .unusable }

    func object(
        at location: ObjectLocation, within time: Duration
    ) async throws(ObjectError) -> StoredObject { throw .unusable }

    func get(
        _ range: Range<Int64>, of location: ObjectLocation, etag: String, into sink: ObjectSink, idle: Duration
    ) async throws(ObjectError) -> StoredObject { throw .unusable }
}

extension ObjectLimits {
    fileprivate func with(smallestPart: Int64) -> ObjectLimits {
        var limits = self
        limits.smallestPart = smallestPart
        return limits
    }
}

extension ObjectError {
    fileprivate static var unusable: ObjectError { ObjectError(.rejected, "this storage takes one upload in parts") }
}
