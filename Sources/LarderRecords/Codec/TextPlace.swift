/// Where a long text stands outside its record: see `TextHeap`.
struct TextPlace: Equatable {
    static let size = 12

    var segment: UInt32
    /// From the segment's first byte.
    var offset: UInt32
    var count: UInt32
}
