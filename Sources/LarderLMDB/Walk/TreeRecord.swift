/// What LMDB keeps about a tree: its flags, its root, and how much of each kind it has.
///
/// ```
/// 0   4  page size, in the free tree    8   8  branch pages      32   8  entries
/// 4   2  flags                          16  8  leaf pages        40   8  root page, all ones if empty
/// 6   2  depth                          24  8  overflow pages
/// ```
struct TreeRecord: Hashable {
    var flags: UInt16
    var depth: Int
    var branchPages: UInt64
    var leafPages: UInt64
    var overflowPages: UInt64
    var entries: UInt64
    var root: UInt64

    static let byteCount = 48
    static let noRoot = UInt64.max
    static let integerKeys: UInt16 = 0x08
    /// Reversed keys, duplicates, integer keys, and the kinds of duplicates.
    static let treeFlags: UInt16 = 0x7E
    /// LMDB's cursors hold a path of this many pages.
    static let greatestDepth = 32

    /// - Parameter bytes: `byteCount` bytes, aligned in any way.
    init(_ bytes: UnsafeRawPointer) {
        flags = unsafe bytes.loadUnaligned(fromByteOffset: 4, as: UInt16.self)
        depth = unsafe Int(bytes.loadUnaligned(fromByteOffset: 6, as: UInt16.self))
        branchPages = unsafe bytes.loadUnaligned(fromByteOffset: 8, as: UInt64.self)
        leafPages = unsafe bytes.loadUnaligned(fromByteOffset: 16, as: UInt64.self)
        overflowPages = unsafe bytes.loadUnaligned(fromByteOffset: 24, as: UInt64.self)
        entries = unsafe bytes.loadUnaligned(fromByteOffset: 32, as: UInt64.self)
        root = unsafe bytes.loadUnaligned(fromByteOffset: 40, as: UInt64.self)
    }

    var isEmpty: Bool { root == Self.noRoot }
}

/// Reads a list of free pages number by number: how many follow, then each, descending.
struct FreeListReader {
    private let capacity: Int
    /// How many are still to come; nil before the first number.
    private var left: UInt64?
    private var previous = UInt64.max

    /// - Parameter capacity: how many numbers the value has room for after the first.
    init(capacity: Int) { self.capacity = capacity }

    enum Number { case count, page, disorder }

    var isDone: Bool { left == 0 }

    @inline(__always)
    mutating func take(_ number: UInt64) -> Number {
        guard let left else {
            guard number <= UInt64(capacity) else { return .disorder }
            self.left = number
            return .count
        }
        guard number < previous else { return .disorder }
        previous = number
        self.left = left - 1
        return .page
    }
}
