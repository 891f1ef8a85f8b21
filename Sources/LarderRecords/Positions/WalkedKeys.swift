/// The cache keys of all pages of a walk, each as a 64-bit checksum: keeping and comparing the texts of 100,000 keys took a
/// third of their synchronization.
///
/// If a removed object's key has the same checksum as a key of the walk, the object stays until the next walk. With
/// 100,000 keys on each side, that happens about once in a thousand million walks.
///
/// Safe: bytes are read within the closures that lend them.
package struct WalkedKeys: Sendable {
    /// A table with open addressing: a `Set` of 100,000 takes two to three times as long. The number of places is zero or
    /// a power of two, and at least a quarter of them are free, so that each search ends; 0 marks a free place.
    private var places: [UInt64] = []
    package private(set) var count = 0

    package init() {}

    /// Takes in the keys of a page.
    package mutating func insert(_ mark: SyncMark) throws(RecordError) {
        try unsafe mark.forEachKey { unsafe insert(Self.number(of: $0)) }
    }

    /// - Parameter key: As it is stored.
    func contains(_ key: UnsafeRawBufferPointer) -> Bool {
        guard count > 0 else { return false }
        let number = unsafe Self.number(of: key)
        return places[place(of: number)] == number
    }

    private mutating func insert(_ number: UInt64) {
        if 4 * (count + 1) > 3 * places.count {
            let earlier = places
            places = Array(repeating: 0, count: max(64, 2 * earlier.count))
            for number in earlier where number != 0 { places[place(of: number)] = number }
        }
        let place = place(of: number)
        guard places[place] == 0 else { return }
        places[place] = number
        count += 1
    }

    /// Where a number is, or would be. It is looked for from its upper bits on: a multiplication carries every bit of the
    /// key into them.
    private func place(of number: UInt64) -> Int {
        var place = Int(truncatingIfNeeded: number >> UInt64(64 - places.count.trailingZeroBitCount))
        while places[place] != 0, places[place] != number { place = (place + 1) & (places.count - 1) }
        return place
    }

    private static func number(of key: UnsafeRawBufferPointer) -> UInt64 { max(1, unsafe wideChecksum(key)) }
}
