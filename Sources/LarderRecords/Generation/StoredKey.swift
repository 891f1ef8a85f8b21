import Crypto
import LarderFiles

/// A text as LMDB can keep it in a key, which may have 511 bytes.
///
/// Longer texts are stored as their first 440 bytes, a zero byte, and the SHA-256 of the whole in hexadecimal, so
/// that they stand among their like and no two are the same. A shortened text has 505 bytes, and one that is kept
/// whole has fewer, so that none of either kind is one of the other. The text in full is with what the key leads to.
///
/// Safe: texts are read while the caller lends them, and a shortened one lives until `body` returns. A text is
/// shortened only if it is longer than what is left of it.
enum StoredKey {
    /// The longest text that is kept whole.
    static let maximumSize = 504
    private static let prefixSize = 440

    static func with<Result>(
        _ text: UnsafeRawBufferPointer, _ body: (UnsafeRawBufferPointer) throws -> Result
    ) rethrows -> Result {
        if text.count <= maximumSize { return unsafe try body(text) }
        return unsafe try shortened(text).withUnsafeBytes(body)
    }

    static func bytes(_ text: [UInt8]) -> [UInt8] {
        unsafe text.count <= maximumSize ? text : text.withUnsafeBytes(unsafe shortened)
    }

    /// What all stored keys begin with whose texts begin with these bytes.
    static func prefix(_ text: [UInt8]) -> [UInt8] { Array(text.prefix(prefixSize)) }

    private static func shortened(_ text: UnsafeRawBufferPointer) -> [UInt8] {
        var key = unsafe Array(text[..<prefixSize])
        key.append(0)
        unsafe key += hexadecimal(SHA256.hash(data: text)).utf8
        return key
    }
}

/// The number that a key of `names` or `keys` leads to.
///
/// Four bytes, or eight if it is greater than 32 bits hold, and four bytes of checksum of the key and the number.
///
/// Safe: the memory has room for the longest form, and lives until `body` returns; bytes are read only where they are
/// as many as a form has.
enum StoredNumber {
    /// Runs `body` with the stored form.
    static func with<Result>(
        _ number: UInt64, under key: UnsafeRawBufferPointer, _ body: (UnsafeRawBufferPointer) throws -> Result
    ) rethrows -> Result {
        let size = number <= UInt64(UInt32.max) ? 4 : 8
        return unsafe try withUnsafeTemporaryAllocation(byteCount: 12, alignment: 8) { buffer in
            unsafe buffer.storeBytes(of: number.littleEndian, as: UInt64.self)
            unsafe buffer.storeBytes(of: checksum(key, seed: number).littleEndian, toByteOffset: size, as: UInt32.self)
            return unsafe try body(UnsafeRawBufferPointer(rebasing: UnsafeRawBufferPointer(buffer)[..<(size + 4)]))
        }
    }

    /// The number; nil if the bytes can be none. The checksum is for `isSound`.
    @inline(__always)
    static func number(_ bytes: UnsafeRawBufferPointer) -> UInt64? {
        switch bytes.count {
        case 8: unsafe UInt64(UInt32(littleEndian: bytes.loadUnaligned(as: UInt32.self)))
        case 12: unsafe UInt64(littleEndian: bytes.loadUnaligned(as: UInt64.self))
        default: nil
        }
    }

    static func isSound(_ bytes: UnsafeRawBufferPointer, under key: UnsafeRawBufferPointer) -> Bool {
        guard let number = unsafe number(bytes) else { return false }
        let stored = unsafe UInt32(littleEndian: bytes.loadUnaligned(fromByteOffset: bytes.count - 4, as: UInt32.self))
        return unsafe stored == checksum(key, seed: number)
    }
}
