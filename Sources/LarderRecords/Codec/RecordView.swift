/// What a record's bytes say that cannot be so.
struct DamagedRecord: Error {
    var what: String
    init(_ what: String) { self.what = what }
}

/// A stored record, read where it lies: see `RecordFormat`.
///
/// Borrows its bytes: it must not be used after the transaction that they belong to. Every offset is checked before
/// it is followed, so that no bytes, however damaged, lead outside the record.
struct RecordView {
    let bytes: UnsafeRawBufferPointer
    let flags: RecordFlags
    let count: Int
    private let entries: Int

    init(_ bytes: UnsafeRawBufferPointer) throws(DamagedRecord) {
        guard bytes.count >= RecordFormat.entityHeader else { throw DamagedRecord("it is shorter than its header") }
        guard bytes[0] == RecordFormat.version else { throw DamagedRecord("its format is \(bytes[0])") }
        self.bytes = bytes
        flags = RecordFlags(rawValue: bytes[1])
        count = Int(UInt16(littleEndian: bytes.loadUnaligned(fromByteOffset: 2, as: UInt16.self)))
        entries = flags.contains(.entity) ? RecordFormat.entityHeader
            : flags.contains(.wideOwner) ? RecordFormat.widePartHeader : RecordFormat.partHeader
        guard RecordFlags.known.isSuperset(of: flags) else { throw DamagedRecord("it has unknown flags") }
        guard bytes.count < RecordFormat.maximumSize, entries + count * RecordFormat.entrySize <= bytes.count else {
            throw DamagedRecord("its fields do not fit in it")
        }
    }

    var isTombstone: Bool { flags.contains(.tombstone) }
    var isSplit: Bool { flags.contains(.split) }
    var isEntity: Bool { flags.contains(.entity) }

    @inline(__always)
    private func word(_ offset: Int) -> UInt32 {
        UInt32(littleEndian: bytes.loadUnaligned(fromByteOffset: offset, as: UInt32.self))
    }

    var type: FieldID { word(8) }

    var storedChecksum: UInt32 { word(4) }

    /// What the checksum should be if the record is stored under this number.
    func checksum(of id: RecordID) -> UInt32 { RecordView.checksum(bytes, of: id) }

    static func checksum(_ bytes: UnsafeRawBufferPointer, of id: RecordID) -> UInt32 {
        let head = UInt32(littleEndian: bytes.loadUnaligned(as: UInt32.self))
        return LarderRecords.checksum(
            UnsafeRawBufferPointer(rebasing: bytes[8...]), seed: id ^ UInt64(head) << 32)
    }

    /// An entity's cache key; empty for a part.
    var key: UnsafeRawBufferPointer {
        get throws(DamagedRecord) {
            guard isEntity else { return UnsafeRawBufferPointer(start: nil, count: 0) }
            let start = entries + count * RecordFormat.entrySize
            let length = Int(word(12))
            guard length <= bytes.count - start else { throw DamagedRecord("its cache key does not fit in it") }
            return UnsafeRawBufferPointer(rebasing: bytes[start..<(start + length)])
        }
    }

    /// Which record's which field holds this part; nil for an entity.
    var owner: (record: RecordID, field: FieldID)? {
        guard !isEntity else { return nil }
        guard flags.contains(.wideOwner) else { return (UInt64(word(16)), word(12)) }
        return (UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: 16, as: UInt64.self)), word(12))
    }

    /// - Precondition: `index` is in `0..<count`, which `init` has found to lie within the bytes.
    @inline(__always)
    func field(_ index: Int) -> FieldID { word(entries + index * RecordFormat.entrySize) }

    @inline(__always)
    func value(_ index: Int) -> ValueWord { ValueWord(bits: word(entries + index * RecordFormat.entrySize + 4)) }

    /// The field's value word; nil where the record does not have it. O(log n).
    func value(of wanted: FieldID) -> ValueWord? {
        var low = 0
        var high = count
        while low < high {
            let middle = (low + high) / 2
            let found = field(middle)
            if found == wanted { return value(middle) }
            if found < wanted { low = middle + 1 } else { high = middle }
        }
        return nil
    }

    var payload: PayloadView { PayloadView(bytes: bytes) }
}

/// The bytes that value words refer to.
struct PayloadView {
    let bytes: UnsafeRawBufferPointer

    /// The value word of a field of a split record, which follows its checksum; null where the bytes are too short.
    var word: ValueWord {
        guard bytes.count >= SplitFieldKey.header else { return ValueWord(.null) }
        return ValueWord(bits: UInt32(littleEndian: bytes.loadUnaligned(fromByteOffset: 4, as: UInt32.self)))
    }

