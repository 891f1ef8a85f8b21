/// Writes records and values in the form that `RecordFormat` describes, one after the other into one array.
///
/// Offsets count from the start of the record or value that is being written.
struct RecordEncoder {
    private(set) var bytes: [UInt8] = []
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
        _ flags: RecordFlags, type: FieldID, identity: Identity, entries: some RandomAccessCollection<Entry>,
        _ values: ParsedValues?
    ) throws -> Range<Int> {
        start = bytes.count
        bytes.append(RecordFormat.version)
        bytes.append(flags.rawValue)
        bytes.append(contentsOf: [0, 0])
        append(UInt32(0))
        append(type)
        append(UInt32(entries.count))
        switch identity {
        case .entity(let key): append(UInt32(truncatingIfNeeded: key.count))
        case .part(let owner, let field):
            append(field)
            append(owner)
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
        let sum = bytes.withUnsafeBytes { checksum(UnsafeRawBufferPointer(rebasing: $0[(range.lowerBound + 8)..<range.upperBound])) }
        store(sum, at: start + 4)
        return range
    }

    /// Appends one field of a split record and answers where it stands.
    mutating func encodeSplitField(_ source: Source, _ values: ParsedValues?) throws -> Range<Int> {
        start = bytes.count
        append(UInt32(0))
        let word = try encode(source, values)
        store(word.bits, at: start)
        guard bytes.count - start < RecordFormat.maximumSize else { throw RecordEncoder.tooLarge }
        return start..<bytes.count
    }

    /// Appends a list of references in the form of a split field.
    mutating func encodeReferences(_ records: [RecordID]) {
        start = bytes.count
        append(UInt32(0))
        let word = list(count: records.count) { encoder, index in encoder.reference(records[index], isPart: false) }
        store(word.bits, at: start)
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
        let word = offset(tag)
        appendLength(text.count)
        bytes.append(contentsOf: text)
        guard bytes.count - start < RecordFormat.maximumSize else { throw RecordEncoder.tooLarge }
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

    private mutating func appendLength(_ length: Int) {
        var rest = length
        while rest >= 0x80 {
            bytes.append(UInt8(truncatingIfNeeded: rest) | 0x80)
            rest >>= 7
        }
        bytes.append(UInt8(truncatingIfNeeded: rest))
    }

    private mutating func append<Number: FixedWidthInteger>(_ number: Number) { appendLittleEndian(number, to: &bytes) }

    private mutating func store(_ number: UInt32, at place: Int) {
        bytes.withUnsafeMutableBytes { $0.storeBytes(of: number.littleEndian, toByteOffset: place, as: UInt32.self) }
    }

    static var tooLarge: RecordError {
        RecordError(.tooLarge, "a record of 256 MiB or more does not fit the cache; ask for less at a time")
    }
}
