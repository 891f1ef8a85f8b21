/// The heap of a generation that is being made, and the one of the generation before, from which texts come.
///
/// Safe: the transaction from which it was made lasts as long as the compaction.
@safe struct TextHeapDraft {
    /// By number; valid as long as the transaction from which they were read.
    private var earlier: [UInt32: UnsafeRawBufferPointer]
    /// Segments that are full, or were asked for, and their numbers. They stay until they are committed.
    private(set) var finished: [(number: UInt32, bytes: [UInt8])] = []
    private var number: UInt32 = 0
    private var segment: [UInt8] = []

    init(earlier: [UInt32: UnsafeRawBufferPointer]) { unsafe self.earlier = unsafe earlier }

    /// Goes on with texts of another transaction.
    mutating func read(from earlier: [UInt32: UnsafeRawBufferPointer]) { unsafe self.earlier = unsafe earlier }

    func earlierText(at place: TextPlace) throws(DamagedRecord) -> UnsafeRawBufferPointer {
        guard let segment = unsafe earlier[place.segment] else {
            throw DamagedRecord("the segment of a text is missing")
        }
        return unsafe try TextHeap.text(at: place, in: segment)
    }

    /// Takes in a text; nil if the heap has no numbers left for it.
    mutating func append(_ text: UnsafeRawBufferPointer) -> TextPlace? {
        guard number < .max, let count = UInt32(exactly: text.count) else { return nil }
        if segment.isEmpty { segment.append(contentsOf: repeatElement(0, count: TextHeap.header)) }
        guard let offset = UInt32(exactly: segment.count) else { return nil }
        let place = TextPlace(segment: number, offset: offset, count: count)
        unsafe segment.append(contentsOf: text)
        if segment.count >= TextHeap.segmentSize { finishSegment() }
        return place
    }

    mutating func finishSegment() {
        guard !segment.isEmpty else { return }
        unsafe segment.withUnsafeMutableBytes { bytes in
            let sum = unsafe TextHeapDraft.checksum(of: UnsafeRawBufferPointer(bytes), number: number)
            unsafe bytes.storeBytes(of: sum.littleEndian, as: UInt32.self)
        }
        finished.append((number, segment))
        segment = []
        number += 1
    }

    mutating func forgetFinished() { finished = [] }

    /// The checksum of a segment, of which the first four bytes are left out.
    static func checksum(of segment: UnsafeRawBufferPointer, number: UInt32) -> UInt32 {
        unsafe LarderRecords.checksum(
            UnsafeRawBufferPointer(rebasing: segment[TextHeap.header...]), seed: TextHeap.firstSegment + UInt64(number))
    }
}
