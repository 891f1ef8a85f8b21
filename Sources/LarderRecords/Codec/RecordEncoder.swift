/// Writes records and values in the form that `RecordFormat` describes, one after the other into one array.
///
/// Offsets count from the start of the record or value that is being written.
struct RecordEncoder {
    private(set) var bytes: [UInt8] = []
    /// Takes in the long texts while a cache is compacted.
    var heap: TextHeapDraft?
    /// Where the record or value that is being written starts.
    private var start = 0

    /// One field of a record that is being written.
    struct Entry {
        var field: FieldID
        var source: Source
    }

    enum Source {
        /// A value of a response; objects and lists are resolved by `ParsedValues`.
        case parsed(ParsedCell)
        /// A value of the record as it was, which is copied.
        case stored(ValueWord, PayloadView)
    }

    enum Identity {
        case entity(key: UnsafeRawBufferPointer)
        case part(owner: RecordID, field: FieldID)
    }

    /// Appends a record and answers where it stands.
    ///
    /// - Parameter entries: In ascending order of FieldIDs, each once.
    mutating func encode(
        _ id: RecordID, _ flags: RecordFlags, type: FieldID, identity: Identity,
        entries: some RandomAccessCollection<Entry>, _ values: ParsedValues?
    ) throws -> Range<Int> {
        start = bytes.count
        guard let count = UInt16(exactly: entries.count) else { throw RecordEncoder.tooLarge }
        var flags = flags.subtracting(.wideOwner)
        if case .part(let owner, _) = identity, owner > UInt64(UInt32.max) { flags.insert(.wideOwner) }
        bytes.append(RecordFormat.version)
        bytes.append(flags.rawValue)
        append(count)
        append(UInt32(0))
        append(type)
        switch identity {
        case .entity(let key): append(UInt32(truncatingIfNeeded: key.count))
        case .part(let owner, let field):
            append(field)
            if flags.contains(.wideOwner) { append(owner) } else { append(UInt32(truncatingIfNeeded: owner)) }
        }
        let table = bytes.count
        bytes.append(contentsOf: repeatElement(0, count: entries.count * RecordFormat.entrySize))
        if case .entity(let key) = identity { bytes.append(contentsOf: key) }
        var place = table
        for entry in entries {
            let word = try encode(entry.source, values)
            store(entry.field, at: place)
            store(word.bits, at: place + 4)
            place += RecordFormat.entrySize
        }
        let range = start..<bytes.count
        guard range.count < RecordFormat.maximumSize else { throw RecordEncoder.tooLarge }
        let sum = bytes.withUnsafeBytes { RecordView.checksum(UnsafeRawBufferPointer(rebasing: $0[range]), of: id) }
        store(sum, at: start + 4)
        return range
    }

    /// Appends one field of a split record and answers where it stands.
    mutating func encodeSplitField(
        _ key: SplitFieldKey, _ source: Source, _ values: ParsedValues?
    ) throws -> Range<Int> {
        start = bytes.count
        append(UInt64(0))
        let word = try encode(source, values)
        store(word.bits, at: start + 4)
        guard bytes.count - start < RecordFormat.maximumSize else { throw RecordEncoder.tooLarge }
        let range = start..<bytes.count
        store(bytes.withUnsafeBytes { key.checksum(of: UnsafeRawBufferPointer(rebasing: $0[range])) }, at: start)
        return range
    }

    /// Forgets what was encoded, and keeps the memory.
    mutating func removeAll() { bytes.removeAll(keepingCapacity: true) }

    /// Appends a list of references in the form of a split field, but without its checksum.
    mutating func encodeReferences(_ records: [RecordID]) {
        start = bytes.count
        append(UInt64(0))
        let word = list(count: records.count) { encoder, index in encoder.reference(records[index], isPart: false) }
        store(word.bits, at: start + 4)
    }

    private mutating func encode(_ source: Source, _ values: ParsedValues?) throws -> ValueWord {
        switch source {
        case .parsed(let cell):
            guard let values else { throw DamagedRecord("a value has no source") }
            return try encode(cell, values)
        case .stored(let word, let payload): return try copy(word, payload)
        }
    }

