/// What a record's bytes say that cannot be so.
struct DamagedRecord: Error {
    var what: String
    init(_ what: String) { self.what = what }

    static var listsTooDeep: DamagedRecord { DamagedRecord("its lists are nested too deep") }
}

/// A stored record, read where it lies: see `RecordFormat`.
///
/// Safe: it borrows its bytes, and must not be used after the transaction or overlay that they belong to. Every offset
/// is checked before it is followed, so that no bytes, however damaged, lead outside the record. An index is the
/// caller's own, and not the bytes': an assertion checks it in debug builds and tests.
@safe struct RecordView {
    let bytes: UnsafeRawBufferPointer
    let flags: RecordFlags
    let count: Int
    private let entries: Int

    init(_ bytes: UnsafeRawBufferPointer) throws(DamagedRecord) {
        guard bytes.count >= RecordFormat.entityHeader else { throw DamagedRecord("it is shorter than its header") }
        guard unsafe bytes[0] == RecordFormat.version else { throw DamagedRecord(unsafe "its format is \(bytes[0])") }
        unsafe self.bytes = unsafe bytes
        flags = unsafe RecordFlags(rawValue: bytes[1])
        count = unsafe Int(UInt16(littleEndian: bytes.loadUnaligned(fromByteOffset: 2, as: UInt16.self)))
        entries =
            flags.contains(.entity)
            ? RecordFormat.entityHeader
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
        unsafe UInt32(littleEndian: bytes.loadUnaligned(fromByteOffset: offset, as: UInt32.self))
    }

    var type: FieldID { word(8) }

    var storedChecksum: UInt32 { word(4) }

    /// What the checksum should be if the record is stored under this number.
    func checksum(of id: RecordID) -> UInt32 { unsafe RecordView.checksum(bytes, of: id) }

    static func checksum(_ bytes: UnsafeRawBufferPointer, of id: RecordID) -> UInt32 {
        let head = unsafe UInt32(littleEndian: bytes.loadUnaligned(as: UInt32.self))
        return unsafe LarderRecords.checksum(
            UnsafeRawBufferPointer(rebasing: bytes[8...]), seed: id ^ UInt64(head) << 32)
    }

    /// An entity's cache key; empty for a part.
    var key: UnsafeRawBufferPointer {
        get throws(DamagedRecord) {
            guard isEntity else { return unsafe UnsafeRawBufferPointer(start: nil, count: 0) }
            let start = entries + count * RecordFormat.entrySize
            let length = Int(word(12))
            guard unsafe length <= bytes.count - start else { throw DamagedRecord("its cache key does not fit in it") }
            return unsafe UnsafeRawBufferPointer(rebasing: bytes[start..<(start + length)])
        }
    }

    /// Which record's which field holds this part; nil for an entity.
    var owner: (record: RecordID, field: FieldID)? {
        guard !isEntity else { return nil }
        guard flags.contains(.wideOwner) else { return (UInt64(word(16)), word(12)) }
        return unsafe (UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: 16, as: UInt64.self)), word(12))
    }

    /// Where a field's entry lies, which `init` has found to be within the bytes.
    ///
    /// - Precondition: `index` is in `0..<count`.
    @inline(__always)
    private func entry(_ index: Int) -> Int {
        assert(index >= 0 && index < count, "field \(index) of \(count)")
        return entries + index * RecordFormat.entrySize
    }

    @inline(__always)
    func field(_ index: Int) -> FieldID { word(entry(index)) }

    @inline(__always)
    func value(_ index: Int) -> ValueWord { ValueWord(bits: word(entry(index) + 4)) }

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

    var payload: PayloadView { unsafe PayloadView(bytes: bytes) }
}
