/// The memory of one walk, made once and freed with it.
///
/// Only the walk that owns it touches it, on one thread.
final class WalkMemory {
    /// How many leaves are read together.
    static let batch = 64
    /// How much of a long list is read at once; a multiple of eight.
    static let chunk = 65_536

    let pageSize: Int
    /// The branch page at each level, and the root where it is a leaf.
    private var levels: [UnsafeMutableRawPointer] = []
    let leaves: UnsafeMutableRawPointer
    let extents: UnsafeMutablePointer<UInt16>
    let key: UnsafeMutableRawBufferPointer
    /// The pages of a batch in the order of the file, each with its place in key order in the low byte.
    let order: UnsafeMutableBufferPointer<UInt64>
    /// Where in `leaves` the page of each place lies.
    let places: UnsafeMutableBufferPointer<Int>
    private var chunkMemory: UnsafeMutableRawPointer?

    init(pageSize: Int) {
        self.pageSize = pageSize
        leaves = .allocate(byteCount: Self.batch * pageSize, alignment: 16)
        leaves.initializeMemory(as: UInt8.self, repeating: 0, count: Self.batch * pageSize)
        extents = .allocate(capacity: pageSize / 2)
        extents.initialize(repeating: 0, count: pageSize / 2)
        key = .allocate(byteCount: PageLayout.greatestKey, alignment: 8)
        key.initializeMemory(as: UInt8.self, repeating: 0)
        order = .allocate(capacity: Self.batch)
        order.initialize(repeating: 0)
        places = .allocate(capacity: Self.batch)
        places.initialize(repeating: 0)
    }

    deinit {
        for level in levels { level.deallocate() }
        leaves.deallocate()
        extents.deallocate()
        key.deallocate()
        order.deallocate()
        places.deallocate()
        chunkMemory?.deallocate()
    }

    /// Room for a chunk, made when first needed.
    func chunkBytes() -> UnsafeMutableRawPointer {
        if let chunkMemory { return chunkMemory }
        let bytes = UnsafeMutableRawPointer.allocate(byteCount: Self.chunk, alignment: 16)
        bytes.initializeMemory(as: UInt8.self, repeating: 0, count: Self.chunk)
        chunkMemory = bytes
        return bytes
    }

    func level(_ index: Int) -> UnsafeMutableRawPointer {
        while levels.count <= index {
            let level = UnsafeMutableRawPointer.allocate(byteCount: pageSize, alignment: 16)
            level.initializeMemory(as: UInt8.self, repeating: 0, count: pageSize)
            levels.append(level)
        }
        return levels[index]
    }
}
