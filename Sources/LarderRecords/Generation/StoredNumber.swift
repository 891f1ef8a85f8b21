/// The number that a key of `names` or `keys` leads to.
///
/// Four bytes, or eight if it is greater than 32 bits hold, and four bytes of checksum of the key and the number.
enum StoredNumber {
    static func encoded(_ number: UInt64, under key: [UInt8]) -> [UInt8] {
        var bytes: [UInt8] = []
        if let small = UInt32(exactly: number) {
            appendLittleEndian(small, to: &bytes)
        } else {
            appendLittleEndian(number, to: &bytes)
        }
        appendLittleEndian(key.withUnsafeBytes { checksum($0, seed: number) }, to: &bytes)
        return bytes
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
