import Foundation
import Larder
import Synchronization

/// Takes each object, notes its key and keeps nothing of it; has none that could be received but one of zeros.
final class HostileStorage: StandInStorage {
    let limits = ObjectLimits(
        largestPut: 1 << 20, smallestPart: 1, largestPart: 1 << 20, maximumParts: 100, largestObject: 1 << 30)
    private let taken = Mutex<Set<String>>([])

    var keys: Set<String> { taken.withLock { $0 } }

    private func read(_ body: ObjectBody) async throws(ObjectError) -> UInt32 {
        var crc = CRC32C()
        var bytes = [UInt8](repeating: 0, count: Int(body.size))
        do {
            try await body.pace(bytes.count)
            try bytes.withUnsafeMutableBytes { buffer in
                if !buffer.isEmpty { try body.read(0, buffer) }
                crc.update(UnsafeRawBufferPointer(buffer))
            }
        } catch { throw ObjectError(.local, "the body cannot be read", cause: error) }
        return crc.value
    }

    func put(
        _ body: ObjectBody, to location: ObjectLocation, _ attributes: ObjectAttributes, idle: Duration
    ) async throws(ObjectError) -> StoredObject {
        let crc = try await read(body)
        taken.withLock { _ = $0.insert(location.key) }
        return StoredObject(etag: "\"e\"", size: body.size, crc32c: crc)
    }

    func putPart(
        _ number: Int, _ body: ObjectBody, of upload: MultipartUpload, idle: Duration
    ) async throws(ObjectError) -> UploadedPart {
        UploadedPart(number: number, size: body.size, etag: "\"\(number)\"", crc32c: try await read(body))
    }

    func get(
        _ range: Range<Int64>, of location: ObjectLocation, etag: String, into sink: ObjectSink, idle: Duration
    ) async throws(ObjectError) -> StoredObject {
        let bytes = [UInt8](repeating: 0, count: Int(range.upperBound - range.lowerBound))
        do {
            try await sink.pace(bytes.count)
            try bytes.withUnsafeBytes { try sink.write(range.lowerBound, $0) }
        } catch { throw ObjectError(.local, "the sink failed", cause: error) }
        return StoredObject(etag: etag, size: 2_500)
    }

    func object(
        at location: ObjectLocation, within time: Duration
    ) async throws(ObjectError) -> StoredObject { StoredObject(etag: "\"zeros\"", size: 2_500) }

    func parts(
        of upload: MultipartUpload, within time: Duration
    ) async throws(ObjectError) -> [UploadedPart] {
        [UploadedPart(number: 1, size: 1_000, etag: "\"1\"", crc32c: 7)]
    }
}
