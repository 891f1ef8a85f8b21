/// Writes records and values in the form that `RecordFormat` describes, one after the other into one buffer.
///
/// Offsets count from the start of the record or value that is being written.
///
/// Safe: its buffer asserts where it writes. What `bytes` lends is read before more is encoded, and what an `Entry` or
/// an `Identity` borrows is copied before the call returns that is given it.
struct RecordEncoder {
    private let buffer: ByteBuffer
    /// Takes in the long texts while a cache is compacted.
    var heap: TextHeapDraft?
    /// Where the record or value that is being written starts.
    private var start = 0
    /// Where the next field of the record that is being written stands in its table.
    private var nextEntry = 0

    /// - Parameter buffer: Its bytes are forgotten, and this encoder alone uses it from now on.
    init(_ buffer: ByteBuffer = ByteBuffer()) {
        self.buffer = buffer
        buffer.removeAll()
    }

    /// All that was encoded; valid until more is.
    var bytes: UnsafeRawBufferPointer { unsafe buffer.bytes }

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
        /// A list of references, with 0 for null.
        case references([RecordID])
        /// The same, of which some are parts.
        case elements([RecordID], parts: Set<RecordID>)
        case reference(RecordID)
    }

    /// Safe: the key is read before the call that it is given to returns.
    @safe enum Identity {
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
        try begin(flags, type: type, identity: identity, count: entries.count)
        for entry in entries {
            switch entry.source {
            case .parsed(let cell):
                guard let values else { throw DamagedRecord("a value has no source") }
                try append(entry.field, cell, values)
            case .stored(let word, let payload): append(entry.field, try copy(word, payload))
            case .references(let records): append(entry.field, list(of: records))
            case .elements(let records, let parts): append(entry.field, list(of: records, parts))
            case .reference(let record): append(entry.field, reference(record, isPart: false))
            }
        }
        return try end(id)
    }

    /// Begins a record, of which `count` fields are then appended.
    mutating func begin(_ flags: RecordFlags, type: FieldID, identity: Identity, count: Int) throws(RecordError) {
        start = buffer.count
        guard let fieldCount = UInt16(exactly: count) else { throw RecordEncoder.tooLarge }
        var flags = flags.subtracting(.wideOwner)
        if case .part(let owner, _) = identity, owner > UInt64(UInt32.max) { flags.insert(.wideOwner) }
        append(RecordFormat.version)
        append(flags.rawValue)
        append(fieldCount)
        append(UInt32(0))
        append(type)
        switch identity {
        case .entity(let key): append(UInt32(truncatingIfNeeded: key.count))
        case .part(let owner, let field):
            append(field)
            if flags.contains(.wideOwner) { append(owner) } else { append(UInt32(truncatingIfNeeded: owner)) }
        }
        nextEntry = buffer.count
        buffer.appendZeros(count * RecordFormat.entrySize)
        if case .entity(let key) = identity { unsafe buffer.append(key) }
    }

    /// Appends a field to the record that is being written, in ascending order of FieldIDs.
    @inline(__always)
    mutating func append(_ field: FieldID, _ cell: ParsedCell, _ values: borrowing ParsedValues) throws {
        append(field, try encode(cell, values))
    }

    @inline(__always)
    private mutating func append(_ field: FieldID, _ word: ValueWord) {
        store(field, at: nextEntry)
        store(word.bits, at: nextEntry + 4)
        nextEntry += RecordFormat.entrySize
    }

    /// Ends the record that is being written, and answers where it stands.
    mutating func end(_ id: RecordID) throws(RecordError) -> Range<Int> {
        let range = start..<buffer.count
        guard range.count < RecordFormat.maximumSize else { throw RecordEncoder.tooLarge }
        unsafe store(RecordView.checksum(UnsafeRawBufferPointer(rebasing: bytes[range]), of: id), at: start + 4)
        return range
    }

    /// Appends one field of a split record and answers where it stands.
    mutating func encodeSplitField(
        _ key: SplitFieldKey, _ source: Source, _ values: ParsedValues?
    ) throws -> Range<Int> {
        start = buffer.count
        append(UInt64(0))
        let word: ValueWord
        switch source {
        case .parsed(let cell):
            guard let values else { throw DamagedRecord("a value has no source") }
            word = try encode(cell, values)
        case .stored(let stored, let payload): word = try copy(stored, payload)
        case .references(let records): word = list(of: records)
        case .elements(let records, let parts): word = list(of: records, parts)
        case .reference(let record): word = reference(record, isPart: false)
        }
        store(word.bits, at: start + 4)
        guard buffer.count - start < RecordFormat.maximumSize else { throw RecordEncoder.tooLarge }
        let range = start..<buffer.count
        unsafe store(key.checksum(of: UnsafeRawBufferPointer(rebasing: bytes[range])), at: start)
        return range
    }

    /// Forgets what was encoded, and keeps the memory.
    mutating func removeAll() { buffer.removeAll() }

    /// Appends a list of references in the form of a split field, but without its checksum.
    mutating func encodeReferences(_ records: [RecordID]) {
        start = buffer.count
        append(UInt64(0))
        store(list(of: records).bits, at: start + 4)
    }

    private mutating func list(of records: [RecordID], _ parts: Set<RecordID> = []) -> ValueWord {
        let (word, table) = beginList(records.count)
        for (index, record) in records.enumerated() {
            let element = record == 0 ? ValueWord(.null) : reference(record, isPart: parts.contains(record))
            store(element.bits, at: table + index * 4)
        }
        return word
    }

    // The recursion is as deep as the field's type has lists.
    private mutating func encode(_ cell: ParsedCell, _ values: borrowing ParsedValues) throws -> ValueWord {
        switch cell.kind {
        case .absent, .null: return ValueWord(.null)
        case .no: return ValueWord(.no)
        case .yes: return ValueWord(.yes)
        case .int:
            let value = Int64(bitPattern: cell.payload)
            if ValueWord.fitsSmallInt(value) { return ValueWord(.smallInt, UInt32(truncatingIfNeeded: value)) }
            return try eightBytes(.int, cell.payload)
        case .float: return try eightBytes(.float, cell.payload)
        case .number: return unsafe try text(.number, values.text(cell))
        case .string: return unsafe try text(.string, values.text(cell))
        case .json: return unsafe try text(.json, values.text(cell))
        case .object:
            let object = cell.offset
            return reference(values.records[object], isPart: values.isPart(object))
        case .list:
            let count = Int(cell.count)
            let (word, table) = beginList(count)
            for index in 0..<count {
                store(try encode(values.parsed.items[cell.offset + index], values).bits, at: table + index * 4)
            }
            return word
        }
    }

    // The recursion ends at `greatestListDepth`: a list inside itself is found by its depth.
    private mutating func copy(_ word: ValueWord, _ payload: PayloadView, depth: Int = 0) throws -> ValueWord {
        switch word.tag {
        case .null, .no, .yes, .smallInt, .reference, .part: return word
        case .int: return try eightBytes(.int, payload.eightBytes(word))
        case .float: return try eightBytes(.float, payload.eightBytes(word))
        case .number: return unsafe try text(.number, payload.text(word))
        case .string: return unsafe try text(.string, payload.text(word))
        case .json: return unsafe try text(.json, payload.text(word))
        case .wideReference: return try eightBytes(.wideReference, payload.eightBytes(word))
        case .widePart: return try eightBytes(.widePart, payload.eightBytes(word))
        case .farString: return try farText(.farString, inline: .string, payload.place(word))
        case .farJSON: return try farText(.farJSON, inline: .json, payload.place(word))
        case .list:
            guard depth < RecordFormat.greatestListDepth else { throw DamagedRecord.listsTooDeep }
            let elements = try payload.list(word)
            let (copied, table) = beginList(elements.count)
            for index in 0..<elements.count {
                store(try copy(elements[index], payload, depth: depth + 1).bits, at: table + index * 4)
            }
            return copied
        case nil: throw DamagedRecord("a value has an unknown tag")
        }
    }

    private mutating func offset(_ tag: ValueTag) -> ValueWord {
        ValueWord(tag, UInt32(truncatingIfNeeded: min(buffer.count - start, RecordFormat.maximumSize - 1)))
    }

    private mutating func eightBytes(_ tag: ValueTag, _ value: UInt64) throws -> ValueWord {
        let word = offset(tag)
        append(value)
        return word
    }

    private mutating func text(_ tag: ValueTag, _ text: UnsafeRawBufferPointer) throws -> ValueWord {
        if text.count > RecordFormat.farThreshold, heap != nil, tag != .number, let place = unsafe heap?.append(text) {
            return far(tag == .json ? .farJSON : .farString, place)
        }
        let word = offset(tag)
        appendLength(text.count)
        unsafe buffer.append(text)
        guard buffer.count - start < RecordFormat.maximumSize else { throw RecordEncoder.tooLarge }
        return word
    }

    /// A text that is far already stays where it is, unless this is a compaction, which lays all of them out anew.
    private mutating func farText(_ tag: ValueTag, inline: ValueTag, _ place: TextPlace) throws -> ValueWord {
        guard let heap else { return far(tag, place) }
        return unsafe try text(inline, heap.earlierText(at: place))
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

    /// Makes room for the value words of a list, and answers where they go.
    private mutating func beginList(_ count: Int) -> (word: ValueWord, table: Int) {
        let word = offset(.list)
        appendLength(count)
        defer { buffer.appendZeros(count * 4) }
        return (word, buffer.count)
    }

    private mutating func appendLength(_ length: Int) {
        var rest = length
        while rest >= 0x80 {
            append(UInt8(truncatingIfNeeded: rest) | 0x80)
            rest >>= 7
        }
        append(UInt8(truncatingIfNeeded: rest))
    }

    private mutating func append<Number: FixedWidthInteger & BitwiseCopyable>(_ number: Number) {
        buffer.append(number)
    }

    private mutating func store(_ number: UInt32, at place: Int) { buffer.store(number, at: place) }

    static var tooLarge: RecordError {
        RecordError(.tooLarge, "A record of 256 MiB or more does not fit the cache; ask for less at a time")
    }
}