    // The recursion is as deep as the field's type has lists.
    private mutating func encode(_ cell: ParsedCell, _ values: ParsedValues) throws -> ValueWord {
        switch cell.kind {
        case .absent, .null: return ValueWord(.null)
        case .no: return ValueWord(.no)
        case .yes: return ValueWord(.yes)
        case .int:
            let value = Int64(bitPattern: cell.payload)
            if ValueWord.fitsSmallInt(value) { return ValueWord(.smallInt, UInt32(truncatingIfNeeded: value)) }
            return try eightBytes(.int, cell.payload)
        case .float: return try eightBytes(.float, cell.payload)
        case .number: return try text(.number, values.text(cell))
        case .string: return try text(.string, values.text(cell))
        case .json: return try text(.json, values.text(cell))
        case .object:
            let object = cell.offset
            return reference(values.records[object], isPart: values.isPart(object))
        case .list:
            return try list(count: Int(cell.count)) { (encoder, index) throws in
                try encoder.encode(values.items[cell.offset + index], values)
            }
        }
    }

    // The recursion ends where `RecordView` does: a list inside itself is found by its depth.
    private mutating func copy(_ word: ValueWord, _ payload: PayloadView, depth: Int = 0) throws -> ValueWord {
        switch word.tag {
        case .null, .no, .yes, .smallInt, .reference, .part: return word
        case .int: return try eightBytes(.int, payload.eightBytes(word))
        case .float: return try eightBytes(.float, payload.eightBytes(word))
        case .number: return try text(.number, payload.text(word))
        case .string: return try text(.string, payload.text(word))
        case .json: return try text(.json, payload.text(word))
        case .wideReference: return try eightBytes(.wideReference, payload.eightBytes(word))
        case .widePart: return try eightBytes(.widePart, payload.eightBytes(word))
        case .farString: return try farText(.farString, inline: .string, payload.place(word))
        case .farJSON: return try farText(.farJSON, inline: .json, payload.place(word))
        case .list:
            guard depth < 32 else { throw DamagedRecord("its lists are nested too deep") }
            let elements = try payload.list(word)
            return try list(count: elements.count) { (encoder, index) throws in
                try encoder.copy(elements[index], payload, depth: depth + 1)
            }
        case nil: throw DamagedRecord("a value has an unknown tag")
        }
    }

    private mutating func offset(_ tag: ValueTag) -> ValueWord {
        ValueWord(tag, UInt32(truncatingIfNeeded: min(bytes.count - start, RecordFormat.maximumSize - 1)))
    }

    private mutating func eightBytes(_ tag: ValueTag, _ value: UInt64) throws -> ValueWord {
        let word = offset(tag)
        append(value)
        return word
    }

    private mutating func text(_ tag: ValueTag, _ text: UnsafeRawBufferPointer) throws -> ValueWord {
        if text.count > RecordFormat.farThreshold, heap != nil, tag != .number, let place = heap?.append(text) {
            return far(tag == .json ? .farJSON : .farString, place)
        }
        let word = offset(tag)
        appendLength(text.count)
        bytes.append(contentsOf: text)
        guard bytes.count - start < RecordFormat.maximumSize else { throw RecordEncoder.tooLarge }
        return word
    }

    /// A text that is far already stays where it is, unless this is a compaction, which lays all of them out anew.
    private mutating func farText(_ tag: ValueTag, inline: ValueTag, _ place: TextPlace) throws -> ValueWord {
        guard let heap else { return far(tag, place) }
        return try text(inline, heap.earlierText(at: place))
    }

    private mutating func far(_ tag: ValueTag, _ place: TextPlace) -> ValueWord {
        let word = offset(tag)
        append(place.segment)
        append(place.offset)
        append(place.count)
        return word
    }

    private mutating func reference(_ record: RecordID, isPart: Bool) -> ValueWord {
        if record < 1 << 28 { return ValueWord(isPart ? .part : .reference, UInt32(record)) }
        let word = offset(isPart ? .widePart : .wideReference)
        append(record)
        return word
    }

    private mutating func list(
        count: Int, _ element: (inout RecordEncoder, Int) throws -> ValueWord
    ) rethrows -> ValueWord {
        let word = offset(.list)
        appendLength(count)
        var place = bytes.count
        bytes.append(contentsOf: repeatElement(0, count: count * 4))
        for index in 0..<count {
            let value = try element(&self, index)
            store(value.bits, at: place)
            place += 4
        }
        return word
    }

    private mutating func appendLength(_ length: Int) { appendVariableLength(UInt64(length), to: &bytes) }

    private mutating func append<Number: FixedWidthInteger>(_ number: Number) { appendLittleEndian(number, to: &bytes) }

    private mutating func store(_ number: UInt32, at place: Int) {
        bytes.withUnsafeMutableBytes { $0.storeBytes(of: number.littleEndian, toByteOffset: place, as: UInt32.self) }
    }

    static var tooLarge: RecordError {
        RecordError(.tooLarge, "a record of 256 MiB or more does not fit the cache; ask for less at a time")
    }
}
