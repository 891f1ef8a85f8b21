/// The cache keys that a page of a walk had, as they are stored: for each its length in two bytes, little-endian, and its
/// bytes, at most 505.
///
/// Safe: keys are copied while they are lent, and one is given only where all of its bytes were found to be there.
package struct SyncMark: Sendable, Equatable {
    private(set) var bytes: [UInt8]

    /// - Parameter bytes: As they were stored.
    init(_ bytes: [UInt8] = []) { self.bytes = bytes }

    /// The keys of all objects of a response that have one.
    package init(_ parsed: ParsedResponse) {
        bytes = []
        bytes.reserveCapacity(parsed.keys.count + 2 * parsed.entities.count)
        for object in parsed.objects.indices where !parsed.isPart(object) {
            guard parsed.entities[Int(parsed.objects[object].entity)].first == object else { continue }
            unsafe StoredKey.with(parsed.key(of: object)) { unsafe append($0) }
        }
    }

    mutating func append(_ key: UnsafeRawBufferPointer) {
        bytes.append(UInt8(truncatingIfNeeded: key.count))
        bytes.append(UInt8(truncatingIfNeeded: key.count >> 8))
        unsafe bytes.append(contentsOf: key)
    }

    /// Runs `body` with each key; it must not keep the bytes.
    func forEachKey(_ body: (UnsafeRawBufferPointer) -> Void) throws(RecordError) {
        let isWhole = unsafe bytes.withUnsafeBytes { bytes in
            var start = 0
            while start < bytes.count {
                guard start + 2 <= bytes.count else { return false }
                let end = unsafe start + 2 + Int(bytes[start]) + Int(bytes[start + 1]) << 8
                guard end <= bytes.count else { return false }
                unsafe body(UnsafeRawBufferPointer(rebasing: bytes[(start + 2)..<end]))
                start = end
            }
            return true
        }
        guard isWhole else { throw RecordError.damagedPosition }
    }
}

/// The keys that the pages of a walk through everything had, each by a number, in a table with open addressing. To keep
/// and compare the texts of a hundred thousand took a third of their synchronization.
///
/// Where an object that the server has no more has the number of one that it has, it stays until the next walk. Of a
/// hundred thousand of either, that happens once in a thousand million walks.
///
/// Safe: bytes are read within the closures that lend them.
package struct WalkedKeys: Sendable {
    /// A power of two of them, of which a quarter is free at least; 0 where a place is free.
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

    /// Where a number is, or would be: the numbers are checksums, whose bits depend on all of the key.
    private func place(of number: UInt64) -> Int {
        var place = Int(truncatingIfNeeded: number) & (places.count - 1)
        while places[place] != 0, places[place] != number { place = (place + 1) & (places.count - 1) }
        return place
    }

    private static func number(of key: UnsafeRawBufferPointer) -> UInt64 { max(1, unsafe wideChecksum(key)) }
}
