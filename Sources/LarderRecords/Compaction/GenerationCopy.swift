import LarderLMDB

/// Writes a generation's contents into a draft, in the order of their keys, so that pages are filled.
///
/// Records and names keep their numbers. Long texts move into the heap; the log of changes stays behind, and so do
/// names that no record uses any more.
///
/// Safe: what is copied lies in the pages of `source`, which is borrowed and so does not change, and goes into another
/// environment. The encoder's bytes are stored before it encodes again. The views check every offset.
struct GenerationCopy {
    /// A transaction ends after about as many bytes, so that a large cache needs little memory.
    private static let batchSize = 64 << 20

    private let old: Generation
    private let state: GenerationState
    private var encoder = RecordEncoder()
    private var used = UsedNames()
    private var written = 0

    init(of old: Generation, as state: GenerationState) {
        self.old = old
        self.state = state
    }

    mutating func run(
        from source: borrowing WriteTransaction, into draft: GenerationDraft, _ folder: GenerationFolder
    ) throws {
        encoder.heap = unsafe TextHeapDraft(earlier: try heapSegments(source))
        let tables = old.tables
        try used.collect(old, source)
        try draft.fill { target, new in try folder.store(state, &target, new) }
        // What is no number at all is damage, which stays to be found.
        try copy(
            tables.names, from: source, into: draft,
            where: { [used] value in
                unsafe value.withUnsafeBytes(StoredNumber.number).map(used.contains) ?? true
            }, { $0.names })
        try copy(tables.keys, from: source, into: draft) { $0.keys }
        try copyApplied(from: source, into: draft)
        if let positions = old.tables.positions {
            try copy(positions, from: source, into: draft) { $0.positions }
        }
        try copyNames(from: source, into: draft)
        try copyRecords(from: source, into: draft)
        try copySplitFields(from: source, into: draft)
        try copyTimes(from: source, into: draft)
        encoder.heap?.finishSegment()
        try draft.fill { target, new in try storeSegments(&target, new) }
    }

    /// Copies what is known of mutations, alone where nothing else of a generation goes on.
    mutating func copyApplied(from source: borrowing WriteTransaction, into draft: GenerationDraft) throws {
        guard let applied = old.tables.applied else { return }
        try copy(applied, from: source, into: draft) { $0.applied }
    }

    private mutating func copyTimes(from source: borrowing WriteTransaction, into draft: GenerationDraft) throws {
        guard let received = old.tables.received else { return }
        try copy(received, from: source, into: draft) { $0.received }
    }

    private func heapSegments(
        _ source: borrowing WriteTransaction
    ) throws -> [UInt32: UnsafeRawBufferPointer] {
        var segments: [UInt32: UnsafeRawBufferPointer] = unsafe [:]
        var cursor = try source.cursor(in: old.tables.texts)
        var entry = try cursor.seek(atLeast: TextHeap.firstSegment)
        while let found = entry {
            let number = UInt32(truncatingIfNeeded: found.integerKey - TextHeap.firstSegment)
            // The bytes stay where they are: the transaction changes nothing before all is copied.
            let bytes = unsafe found.value.withUnsafeBytes { unsafe $0 }
            guard unsafe SealedText.isSound(bytes, seed: found.integerKey) else {
                throw DamagedRecord("a segment of long texts has another checksum")
            }
            unsafe segments[number] = unsafe bytes
            entry = try cursor.next()
        }
        return unsafe segments
    }

    /// Copies a table whose entries stay as they are.
    ///
    /// - Parameter isKept: Whether an entry goes along, by its value.
    private mutating func copy(
        _ table: Table, from source: borrowing WriteTransaction, into draft: GenerationDraft,
        where isKept: (RawSpan) -> Bool = { _ in true }, _ chosen: (Tables) -> Table?
    ) throws {
        var next: [UInt8]? = [0]
        while let start = next {
            next = nil
            try draft.fill { target, new in
                written = 0
                var cursor = try source.cursor(in: table)
                var entry = try cursor.seek(atLeast: start.rawSpan)
                while let found = entry {
                    if written > Self.batchSize {
                        next = unsafe found.key.withUnsafeBytes(Array.init)
                        return
                    }
                    guard let table = chosen(new) else { throw RecordError.damagedState }
                    if isKept(found.value) {
                        try target.put(found.key, found.value, in: table, append: true)
                        written += found.key.byteCount + found.value.byteCount
                    }
                    entry = try cursor.next()
                }
            }
        }
    }

