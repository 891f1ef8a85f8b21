/// Builds the memory of a response.
///
/// Offsets, not pointers, are kept across calls, for the memory moves when it grows.
///
/// Safe: it owns the memory, in which it makes room before it copies a text or has one written; no caller gives it a
/// text of that memory.
struct ResponseBuilder: ~Copyable {
    /// Visits count eight bytes each in 32 bits.
    static let greatest = 1 << 35

    private var memory: FlatBuffer<UInt8>
    private(set) var count = ResponseCell.size
    private let limit: Int
    private var lastVisit: UInt32 = 0

    /// - Parameters:
    ///   - capacity: The bytes expected, where that is known from an earlier response.
    ///   - limit: The bytes that the response may take.
    init(capacity: Int, limit: Int = greatest) {
        self.limit = min(max(limit, 256), Self.greatest)
        memory = FlatBuffer(count: min(max(capacity, 256), self.limit))
        store(ResponseCell(.absent), at: 0)
    }

    /// Room for `size` bytes at a multiple of 8.
    @inline(__always)
    private mutating func extend(by size: Int) throws(ResponseTooLarge) -> Int {
        let offset = (count + 7) & ~7
        if offset + size > memory.count { try grow(to: offset + size) }
        count = offset + size
        return offset
    }

    /// Room for `cells` cells, each `.absent`.
    mutating func appendCells(_ cells: Int) throws(ResponseTooLarge) -> Int {
        let offset = try appendUnsetCells(cells)
        memory.clear(offset..<(offset + cells * ResponseCell.size))
        return offset
    }

    /// Room for `cells` cells, every one of which the caller will store.
    @inline(__always)
    mutating func appendUnsetCells(_ cells: Int) throws(ResponseTooLarge) -> Int {
        try extend(by: cells * ResponseCell.size)
    }

    @inline(__always)
    mutating func appendText(
        _ kind: CellKind, _ text: UnsafeRawBufferPointer
    ) throws(ResponseTooLarge) -> ResponseCell {
        let offset = count
        if offset + text.count > memory.count { try grow(to: offset + text.count) }
        unsafe memory.copy(text, to: offset)
        count = offset + text.count
        return ResponseCell(kind, count: UInt32(truncatingIfNeeded: text.count), payload: UInt64(offset))
    }

    /// Room for `size` bytes of text, more than which unescaping does not make; `write` answers how many it made.
    mutating func appendText(
        _ kind: CellKind, upTo size: Int, _ write: (UnsafeMutablePointer<UInt8>) -> Int
    ) throws(ResponseTooLarge) -> ResponseCell {
        let offset = count
        if offset + size > memory.count { try grow(to: offset + size) }
        let written = unsafe memory.write(at: offset, upTo: size, write)
        count = offset + written
        return ResponseCell(kind, count: UInt32(truncatingIfNeeded: written), payload: UInt64(offset))
    }

    @inline(__always)
    mutating func store(_ cell: ResponseCell, at offset: Int) { memory.store(cell, at: offset) }

    @inline(__always)
    func cell(at offset: Int) -> ResponseCell { memory.load(at: offset, as: ResponseCell.self) }

    /// Notes that a record was read.
    @inline(__always)
    mutating func appendVisit(_ record: UInt64, caseIndex: UInt32) throws(ResponseTooLarge) {
        let offset = try extend(by: MemoryLayout<Visit>.size)
        memory.store(Visit(record: record, caseIndex: caseIndex, previous: lastVisit), at: offset)
        // No response outgrows `greatest`.
        lastVisit = UInt32(truncatingIfNeeded: offset / 8)
    }

    /// Hands the memory over.
    consuming func finish(shapes: ShapeTable) -> ResponseBuffer {
        ResponseBuffer(memory, count: count, shapes: shapes, lastVisit: lastVisit)
    }

    @inline(never)
    private mutating func grow(to needed: Int) throws(ResponseTooLarge) {
        guard needed <= limit else { throw ResponseTooLarge(limit: limit) }
        guard memory.resize(to: max(needed, min(memory.count * 2, limit))) else {
            throw ResponseTooLarge(limit: memory.count)
        }
    }
}

/// A response would take more memory than it may, or than there is.
struct ResponseTooLarge: Error {
    /// The bytes that it may take.
    let limit: Int
}
