import LarderLMDB

/// Writes what a snapshot of a generation has into a draft, in the order of the keys, so that pages are filled; and then
/// what later snapshots have otherwise.
///
/// Records and names keep their numbers. Long texts move into the heap; the log of changes stays behind, and so do
/// names that no record uses any more.
///
/// Safe: what is copied lies in the pages of a transaction, which is borrowed and so does not change, and goes into
/// another environment. The encoder's bytes are stored before it encodes again. The views check every offset.
struct GenerationCopy {
    /// A transaction ends after about as many bytes, so that a large cache needs little memory.
    private static let batchSize = 4 << 20

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
        from source: borrowing some RecordSnapshot & ~Copyable, into draft: GenerationDraft, _ folder: GenerationFolder
    ) throws {
        encoder.heap = unsafe TextHeapDraft(earlier: try heapSegments(source, isChecked: false))
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
        encoder.heap?.forgetFinished()
        used.forgetFresh()
    }

    /// Copies what is known of mutations, alone where nothing else of a generation goes on.
    mutating func copyApplied(from source: borrowing some RecordSnapshot & ~Copyable, into draft: GenerationDraft)
        throws
    {
        guard let applied = old.tables.applied else { return }
        try copy(applied, from: source, into: draft) { $0.applied }
    }

    private mutating func copyTimes(
        from source: borrowing some RecordSnapshot & ~Copyable, into draft: GenerationDraft
    ) throws {
        guard let received = old.tables.received else { return }
        try copy(received, from: source, into: draft) { $0.received }
    }

    /// - Parameter isChecked: Whether the segments, which are never changed, were compared with their checksums before.
    private func heapSegments(
        _ source: borrowing some RecordSnapshot & ~Copyable, isChecked: Bool
    ) throws -> [UInt32: UnsafeRawBufferPointer] {
        var segments: [UInt32: UnsafeRawBufferPointer] = unsafe [:]
        var cursor = try source.cursor(in: old.tables.texts)
        var entry = try cursor.seek(atLeast: TextHeap.firstSegment)
        while let found = entry {
            let number = UInt32(truncatingIfNeeded: found.integerKey - TextHeap.firstSegment)
            // The bytes stay where they are: the transaction changes nothing before all is copied.
            let bytes = unsafe found.value.withUnsafeBytes { unsafe $0 }
            guard unsafe isChecked || SealedText.isSound(bytes, seed: found.integerKey) else {
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
        _ table: Table, from source: borrowing some RecordSnapshot & ~Copyable, into draft: GenerationDraft,
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

    private mutating func copyNames(from source: borrowing some RecordSnapshot & ~Copyable, into draft: GenerationDraft)
        throws
    {
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

    private mutating func copyRecords(
        from source: borrowing some RecordSnapshot & ~Copyable, into draft: GenerationDraft
    ) throws {
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
                    try encode(found.value, id)
                    unsafe try target.put(id, encoder.bytes, in: new.records, append: true)
                    unsafe written += encoder.bytes.count
                    entry = try cursor.next()
                }
                try storeSegments(&target, new)
            }
            encoder.heap?.forgetFinished()
        }
    }

    private mutating func encode(_ stored: RawSpan, _ id: RecordID) throws {
        let record = unsafe try RecordView(unsafe stored.withUnsafeBytes { unsafe $0 })
        guard record.storedChecksum == record.checksum(of: id) else { throw DamagedRecord("it has another checksum") }
        used.insert(record)
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
        from source: borrowing some RecordSnapshot & ~Copyable, into draft: GenerationDraft
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
                    let key = try encode(found.value, under: found.key)
                    unsafe try key.withBytes { unsafe try target.put($0, encoder.bytes, in: new.fields, append: true) }
                    unsafe written += encoder.bytes.count
                    entry = try cursor.next()
                }
                try storeSegments(&target, new)
            }
            encoder.heap?.forgetFinished()
        }
    }

    /// Encodes a split field, and answers its key.
    private mutating func encode(_ stored: RawSpan, under key: RawSpan) throws -> SplitFieldKey {
        let bytes = unsafe stored.withUnsafeBytes { unsafe $0 }
        guard let key = unsafe key.withUnsafeBytes({ unsafe SplitFieldKey($0) }), unsafe key.isSound(bytes) else {
            throw DamagedRecord("one of its fields has another checksum")
        }
        let payload = unsafe PayloadView(bytes: bytes)
        try payload.requireSeparateLists(in: payload.word)
        used.insert(key)
        encoder.removeAll()
        _ = try encoder.encodeSplitField(key, .stored(payload.word, payload), nil)
        return key
    }

    /// The body of a draft's transaction may run again, so that what is stored is forgotten only afterwards.
    private func storeSegments(_ target: inout WriteTransaction, _ new: Tables) throws {
        for (number, bytes) in encoder.heap?.finished ?? [] {
            try target.put(TextHeap.firstSegment + UInt64(number), bytes.rawSpan, in: new.texts, append: true)
        }
    }

    // MARK: Later snapshots

    /// Brings into the draft what a later snapshot has otherwise than the one from which the draft was made so far.
    ///
    /// - Returns: How many entries that were.
    mutating func follow(
        from earlier: borrowing ReadTransaction, to later: borrowing some RecordSnapshot & ~Copyable,
        into draft: GenerationDraft
    ) throws -> Int {
        let segments = unsafe try heapSegments(later, isChecked: true)
        unsafe encoder.heap?.read(from: segments)
        var count = try followRecords(from: earlier, to: later, into: draft)
        count += try follow(old.tables.fields, from: earlier, to: later, into: draft) { $0.fields }
        count += try follow(old.tables.keys, from: earlier, to: later, into: draft) { $0.keys }
        if let applied = old.tables.applied {
            count += try follow(applied, from: earlier, to: later, into: draft) { $0.applied }
        }
        if let received = old.tables.received {
            count += try follow(received, from: earlier, to: later, into: draft) { $0.received }
        }
        if let positions = old.tables.positions {
            count += try follow(positions, from: earlier, to: later, into: draft) { $0.positions }
        }
        guard count > 0 else { return 0 }
        encoder.heap?.finishSegment()
        try draft.fill { target, new in
            try followNames(to: later, &target, new)
            try storeSegments(&target, new)
        }
        encoder.heap?.forgetFinished()
        used.forgetFresh()
        return count
    }

    private mutating func followRecords(
        from earlier: borrowing ReadTransaction, to later: borrowing some RecordSnapshot & ~Copyable,
        into draft: GenerationDraft
    ) throws -> Int {
        let table = old.tables.records
        let keys = try old.environment.differences(in: table, from: earlier, to: later)
        let ids = Set((keys.earlier + keys.later).compactMap(Self.number)).sorted()
        return try follow(ids.count, into: draft) { copy, index, target, new throws in
            let id = ids[index]
            let (before, now) = (try earlier.get(id, in: table), try later.get(id, in: table))
            guard let now else {
                guard before != nil else { return 0 }
                try target.delete(id, in: new.records)
                return 1
            }
            if let before, before.hasSameBytes(as: now) { return 0 }
            try copy.encode(now, id)
            unsafe try target.put(id, copy.encoder.bytes, in: new.records)
            return unsafe copy.encoder.bytes.count
        }
    }

    /// Brings along what differs in a table with keys of bytes.
    private mutating func follow(
        _ table: Table, from earlier: borrowing ReadTransaction,
        to later: borrowing some RecordSnapshot & ~Copyable, into draft: GenerationDraft,
        _ chosen: (Tables) -> Table?
    ) throws -> Int {
        let difference = try old.environment.differences(in: table, from: earlier, to: later)
        let keys = Array(Set(difference.earlier + difference.later))
        let isSplit = table == old.tables.fields
        return try follow(keys.count, into: draft) { copy, index, target, new throws in
            guard let chosen = chosen(new) else { throw RecordError.damagedState }
            let key = keys[index]
            let (before, now) = (try earlier.get(key.rawSpan, in: table), try later.get(key.rawSpan, in: table))
            guard let now else {
                guard before != nil else { return 0 }
                try target.delete(key.rawSpan, in: chosen)
                return 1
            }
            if let before, before.hasSameBytes(as: now) { return 0 }
            if isSplit {
                _ = try copy.encode(now, under: key.rawSpan)
                unsafe try key.withUnsafeBytes { unsafe try target.put($0, copy.encoder.bytes, in: chosen) }
            } else {
                try target.put(key.rawSpan, now, in: chosen)
            }
            return key.count + now.byteCount
        }
    }

    /// Runs `body` for each index up to a count, in transactions that end after some bytes.
    ///
    /// - Parameter body: Gives the bytes that it stored, or 0 where an entry is the same.
    /// - Returns: How many entries were not.
    private mutating func follow(
        _ count: Int, into draft: GenerationDraft,
        _ body: (inout GenerationCopy, Int, inout WriteTransaction, Tables) throws -> Int
    ) throws -> Int {
        var (next, changed) = (0, 0)
        while next < count {
            var (end, found) = (next, 0)
            try draft.fill { target, new in
                (end, found, written) = (next, 0, 0)
                while end < count, written <= Self.batchSize {
                    let bytes = try body(&self, end, &target, new)
                    if bytes > 0 { found += 1 }
                    written += bytes
                    end += 1
                }
                try storeSegments(&target, new)
            }
            encoder.heap?.forgetFinished()
            (next, changed) = (end, changed + found)
        }
        return changed
    }

    /// Copies the names that no record used before.
    private func followNames(
        to later: borrowing some RecordSnapshot & ~Copyable, _ target: inout WriteTransaction, _ new: Tables
    ) throws {
        for number in used.fresh {
            // What is not there is damage, which stays to be found.
            guard let sealed = try later.get(UInt64(number), in: old.tables.texts) else { continue }
            try target.put(UInt64(number), sealed, in: new.texts)
            let text = unsafe sealed.withUnsafeBytes { unsafe SealedText.text($0).map { unsafe Array($0) } ?? [] }
            let key = StoredKey.bytes(text)
            guard !key.isEmpty, let stored = try later.get(key.rawSpan, in: old.tables.names) else { continue }
            try target.put(key.rawSpan, stored, in: new.names)
        }
    }

    private static func number(_ key: [UInt8]) -> RecordID? {
        // In the machine's own byte order.
        unsafe key.count == 8 ? key.withUnsafeBytes { unsafe $0.loadUnaligned(as: UInt64.self) } : nil
    }
}

extension RawSpan {
    fileprivate func hasSameBytes(as other: RawSpan) -> Bool {
        unsafe withUnsafeBytes { own in
            unsafe other.withUnsafeBytes { other in unsafe own.elementsEqual(other) }
        }
    }
}
