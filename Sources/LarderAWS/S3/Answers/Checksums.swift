import Crypto
import Foundation
import Larder
import LarderFiles

/// What tells whether a storage has what it was sent.
enum Checksums {
    /// A CRC-32C as headers and answers hold it: big-endian, in Base64.
    static func text(_ crc32c: UInt32) -> String {
        withUnsafeBytes(of: crc32c.bigEndian) { Data($0).base64EncodedString() }
    }

    /// A CRC-32C out of a header or an answer. Nil also where it is that of an object's parts: `text-N`.
    static func crc32c(_ text: String?) -> UInt32? {
        guard let text, let data = Data(base64Encoded: text), data.count == 4 else { return nil }
        return data.reduce(0) { $0 << 8 | UInt32($1) }
    }

    /// A SHA-256 out of a header. Nil also where it is that of an object's parts.
    static func sha256(_ text: String?) -> [UInt8]? {
        guard let text, let data = Data(base64Encoded: text), data.count == SHA256.byteCount else { return nil }
        return Array(data)
    }

    /// The MD5 of a body, which is read once more.
    static func md5(of body: ObjectBody, chunkSize: Int, clock: ExchangeClock) throws(ObjectError) -> [UInt8] {
        var hash = Insecure.MD5()
        try forEachChunk(of: body, chunkSize: chunkSize, clock) { hash.update(bufferPointer: $0) }
        return Array(hash.finalize())
    }

    /// The SHA-256 of a body, which is read for it.
    static func sha256(of body: ObjectBody, chunkSize: Int, clock: ExchangeClock) throws(ObjectError) -> String {
        var hash = SHA256()
        try forEachChunk(of: body, chunkSize: chunkSize, clock) { hash.update(bufferPointer: $0) }
        return hexadecimal(hash.finalize())
    }

    private static func forEachChunk(
        of body: ObjectBody, chunkSize: Int, _ clock: ExchangeClock, _ use: (UnsafeRawBufferPointer) -> Void
    ) throws(ObjectError) {
        var bytes = [UInt8](repeating: 0, count: Int(min(Int64(chunkSize), max(0, body.size))))
        var offset: Int64 = 0
        do {
            while offset < body.size {
                try Task.checkCancellation()
                let count = Int(min(Int64(bytes.count), body.size - offset))
                try bytes.withUnsafeMutableBytes { space in
                    let chunk = UnsafeMutableRawBufferPointer(rebasing: space[..<count])
                    try body.read(offset, chunk)
                    use(UnsafeRawBufferPointer(chunk))
                }
                offset += Int64(count)
                clock.moved()
            }
        } catch {
            throw ObjectError(ofCaller: error, .local, "The body could not be read.")
        }
    }
}
