/// The header and the nodes of one branch or leaf page, checked so that following them stays inside the page.
///
/// ```
/// page:  0   8  page number       10  2  flags: 1 branch, 2 leaf, 4 overflow
///        12  2  lower, end of the offsets         14  2  upper, start of the nodes
///        16  2  offset of each node, in key order
/// node:  0   2  size or page, low 4  2  flags: 1 overflow, 2 tree, 4 duplicates; or page, high
///        2   2  size or page, mid 6  2  size of the key        8  -  key, then value
/// ```
/// An overflow page has its number of pages at 12, in four bytes.
struct PageLayout {
    static let headerSize = 16
    static let nodeHeaderSize = 8
    static let branch: UInt16 = 1
    static let leaf: UInt16 = 2
    static let overflow: UInt16 = 4

    static let bigNode: UInt16 = 1
    static let treeNode: UInt16 = 2

    let pageSize: Int
    /// LMDB splits pages so that two of the greatest nodes fit.
    let greatestNode: Int
    static let greatestKey = 511

    init(pageSize: Int) {
        self.pageSize = pageSize
        greatestNode = ((pageSize - Self.headerSize) / 2 & ~1) - 2
    }

    @inline(__always)
    func number(_ page: UnsafeRawPointer) -> UInt64 { unsafe page.loadUnaligned(as: UInt64.self) }

    @inline(__always)
    func flags(_ page: UnsafeRawPointer) -> UInt16 { unsafe page.loadUnaligned(fromByteOffset: 10, as: UInt16.self) }

    @inline(__always)
    func nodeCount(_ page: UnsafeRawPointer) -> Int {
        unsafe (Int(page.loadUnaligned(fromByteOffset: 12, as: UInt16.self)) - Self.headerSize) >> 1
    }

    @inline(__always)
    func node(_ index: Int, _ page: UnsafeRawPointer) -> UnsafeRawPointer {
        unsafe page + Int(page.loadUnaligned(fromByteOffset: Self.headerSize + 2 * index, as: UInt16.self))
    }

    @inline(__always)
    func key(_ node: UnsafeRawPointer) -> UnsafeRawBufferPointer {
        unsafe UnsafeRawBufferPointer(
            start: node + Self.nodeHeaderSize, count: Int(node.loadUnaligned(fromByteOffset: 6, as: UInt16.self)))
    }

    @inline(__always)
    func child(_ node: UnsafeRawPointer) -> UInt64 { unsafe node.loadUnaligned(as: UInt64.self) & 0xFFFF_FFFF_FFFF }

    @inline(__always)
    func nodeFlags(_ node: UnsafeRawPointer) -> UInt16 { unsafe node.loadUnaligned(fromByteOffset: 4, as: UInt16.self) }

    @inline(__always)
    func valueSize(_ node: UnsafeRawPointer) -> Int { unsafe Int(node.loadUnaligned(as: UInt32.self)) }

    @inline(__always)
    func value(_ node: UnsafeRawPointer) -> UnsafeRawPointer { unsafe node + Self.nodeHeaderSize + key(node).count }

    /// Nil if the page is a sound branch or leaf; otherwise what is wrong with it.
    ///
    /// Nodes must tile the page from `upper` to its end: LMDB moves them about by their sizes when it writes.
    ///
    /// - Parameter extents: `pageSize / 2` zeroes, which are zeroes again where the page is sound.
    func fault(
        _ page: UnsafeRawPointer, isBranch: Bool, fewestNodes: Int, extents: UnsafeMutablePointer<UInt16>
    ) -> String? {
        let lower = unsafe Int(page.loadUnaligned(fromByteOffset: 12, as: UInt16.self))
        let upper = unsafe Int(page.loadUnaligned(fromByteOffset: 14, as: UInt16.self))
        guard lower >= Self.headerSize, lower <= upper, upper <= pageSize, (lower | upper) & 1 == 0 else {
            return "its free space runs from \(lower) to \(upper)"
        }
        let count = (lower - Self.headerSize) >> 1
        guard count >= fewestNodes else { return "it holds \(count) nodes" }
        for index in 0..<count {
            let offset = unsafe Int(page.loadUnaligned(fromByteOffset: Self.headerSize + 2 * index, as: UInt16.self))
            guard offset >= upper, offset & 1 == 0, offset + Self.nodeHeaderSize <= pageSize else {
                return "node \(index) would start at \(offset)"
            }
            let node = unsafe page + offset
            var size = unsafe Self.nodeHeaderSize + Int(node.loadUnaligned(fromByteOffset: 6, as: UInt16.self))
            if !isBranch {
                let flags = unsafe nodeFlags(node)
                guard flags <= Self.treeNode else { return "node \(index) has flags \(flags)" }
                unsafe size += flags == Self.bigNode ? 8 : valueSize(node)
                guard size <= greatestNode else { return "node \(index) would hold \(size) bytes" }
            }
            guard offset + size <= pageSize else { return "node \(index) would end at \(offset + size)" }
            unsafe extents[offset >> 1] = UInt16(truncatingIfNeeded: (size + 1) >> 1)
        }
        var place = upper >> 1
        for _ in 0..<count {
            guard place < pageSize >> 1, unsafe extents[place] != 0 else { return "its nodes overlap or leave a gap" }
            let extent = unsafe Int(extents[place])
            unsafe extents[place] = 0
            place += extent
        }
        return place == pageSize >> 1 ? nil : "its nodes do not reach its end"
    }
}
