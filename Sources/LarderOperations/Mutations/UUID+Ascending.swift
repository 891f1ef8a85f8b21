package import Foundation

extension UUID {
    /// A new UUID of version 7 (RFC 9562): a time in milliseconds, then 74 random bits. Those of one time lie together
    /// in an index, so that storing and deleting many touches few pages. Nothing depends on the clock being right.
    package static func ascending(at time: Date) -> UUID {
        let milliseconds = UInt64(clamping: time.milliseconds)
        var bytes = UUID().uuid
        bytes.0 = UInt8(truncatingIfNeeded: milliseconds >> 40)
        bytes.1 = UInt8(truncatingIfNeeded: milliseconds >> 32)
        bytes.2 = UInt8(truncatingIfNeeded: milliseconds >> 24)
        bytes.3 = UInt8(truncatingIfNeeded: milliseconds >> 16)
        bytes.4 = UInt8(truncatingIfNeeded: milliseconds >> 8)
        bytes.5 = UInt8(truncatingIfNeeded: milliseconds)
        bytes.6 = bytes.6 & 0x0F | 0x70
        return UUID(uuid: bytes)
    }
}
