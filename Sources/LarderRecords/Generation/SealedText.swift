/// Bytes with a checksum of themselves and of what they belong to in front of them: names in full in `texts`, and the
/// values of `changes` and of `meta`'s stamp.
///
/// Safe: nothing is read of bytes that are too few for a checksum. What `text` gives lies in the caller's bytes, and is
/// valid as long as they are.
enum SealedText {
    static func encoded(_ text: [UInt8], seed: UInt64) -> [UInt8] {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(text.count + 4)
        unsafe appendLittleEndian(text.withUnsafeBytes { unsafe checksum($0, seed: seed) }, to: &bytes)
        bytes.append(contentsOf: text)
        return bytes
    }

    /// The bytes without their checksum; nil if there are too few.
    static func text(_ bytes: UnsafeRawBufferPointer) -> UnsafeRawBufferPointer? {
        unsafe bytes.count >= 4 ? UnsafeRawBufferPointer(rebasing: bytes[4...]) : nil
    }

    static func isSound(_ bytes: UnsafeRawBufferPointer, seed: UInt64) -> Bool {
        guard let text = unsafe text(bytes) else { return false }
        return unsafe UInt32(littleEndian: bytes.loadUnaligned(as: UInt32.self)) == checksum(text, seed: seed)
    }
}
