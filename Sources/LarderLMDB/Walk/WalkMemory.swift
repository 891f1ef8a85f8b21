/// The memory of one walk, made once and freed with it.
///
/// Safe: it owns all of it, and only the walk that owns this touches it, on one thread. Each piece is as large as what
/// is read into it at once.
@safe final class WalkMemory {
    /// How many leaves are read together.
    static let batch = 64
    /// How much of a long list is read at once; a multiple of eight.
    static let chunk = 65_536

    let pageSize: Int
    /// The branch page at each level, and the root where it is a leaf.
    private var levels: [UnsafeMutableRawPointer] = unsafe []
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
        unsafe leaves = .allocate(byteCount: Self.batch * pageSize, alignment: 16)
        unsafe leaves.initializeMemory(as: UInt8.self, repeating: 0, count: Self.batch * pageSize)
        unsafe extents = .allocate(capacity: pageSize / 2)
        unsafe extents.initialize(repeating: 0, count: pageSize / 2)
        unsafe key = .allocate(byteCount: PageLayout.greatestKey, alignment: 8)
        unsafe key.initializeMemory(as: UInt8.self, repeating: 0)
        unsafe order = .allocate(capacity: Self.batch)
        unsafe order.initialize(repeating: 0)
        unsafe places = .allocate(capacity: Self.batch)
        unsafe places.initialize(repeating: 0)
    }

    deinit {
        unsafe levels.forEach { unsafe $0.deallocate() }
        unsafe leaves.deallocate()
        unsafe extents.deallocate()
        unsafe key.deallocate()
        unsafe order.deallocate()
        unsafe places.deallocate()
        unsafe chunkMemory?.deallocate()
    }

    /// Room for a chunk, made when first needed.
    func chunkBytes() -> UnsafeMutableRawPointer {
        if let chunkMemory = unsafe chunkMemory { return unsafe chunkMemory }
        let bytes = UnsafeMutableRawPointer.allocate(byteCount: Self.chunk, alignment: 16)
        unsafe bytes.initializeMemory(as: UInt8.self, repeating: 0, count: Self.chunk)
        unsafe chunkMemory = unsafe bytes
        return unsafe bytes
    }

    func level(_ index: Int) -> UnsafeMutableRawPointer {
        while unsafe levels.count <= index {
            let level = UnsafeMutableRawPointer.allocate(byteCount: pageSize, alignment: 16)
            unsafe level.initializeMemory(as: UInt8.self, repeating: 0, count: pageSize)
            unsafe levels.append(level)
        }
        return unsafe levels[index]
    }
}
