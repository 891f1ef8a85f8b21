/// The number that a key of `names` or `keys` leads to.
///
/// Four bytes, or eight if it is greater than 32 bits hold, and four bytes of checksum of the key and the number.
enum StoredNumber {
    /// Runs `body` with the stored form.
    static func with<Result>(
        _ number: UInt64, under key: UnsafeRawBufferPointer, _ body: (UnsafeRawBufferPointer) throws -> Result
    ) rethrows -> Result {
        let size = number <= UInt64(UInt32.max) ? 4 : 8
        return try withUnsafeTemporaryAllocation(byteCount: 12, alignment: 8) { buffer in
            buffer.storeBytes(of: number.littleEndian, as: UInt64.self)
            buffer.storeBytes(of: checksum(key, seed: number).littleEndian, toByteOffset: size, as: UInt32.self)
            return try body(UnsafeRawBufferPointer(rebasing: UnsafeRawBufferPointer(buffer)[..<(size + 4)]))
        }
    }

    /// The number; nil if the bytes can be none. The checksum is for `isSound`.
    @inline(__always)
    static func number(_ bytes: UnsafeRawBufferPointer) -> UInt64? {
        switch bytes.count {
        case 8: UInt64(UInt32(littleEndian: bytes.loadUnaligned(as: UInt32.self)))
        case 12: UInt64(littleEndian: bytes.loadUnaligned(as: UInt64.self))
        default: nil
        }
    }

    static func isSound(_ bytes: UnsafeRawBufferPointer, under key: UnsafeRawBufferPointer) -> Bool {
        guard let number = number(bytes) else { return false }
        let stored = UInt32(littleEndian: bytes.loadUnaligned(fromByteOffset: bytes.count - 4, as: UInt32.self))
        return stored == checksum(key, seed: number)
    }
}
