import LarderLMDB

/// The long texts of a compacted generation, one after the other in segments.
///
/// A value of more than half a page takes whole pages in LMDB and leaves half of one empty on average; and records
/// that are large beside a page leave gaps in it. Compaction therefore moves long texts together. A heap is written
/// once, with its generation: texts that change later stand in their records, and what they leave behind goes with the
/// next compaction.
///
/// A segment is an entry of the table `texts` under a number from `TextHeap.firstSegment` on: the checksum of the rest
/// and of the number, in four bytes, and texts without anything between them. No text crosses segments.
///
/// Safe: a segment is looked up in the transaction that reads it, and a text is checked to lie in it.
@safe struct TextHeap {
    /// Above all FieldIDs, with which the table is shared.
    static let firstSegment: UInt64 = 1 << 32
    /// A segment is as large as this at the least, but for the last.
    static let segmentSize = 1 << 20
    static let header = 4

    private var number: UInt32?
    private var segment = unsafe UnsafeRawBufferPointer(start: nil, count: 0)

    /// A far text. Valid as long as the transaction.
    @inline(__always)
    mutating func text(
        at place: TextPlace, _ transaction: borrowing some RecordSnapshot & ~Copyable, _ tables: Tables
    ) throws -> UnsafeRawBufferPointer {
        if number != place.segment {
            guard let stored = try transaction.get(Self.firstSegment + UInt64(place.segment), in: tables.texts) else {
                throw DamagedRecord("the segment of a text is missing")
            }
            // The bytes stay where they are until the transaction changes or ends.
            unsafe segment = unsafe stored.withUnsafeBytes { unsafe $0 }
            number = place.segment
        }
        return unsafe try Self.text(at: place, in: segment)
    }

    static func text(
        at place: TextPlace, in segment: UnsafeRawBufferPointer
    ) throws(DamagedRecord) -> UnsafeRawBufferPointer {
        let (start, count) = (Int(place.offset), Int(place.count))
        guard start >= header, start <= segment.count, count <= segment.count - start else {
            throw DamagedRecord("a text lies outside its segment")
        }
        return unsafe UnsafeRawBufferPointer(rebasing: segment[start..<(start + count)])
    }
}
