#if canImport(Darwin)
import Darwin
#elseif canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

/// Builds the memory of a response.
///
/// Offsets, not pointers, are kept across calls, for the memory moves when it grows.
struct ResponseBuilder: ~Copyable {
    /// Visits count eight bytes each in 32 bits.
    static let greatest = 1 << 35

    private(set) var base: UnsafeMutableRawPointer
    private(set) var count = ResponseCell.size
    private var capacity: Int
    private let limit: Int
    private var lastVisit: UInt32 = 0

    /// - Parameters:
    ///   - capacity: The bytes expected, where that is known from an earlier response.
    ///   - limit: The bytes that the response may take.
    init(capacity: Int, limit: Int = greatest) {
        self.limit = min(max(limit, 256), Self.greatest)
        self.capacity = min(max(capacity, 256), self.limit)
        base = Self.allocate(self.capacity)
        store(ResponseCell(.absent), at: 0)
    }

    deinit { free(base) }

    /// Room for `cells` cells, each `.absent`.
    mutating func appendCells(_ cells: Int) throws(ResponseTooLarge) -> Int {
        let offset = try appendUnsetCells(cells)
        memset(base + offset, 0, cells * ResponseCell.size)
        return offset
    }

    /// Room for `cells` cells, every one of which the caller will store.
    @inline(__always)
    mutating func appendUnsetCells(_ cells: Int) throws(ResponseTooLarge) -> Int {
        let offset = (count + 7) & ~7
        let size = cells * ResponseCell.size
        if offset + size > capacity { try grow(to: offset + size) }
        count = offset + size
        return offset
    }

    @inline(__always)
    mutating func appendText(
        _ kind: CellKind, _ text: UnsafeRawPointer, count size: Int
    ) throws(ResponseTooLarge) -> ResponseCell {
        let offset = count
        if offset + size > capacity { try grow(to: offset + size) }
        memcpy(base + offset, text, size)
        count = offset + size
        return ResponseCell(kind, count: UInt32(truncatingIfNeeded: size), payload: UInt64(offset))
    }

    /// Room for `size` bytes of text, more than which unescaping does not make; `write` answers how many it made.
    mutating func appendText(
        _ kind: CellKind, upTo size: Int, _ write: (UnsafeMutablePointer<UInt8>) -> Int
    ) throws(ResponseTooLarge) -> ResponseCell {
        let offset = count
        if offset + size > capacity { try grow(to: offset + size) }
        let written = write((base + offset).assumingMemoryBound(to: UInt8.self))
        count = offset + written
        return ResponseCell(kind, count: UInt32(truncatingIfNeeded: written), payload: UInt64(offset))
    }

    @inline(__always)
    func store(_ cell: ResponseCell, at offset: Int) {
        base.storeBytes(of: cell, toByteOffset: offset, as: ResponseCell.self)
    }

    @inline(__always)
    func cell(at offset: Int) -> ResponseCell {
        base.load(fromByteOffset: offset, as: ResponseCell.self)
    }

    /// Notes that a record was read.
    @inline(__always)
    mutating func appendVisit(_ record: UInt64, caseIndex: UInt32) throws(ResponseTooLarge) {
        let offset = (count + 7) & ~7
        if offset + MemoryLayout<Visit>.size > capacity { try grow(to: offset + MemoryLayout<Visit>.size) }
        let visit = Visit(record: record, caseIndex: caseIndex, previous: lastVisit)
        base.storeBytes(of: visit, toByteOffset: offset, as: Visit.self)
        count = offset + MemoryLayout<Visit>.size
        // No response outgrows `greatest`.
        lastVisit = UInt32(truncatingIfNeeded: offset / 8)
    }

    /// Hands the memory over.
    consuming func finish(shapes: ShapeTable) -> ResponseBuffer {
        let buffer = ResponseBuffer(base: base, count: count, shapes: shapes, lastVisit: lastVisit)
        discard self
        return buffer
    }

    @inline(never)
    private mutating func grow(to needed: Int) throws(ResponseTooLarge) {
        guard needed <= limit else { throw ResponseTooLarge(limit: limit) }
        let larger = max(needed, min(capacity * 2, limit))
        guard let moved = realloc(base, larger) else { throw ResponseTooLarge(limit: capacity) }
        base = moved
        capacity = larger
    }

    private static func allocate(_ size: Int) -> UnsafeMutableRawPointer {
        guard let memory = malloc(size) else { outOfMemory(size) }
        return memory
    }
}

/// A response would take more memory than it may, or than there is.
struct ResponseTooLarge: Error {
    /// The bytes that it may take.
    let limit: Int
}

/// Swift's own collections end the process when memory is exhausted, and so does what is empty yet.
private func outOfMemory(_ size: Int) -> Never {
    fatalError("no memory for a response of \(size) bytes")
}
