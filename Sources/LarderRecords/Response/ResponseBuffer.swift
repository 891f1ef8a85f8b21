/// A record that was read for a response, and the plan's case by which it was read: 16 bytes at a multiple of 8 in the
/// response's buffer, each leading to the one before.
struct Visit {
    /// For records of which nothing could be read: any change of theirs matters.
    static let anyField = UInt32.max

    var record: UInt64
    var caseIndex: UInt32
    /// The offset of the visit before, in units of 8 bytes; 0 where there is none.
    var previous: UInt32
}

/// The memory of one response: the root's cell at offset 0, then blocks of cells and text as they came.
///
/// `ResponseBuilder` alone writes it, before the buffer exists; every offset in it comes from there.
///
/// Safe: it owns the memory, which never changes; a text that it lends lasts as long as it does.
final class ResponseBuffer: Sendable {
    private let memory: FlatBuffer<UInt8>
    let shapes: ShapeTable
    /// Where the last visit stands, in units of 8 bytes; 0 where the response does not come from a cache.
    private let lastVisit: UInt32

    /// The bytes that are in use: the memory may have some more.
    let count: Int

    init(_ memory: consuming FlatBuffer<UInt8>, count: Int, shapes: ShapeTable, lastVisit: UInt32) {
        self.memory = memory
        self.count = count
        self.shapes = shapes
        self.lastVisit = lastVisit
    }

    /// Calls `body` with each record that was read, the last first.
    func forEachVisit(_ body: (Visit) -> Void) {
        var next = lastVisit
        while next != 0 {
            let visit = memory.load(at: Int(next) * 8, as: Visit.self)
            body(visit)
            next = visit.previous
        }
    }

    /// The record from which an object other than the root was read; nil where the response does not come from a cache.
    /// The reader notes its visit right before the block of its fields.
    @inline(__always)
    func record(of cell: ResponseCell) -> UInt64? {
        guard lastVisit != 0, cell.kind == .object, cell.offset >= ResponseCell.size + MemoryLayout<Visit>.size else {
            return nil
        }
        let visit = memory.load(at: cell.offset - MemoryLayout<Visit>.size, as: Visit.self)
        assert(visit.caseIndex == cell.count, "An object's visit stands before its fields")
        return visit.record
    }

    @inline(__always)
    func cell(at offset: Int) -> ResponseCell { memory.load(at: offset, as: ResponseCell.self) }

    /// Valid as long as this lives.
    @inline(__always)
    func text(_ cell: ResponseCell) -> UnsafeBufferPointer<UInt8> {
        unsafe memory[cell.offset..<(cell.offset + Int(cell.count))]
    }

    func shape(_ cell: ResponseCell) -> ObjectShape { shapes.shapes[Int(cell.count)] }
}
