/// Which layers of a set are meant, by their indices: a bit for each.
struct LaidLayers: Sendable {
    private var words: [UInt64] = []
    private(set) var count = 0

    init() {}

    /// The first so many.
    init(all count: Int) {
        words = Array(repeating: .max, count: count / 64)
        if count % 64 > 0 { words.append((1 << UInt64(count % 64)) - 1) }
        self.count = count
    }

    @inline(__always)
    func contains(_ layer: Int) -> Bool {
        layer / 64 < words.count && words[layer / 64] & 1 << UInt64(layer % 64) != 0
    }

    /// - Returns: False if it was in it already.
    @discardableResult
    mutating func insert(_ layer: Int) -> Bool {
        if layer / 64 >= words.count { words += repeatElement(0, count: layer / 64 + 1 - words.count) }
        let bit: UInt64 = 1 << UInt64(layer % 64)
        if words[layer / 64] & bit != 0 { return false }
        words[layer / 64] |= bit
        count += 1
        return true
    }

    mutating func formUnion(_ other: LaidLayers) {
        if other.count > 0 { for layer in other.indices(beyond: self) { insert(layer) } }
    }

    /// The members that another set does not have, ascending.
    ///
    /// - Complexity: O(n / 64), beside what is found.
    func indices(beyond other: LaidLayers = LaidLayers()) -> [Int] {
        var found: [Int] = []
        for (index, word) in words.enumerated() {
            var rest = index < other.words.count ? word & ~other.words[index] : word
            while rest != 0 {
                found.append(index * 64 + rest.trailingZeroBitCount)
                rest &= rest - 1
            }
        }
        return found
    }

    /// The greatest; -1 where there is none.
    var last: Int {
        guard let index = words.lastIndex(where: { $0 != 0 }) else { return -1 }
        return index * 64 + 63 - words[index].leadingZeroBitCount
    }
}