    /// Where a text that is not in the record stands.
    func place(_ word: ValueWord) throws(DamagedRecord) -> TextPlace {
        let offset = Int(word.content)
        guard offset + TextPlace.size <= bytes.count else { throw DamagedRecord("a text's place lies outside it") }
        func number(_ step: Int) -> UInt32 {
            UInt32(littleEndian: bytes.loadUnaligned(fromByteOffset: offset + step, as: UInt32.self))
        }
        return TextPlace(segment: number(0), offset: number(4), count: number(8))
    }

    @inline(__always)
    func eightBytes(_ word: ValueWord) throws(DamagedRecord) -> UInt64 {
        let offset = Int(word.content)
        guard offset + 8 <= bytes.count else { throw DamagedRecord("a number lies outside it") }
        return UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: offset, as: UInt64.self))
    }

    @inline(__always)
    func text(_ word: ValueWord) throws(DamagedRecord) -> UnsafeRawBufferPointer {
        let (length, start) = try length(at: Int(word.content))
        guard length <= bytes.count - start, let base = bytes.baseAddress else {
            throw DamagedRecord("a text lies outside it")
        }
        return UnsafeRawBufferPointer(start: base + start, count: length)
    }

    @inline(__always)
    func list(_ word: ValueWord) throws(DamagedRecord) -> ListView {
        let (count, start) = try length(at: Int(word.content))
        guard count <= (bytes.count - start) / 4 else { throw DamagedRecord("a list lies outside it") }
        return ListView(bytes: bytes, start: start, count: count)
    }

    /// The record that a reference or part refers to, by either kind of word.
    @inline(__always)
    func record(_ word: ValueWord) throws(DamagedRecord) -> RecordID {
        switch word.tag {
        case .reference, .part: RecordID(word.content)
        case .wideReference, .widePart: try eightBytes(word)
        default: throw DamagedRecord("an object was expected in it")
        }
    }

    /// The parts that a value holds, in lists as well.
    func parts(in word: ValueWord) throws(DamagedRecord) -> [RecordID] {
        var found: [RecordID] = []
        var budget = ListBudget(self)
        try collectParts(in: word, into: &found, &budget, depth: 0)
        return found
    }

    private func collectParts(
        in word: ValueWord, into found: inout [RecordID], _ budget: inout ListBudget, depth: Int
    ) throws(DamagedRecord) {
        switch word.tag {
        case .part, .widePart: found.append(try record(word))
        case .list:
            // The recursion ends where no field's type goes.
            guard depth < 32 else { throw DamagedRecord("its lists are nested too deep") }
            let elements = try list(word)
            try budget.take(elements)
            for index in 0..<elements.count {
                try collectParts(in: elements[index], into: &found, &budget, depth: depth + 1)
            }
        default: break
        }
    }

    /// Refuses a value whose lists lie in each other's bytes, before it is copied.
    func requireSeparateLists(in word: ValueWord) throws(DamagedRecord) {
        guard word.tag == .list else { return }
        var budget = ListBudget(self)
        try take(word, from: &budget, depth: 0)
    }

    private func take(_ word: ValueWord, from budget: inout ListBudget, depth: Int) throws(DamagedRecord) {
        guard depth < 32 else { throw DamagedRecord("its lists are nested too deep") }
        let elements = try list(word)
        try budget.take(elements)
        for index in 0..<elements.count where elements[index].tag == .list {
            try take(elements[index], from: &budget, depth: depth + 1)
        }
    }

    /// A length in the variable-length form, seven bits a byte, and where it ends.
    @inline(__always)
    private func length(at offset: Int) throws(DamagedRecord) -> (length: Int, end: Int) {
        guard offset < bytes.count else { throw DamagedRecord("a length lies outside it") }
        let first = bytes[offset]
        if first < 0x80 { return (Int(first), offset + 1) }
        var length = Int(first & 0x7F)
        var position = offset + 1
        var shift = 7
        while shift < 35 {
            guard position < bytes.count else { throw DamagedRecord("a length lies outside it") }
            let byte = bytes[position]
            length |= Int(byte & 0x7F) << shift
            position += 1
            if byte < 0x80 { return (length, position) }
            shift += 7
        }
        throw DamagedRecord("a length is too long")
    }
}

struct ListView {
    let bytes: UnsafeRawBufferPointer
    let start: Int
    let count: Int

    /// Where the words lie.
    var range: Range<Int> { start..<(start + count * 4) }

    /// - Precondition: `index` is in `0..<count`, which `PayloadView.list` has found to lie within the bytes.
    @inline(__always)
    subscript(index: Int) -> ValueWord {
        ValueWord(bits: UInt32(littleEndian: bytes.loadUnaligned(fromByteOffset: start + index * 4, as: UInt32.self)))
    }
}
