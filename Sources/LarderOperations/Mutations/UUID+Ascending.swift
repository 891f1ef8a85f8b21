package import Foundation

extension UUID {
    /// A new UUID of version 7 (RFC 9562): a time in milliseconds, then 74 random bits. Those of one time lie together
    /// in an index, so that storing and deleting many touches few pages. Nothing depends on the clock being right.
    package static func ascending(at time: Date) -> UUID {
        // Foundation's own would open the system's file of random bytes for each.
        var system = SystemRandomNumberGenerator()
        return UUID(version7At: time, system.next(), system.next())
    }

    /// Many of one time. They count on from the first, which is random: each lies behind the last in an index.
    package static func ascending(_ count: Int, at time: Date) -> [UUID] {
        var system = SystemRandomNumberGenerator()
        // Half of what there is, so that no count comes to its end.
        let (high, low) = (system.next(), system.next() & (.max >> 3))
        return (0..<UInt64(max(0, count))).map { UUID(version7At: time, high, low + $0) }
    }

    /// - Parameters:
    ///   - high: Its last 12 bits are taken.
    ///   - low: Its last 62 bits are taken.
    private init(version7At time: Date, _ high: UInt64, _ low: UInt64) {
        let high = UInt64(clamping: time.milliseconds) << 16 | 0x7000 | high & 0x0FFF
        let low = 1 << 63 | low & (.max >> 2)
        func byte(_ number: UInt64, _ index: UInt64) -> UInt8 { UInt8(truncatingIfNeeded: number >> (56 - 8 * index)) }
        self.init(
            uuid: (
                byte(high, 0), byte(high, 1), byte(high, 2), byte(high, 3), byte(high, 4), byte(high, 5), byte(high, 6),
                byte(high, 7), byte(low, 0), byte(low, 1), byte(low, 2), byte(low, 3), byte(low, 4), byte(low, 5),
                byte(low, 6), byte(low, 7)
            ))
    }
}
