/// The bytes that value words refer to.
///
/// Safe: it borrows the bytes of a snapshot or of the encoder, and checks every offset before it follows it.
@safe struct PayloadView {
    let bytes: UnsafeRawBufferPointer

    /// The value word of a field of a split record, which follows its checksum; null where the bytes are too short.
    var word: ValueWord {
        guard unsafe bytes.count >= SplitFieldKey.header else { return ValueWord(.null) }
        return unsafe ValueWord(bits: UInt32(littleEndian: bytes.loadUnaligned(fromByteOffset: 4, as: UInt32.self)))
    }

    /// Where a text that is not in the record stands.
    func place(_ word: ValueWord) throws(DamagedRecord) -> TextPlace {
        let offset = Int(word.content)
        guard unsafe offset + TextPlace.size <= bytes.count else {
            throw DamagedRecord("a text's place lies outside it")
        }
        func number(_ step: Int) -> UInt32 {
            unsafe UInt32(littleEndian: bytes.loadUnaligned(fromByteOffset: offset + step, as: UInt32.self))
        }
        return TextPlace(segment: number(0), offset: number(4), count: number(8))
    }

    @inline(__always)
    func eightBytes(_ word: ValueWord) throws(DamagedRecord) -> UInt64 {
        let offset = Int(word.content)
        guard unsafe offset + 8 <= bytes.count else { throw DamagedRecord("a number lies outside it") }
        return unsafe UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: offset, as: UInt64.self))
    }

    @inline(__always)
    func text(_ word: ValueWord) throws(DamagedRecord) -> UnsafeRawBufferPointer {
        let (length, start) = try length(at: Int(word.content))
        guard unsafe length <= bytes.count - start, let base = unsafe bytes.baseAddress else {
            throw DamagedRecord("a text lies outside it")
        }
        return unsafe UnsafeRawBufferPointer(start: base + start, count: length)
    }

    @inline(__always)
    func list(_ word: ValueWord) throws(DamagedRecord) -> ListView {
        let (count, start) = try length(at: Int(word.content))
        guard unsafe count <= (bytes.count - start) / 4 else { throw DamagedRecord("a list lies outside it") }
        return unsafe ListView(bytes: bytes, start: start, count: count)
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
        try collectRecords(in: word, into: &found, alsoReferences: false)
        return found
    }

    /// Adds the parts that a value holds, in lists as well, and the entities that it refers to.
    func collectRecords(
        in word: ValueWord, into found: inout [RecordID], alsoReferences: Bool
    ) throws(DamagedRecord) {
        var budget = ListBudget(self)
        try collectRecords(in: word, into: &found, alsoReferences, &budget, depth: 0)
    }

    private func collectRecords(
        in word: ValueWord, into found: inout [RecordID], _ alsoReferences: Bool, _ budget: inout ListBudget,
        depth: Int
    ) throws(DamagedRecord) {
        switch word.tag {
        case .part, .widePart: found.append(try record(word))
        case .reference, .wideReference: if alsoReferences { found.append(try record(word)) }
        case .list:
            guard depth < RecordFormat.greatestListDepth else { throw .listsTooDeep }
            let elements = try list(word)
            try budget.take(elements)
            for index in 0..<elements.count {
                try collectRecords(in: elements[index], into: &found, alsoReferences, &budget, depth: depth + 1)
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
        guard depth < RecordFormat.greatestListDepth else { throw .listsTooDeep }
        let elements = try list(word)
        try budget.take(elements)
        for index in 0..<elements.count where elements[index].tag == .list {
            try take(elements[index], from: &budget, depth: depth + 1)
        }
    }

    /// A length in the variable-length form, seven bits a byte, and where it ends.
    @inline(__always)
    private func length(at offset: Int) throws(DamagedRecord) -> (length: Int, end: Int) {
        guard unsafe offset < bytes.count else { throw DamagedRecord("a length lies outside it") }
        let first = unsafe bytes[offset]
        if first < 0x80 { return (Int(first), offset + 1) }
        var length = Int(first & 0x7F)
        var position = offset + 1
        var shift = 7
        while shift < 35 {
            guard unsafe position < bytes.count else { throw DamagedRecord("a length lies outside it") }
            let byte = unsafe bytes[position]
            length |= Int(byte & 0x7F) << shift
            position += 1
            if byte < 0x80 { return (length, position) }
            shift += 7
        }
        throw DamagedRecord("a length is too long")
    }
}

/// Safe: `PayloadView` makes it of words that lie in its bytes. An index is the caller's own: an assertion checks it in
/// debug builds and tests.
@safe struct ListView {
    let bytes: UnsafeRawBufferPointer
    let start: Int
    let count: Int

    /// Where the words lie.
    var range: Range<Int> { start..<(start + count * 4) }

    /// - Precondition: `index` is in `0..<count`, which `PayloadView.list` has found to lie within the bytes.
    @inline(__always)
    subscript(index: Int) -> ValueWord {
        assert(index >= 0 && index < count, "element \(index) of \(count)")
        return unsafe ValueWord(
            bits: UInt32(littleEndian: bytes.loadUnaligned(fromByteOffset: start + index * 4, as: UInt32.self)))
    }
}

/// How many words the lists of one value may still hold.
///
/// Each word takes four of the value's bytes. Lists that lie in each other's bytes would otherwise multiply: a few
/// kilobytes of them read as more than any memory holds.
struct ListBudget {
    private var words: Int

    init(_ payload: PayloadView) { words = unsafe payload.bytes.count / 4 }

    mutating func take(_ list: ListView) throws(DamagedRecord) {
        words -= list.count
        guard words >= 0 else { throw DamagedRecord("its lists overlap") }
    }
}