    private mutating func copyNames(from source: borrowing WriteTransaction, into draft: GenerationDraft) throws {
        var next: UInt64? = 0
        while let start = next {
            next = nil
            try draft.fill { target, new in
                written = 0
                var cursor = try source.cursor(in: old.tables.texts)
                var entry = try cursor.seek(atLeast: start)
                while let found = entry, found.integerKey < TextHeap.firstSegment {
                    if written > Self.batchSize {
                        next = found.integerKey
                        return
                    }
                    if used.contains(found.integerKey) {
                        try target.put(found.integerKey, found.value, in: new.texts, append: true)
                        written += found.value.byteCount
                    }
                    entry = try cursor.next()
                }
            }
        }
    }

    private mutating func copyRecords(from source: borrowing WriteTransaction, into draft: GenerationDraft) throws {
        var next: UInt64? = 0
        while let start = next {
            next = nil
            try draft.fill { target, new in
                written = 0
                var cursor = try source.cursor(in: old.tables.records)
                var entry = try cursor.seek(atLeast: start)
                while let found = entry {
                    if written > Self.batchSize {
                        next = found.integerKey
                        break
                    }
                    let id = found.integerKey
                    let record = unsafe try RecordView(unsafe found.value.withUnsafeBytes { unsafe $0 })
                    guard record.storedChecksum == record.checksum(of: id) else {
                        throw DamagedRecord("it has another checksum")
                    }
                    try encode(record, id)
                    unsafe try target.put(id, encoder.bytes, in: new.records, append: true)
                    unsafe written += encoder.bytes.count
                    entry = try cursor.next()
                }
                try storeSegments(&target, new)
            }
        }
    }

    private mutating func encode(_ record: RecordView, _ id: RecordID) throws {
        var entries: [RecordEncoder.Entry] = []
        entries.reserveCapacity(record.count)
        for index in 0..<record.count {
            try record.payload.requireSeparateLists(in: record.value(index))
            entries.append(.init(field: record.field(index), source: .stored(record.value(index), record.payload)))
        }
        let identity: RecordEncoder.Identity =
            if let owner = record.owner {
                .part(owner: owner.record, field: owner.field)
            } else {
                unsafe .entity(key: try record.key)
            }
        encoder.removeAll()
        _ = try encoder.encode(id, record.flags, type: record.type, identity: identity, entries: entries, nil)
    }

    private mutating func copySplitFields(
        from source: borrowing WriteTransaction, into draft: GenerationDraft
    ) throws {
        var next: [UInt8]? = [0]
        while let start = next {
            next = nil
            try draft.fill { target, new in
                written = 0
                var cursor = try source.cursor(in: old.tables.fields)
                var entry = try cursor.seek(atLeast: start.rawSpan)
                while let found = entry {
                    if written > Self.batchSize {
                        next = unsafe found.key.withUnsafeBytes(Array.init)
                        break
                    }
                    let bytes = unsafe found.value.withUnsafeBytes { unsafe $0 }
                    guard let key = unsafe found.key.withUnsafeBytes({ unsafe SplitFieldKey($0) }),
                        unsafe key.isSound(bytes)
                    else {
                        throw DamagedRecord("one of its fields has another checksum")
                    }
                    let payload = unsafe PayloadView(bytes: bytes)
                    try payload.requireSeparateLists(in: payload.word)
                    encoder.removeAll()
                    _ = try encoder.encodeSplitField(key, .stored(payload.word, payload), nil)
                    unsafe try key.withBytes { unsafe try target.put($0, encoder.bytes, in: new.fields, append: true) }
                    unsafe written += encoder.bytes.count
                    entry = try cursor.next()
                }
                try storeSegments(&target, new)
            }
        }
    }

    private mutating func storeSegments(_ target: inout WriteTransaction, _ new: Tables) throws {
        for (number, bytes) in encoder.heap?.takeFinished() ?? [] {
            let key = TextHeap.firstSegment + UInt64(number)
            try target.put(key, bytes.rawSpan, in: new.texts, append: true)
        }
    }
}
