/// A set of RecordIDs, with one bit for each number.
///
/// It takes up to an eighth of a byte for each number that the cache has ever given, and nothing for blocks of numbers
/// of which it holds none.
package struct RecordSet: Sendable {
    private static let blockBits = 15
    private static let wordCount = 1 << (blockBits - 6)

    private struct Block {
        /// Empty where the block holds no number.
        var words: [UInt64] = []
        var count = 0
    }

    private var blocks: [Block] = []
    private(set) var count = 0

    package init() {}

    /// Whether a number is one that a store can have: those of layers are too large for a set of bits.
    package static func holds(_ id: UInt64) -> Bool { id < OverlayNumbers.firstRecord }

    var isEmpty: Bool { count == 0 }

    private static func place(_ id: RecordID) -> (block: Int, word: Int, bit: UInt64) {
        (Int(id >> blockBits), Int(id >> 6) & (wordCount - 1), 1 << (id & 63))
    }

    package func contains(_ id: UInt64) -> Bool {
        let (block, word, bit) = Self.place(id)
        return block < blocks.count && blocks[block].count > 0 && blocks[block].words[word] & bit != 0
    }

    /// - Returns: Whether it was not in the set.
    /// - Complexity: O(1), and O(n) in the number's blocks where it is greater than all before.
    @discardableResult
    package mutating func insert(_ id: UInt64) -> Bool {
        let (block, word, bit) = Self.place(id)
        if block >= blocks.count {
            blocks.append(contentsOf: repeatElement(Block(), count: block + 1 - blocks.count))
        }
        if blocks[block].words.isEmpty { blocks[block].words = Array(repeating: 0, count: Self.wordCount) }
        guard blocks[block].words[word] & bit == 0 else { return false }
        blocks[block].words[word] |= bit
        blocks[block].count += 1
        count += 1
        return true
    }

    /// Takes out the smallest number that is not below `start`; nil where there is none.
    mutating func popFirst(from start: RecordID) -> RecordID? {
        var (block, word, bit) = Self.place(start)
        while block < blocks.count {
            if blocks[block].count > 0 {
                while word < Self.wordCount {
                    // The bits from `bit` on.
                    let found = blocks[block].words[word] & (0 &- bit)
                    if found != 0 {
                        let lowest = found.trailingZeroBitCount
                        blocks[block].words[word] &= ~(1 << UInt64(lowest))
                        blocks[block].count -= 1
                        count -= 1
                        if blocks[block].count == 0 { blocks[block].words = [] }
                        return RecordID(block) << Self.blockBits | RecordID(word) << 6 | RecordID(lowest)
                    }
                    (word, bit) = (word + 1, 1)
                }
            }
            (block, word, bit) = (block + 1, 0, 1)
        }
        return nil
    }
}
