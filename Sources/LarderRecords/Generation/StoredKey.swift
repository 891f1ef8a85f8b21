import Crypto
import LarderFiles

/// A text as LMDB can keep it in a key, which may have 511 bytes.
///
/// Longer texts are stored as their first 440 bytes, a zero byte, and the SHA-256 of the whole in hexadecimal, so
/// that they stand among their like and no two are the same. A shortened text has 505 bytes, and one that is kept
/// whole has fewer, so that none of either kind is one of the other. The text in full is with what the key leads to.
enum StoredKey {
    /// The longest text that is kept whole.
    static let maximumSize = 504
    private static let prefixSize = 440

    static func with<Result>(
        _ text: UnsafeRawBufferPointer, _ body: (UnsafeRawBufferPointer) throws -> Result
    ) throws -> Result {
        if text.count <= maximumSize { return try body(text) }
        return try shortened(text).withUnsafeBytes(body)
    }

    static func bytes(_ text: [UInt8]) -> [UInt8] {
        text.count <= maximumSize ? text : text.withUnsafeBytes(shortened)
    }

    /// What all stored keys begin with whose texts begin with these bytes.
    static func prefix(_ text: [UInt8]) -> [UInt8] { Array(text.prefix(prefixSize)) }

    private static func shortened(_ text: UnsafeRawBufferPointer) -> [UInt8] {
        var key = Array(text[..<prefixSize])
        key.append(0)
        key += hexadecimal(SHA256.hash(data: text)).utf8
        return key
    }
}
