/// What an overlay has under a number: bytes, or that there is nothing any more.
struct Overlaid {
    /// Empty where what is stored is removed: nothing that is stored is empty.
    private let content: UnsafeRawBufferPointer

    static var removed: Overlaid { Overlaid(UnsafeRawBufferPointer(start: nil, count: 0)) }

    init(_ content: UnsafeRawBufferPointer) { self.content = content }

    @inline(__always)
    var bytes: UnsafeRawBufferPointer? { content.isEmpty ? nil : content }

    func isSame(as other: Overlaid) -> Bool { hasSameBytes(content, other.content) }
}

/// The records of an overlay by their numbers.
///
/// Open addressing, twice as many places as records: every record that is read through layers is looked for in it, and
/// hardly any is there. Numbers are given in order, so a multiplication spreads them.
struct OverlayRecords {
    /// 0 where a place is free, which is no record's number.
    private var ids: [RecordID] = Array(repeating: 0, count: 16)
    private var values: [Overlaid] = Array(repeating: .removed, count: 16)
    private var shift: UInt64 = 60
    private(set) var count = 0

    @inline(__always)
    private func place(of id: RecordID) -> Int {
        let mask = ids.count - 1
        var place = Int(truncatingIfNeeded: (id &* 0x9E37_79B9_7F4A_7C15) >> shift)
        while ids[place] != id, ids[place] != 0 { place = (place + 1) & mask }
        return place
    }

    @inline(__always)
    subscript(id: RecordID) -> Overlaid? {
        let place = place(of: id)
        return ids[place] == 0 ? nil : values[place]
    }

    mutating func set(_ id: RecordID, _ value: Overlaid) {
        guard id != 0 else { return }
        if (count + 1) * 2 > ids.count { grow() }
        let place = place(of: id)
        if ids[place] == 0 { count += 1 }
        ids[place] = id
        values[place] = value
    }

    private mutating func grow() {
        let (oldIDs, oldValues) = (ids, values)
        ids = Array(repeating: 0, count: oldIDs.count * 2)
        values = Array(repeating: .removed, count: oldIDs.count * 2)
        shift -= 1
        count = 0
        for (id, value) in zip(oldIDs, oldValues) where id != 0 { set(id, value) }
    }
}
