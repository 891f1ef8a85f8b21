import Foundation
import Larder
import Synchronization

/// A storage of one object that is zeros but for a byte in each mebibyte, which is the number of the mebibyte; it keeps
/// nothing but the checksums of what it is sent.
final class HollowStorage: StandInStorage {
    static let mebibyte: Int64 = 1 << 20

    let limits = ObjectLimits.s3
    private let object: StoredObject
    private let parts = Mutex<[Int: UploadedPart]>([:])

    init(size: Int64) {
        object = StoredObject(etag: "\"whole\"", size: size, crc32c: Self.checksum(size: size))
    }

    /// The mebibyte of this number, from 0.
    static func fill(_ number: Int64, _ bytes: UnsafeMutableRawBufferPointer) {
        bytes.storeBytes(of: number.littleEndian, toByteOffset: 1000, as: Int64.self)
    }

    /// CRC-32C of the whole.
    static func checksum(size: Int64) -> UInt32 {
        var crc = CRC32C()
        var bytes = [UInt8](repeating: 0, count: Int(mebibyte))
        for number in 0..<size / mebibyte {
            bytes.withUnsafeMutableBytes { bytes in
                fill(number, bytes)
                crc.update(UnsafeRawBufferPointer(bytes))
            }
        }
        return crc.value
    }

    /// CRC-32C of all that was sent.
    var checksum: UInt32 {
        parts.withLock { $0 }.values.sorted { $0.number < $1.number }.reduce(CRC32C().value) {
            CRC32C.combine($0, $1.crc32c ?? 0, length: $1.size ?? 0)
        }
    }

    func putPart(
        _ number: Int, _ body: ObjectBody, of upload: MultipartUpload, idle: Duration
    ) async throws(ObjectError) -> UploadedPart {
        var crc = CRC32C()
        var bytes = [UInt8](repeating: 0, count: Int(Self.mebibyte))
        var offset: Int64 = 0
        do {
            while offset < body.size {
                let count = Int(min(Self.mebibyte, body.size - offset))
                try await body.pace(count)
                try bytes.withUnsafeMutableBytes { bytes in
                    let bytes = UnsafeMutableRawBufferPointer(rebasing: bytes[..<count])
                    try body.read(offset, bytes)
                    crc.update(UnsafeRawBufferPointer(bytes))
                }
                offset += Int64(count)
            }
        } catch { throw ObjectError(.local, "the body cannot be read", cause: error) }
        let part = UploadedPart(number: number, size: body.size, etag: "\"part\(number)\"", crc32c: crc.value)
        parts.withLock { $0[number] = part }
        return part
    }

    func get(
        _ range: Range<Int64>, of location: ObjectLocation, etag: String, into sink: ObjectSink, idle: Duration
    ) async throws(ObjectError) -> StoredObject {
        var bytes = [UInt8](repeating: 0, count: Int(Self.mebibyte))
        var offset = range.lowerBound
        do {
            while offset < range.upperBound {
                let start = Int(offset % Self.mebibyte)
                let count = Int(min(Self.mebibyte - Int64(start), range.upperBound - offset))
                try await sink.pace(count)
                try bytes.withUnsafeMutableBytes { bytes in
                    Self.fill(offset / Self.mebibyte, bytes)
                    try sink.write(offset, UnsafeRawBufferPointer(rebasing: bytes[start..<start + count]))
                }
                offset += Int64(count)
            }
        } catch { throw ObjectError(.local, "the sink failed", cause: error) }
        return object
    }

    func object(
        at location: ObjectLocation, within time: Duration
    ) async throws(ObjectError) -> StoredObject { object }

    func parts(
        of upload: MultipartUpload, within time: Duration
    ) async throws(ObjectError) -> [UploadedPart] { parts.withLock { $0 }.values.sorted { $0.number < $1.number } }

    func put(
        _ body: ObjectBody, to location: ObjectLocation, _ attributes: ObjectAttributes, idle: Duration
    ) async throws(ObjectError) -> StoredObject { throw ObjectError(.rejected, "it is larger than that") }
}
