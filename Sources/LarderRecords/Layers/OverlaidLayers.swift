/// Which layers of a set are meant, by their indices: a bit for each, but none for those before which all are.
struct OverlaidLayers: Sendable {
    /// So many words from the first on have all bits, and are not stored.
    private var fullWords = 0
    private var words: [UInt64] = []
    private(set) var count = 0

    init() {}

    /// The first so many.
    init(all count: Int) {
        fullWords = count / 64
        if count % 64 > 0 { words.append((1 << UInt64(count % 64)) - 1) }
        self.count = count
    }

    @inline(__always)
    func contains(_ layer: Int) -> Bool {
        let place = layer / 64 - fullWords
        return place < 0 || place < words.count && words[place] & 1 << UInt64(layer % 64) != 0
    }

    /// - Returns: False if it was in it already.
    @discardableResult
    mutating func insert(_ layer: Int) -> Bool {
        let place = layer / 64 - fullWords
        if place < 0 { return false }
        if place >= words.count { words += repeatElement(0, count: place + 1 - words.count) }
        let bit: UInt64 = 1 << UInt64(layer % 64)
        if words[place] & bit != 0 { return false }
        words[place] |= bit
        count += 1
        if place == 0, words[0] == .max {
            let full = words.firstIndex { $0 != .max } ?? words.count
            words.removeFirst(full)
            fullWords += full
        }
        return true
    }

    mutating func formUnion(_ other: OverlaidLayers) {
        if other.count > 0 { for layer in other.indices(beyond: self) { insert(layer) } }
    }

    /// The members that another set does not have, ascending.
    ///
    /// - Complexity: O(n / 64 + m): n layers follow the first ones, of which both sets have all, and m are found.
    func indices(beyond other: OverlaidLayers = OverlaidLayers()) -> [Int] {
        var found: [Int] = []
        for index in min(fullWords, other.fullWords)..<(fullWords + words.count) {
            var rest = word(index) & ~other.word(index)
            while rest != 0 {
                found.append(index * 64 + rest.trailingZeroBitCount)
                rest &= rest - 1
            }
        }
        return found
    }

    @inline(__always)
    private func word(_ index: Int) -> UInt64 {
        let place = index - fullWords
        return place < 0 ? .max : place < words.count ? words[place] : 0
    }

    /// The greatest; -1 where there is none.
    var last: Int {
        guard let index = words.lastIndex(where: { $0 != 0 }) else { return fullWords * 64 - 1 }
        return (fullWords + index) * 64 + 63 - words[index].leadingZeroBitCount
    }
}
