import LarderLMDB

/// Safe: the bytes belong to the transaction of `run`, as all do that a `GenerationCheck` looks at. They are read
/// through `RecordView`, `PayloadView` and `TextHeap`, which check every offset.
extension GenerationCheck {
    /// - Parameter range: The numbers of the records that the check looks at.
    mutating func checkRecords(
        _ transaction: borrowing some RecordSnapshot & ~Copyable, in range: ClosedRange<RecordID> = 0 ... .max
    ) throws(LMDBError) {
        var cursor = try transaction.cursor(in: tables.records)
        var next = try cursor.seek(atLeast: range.lowerBound)
        var ahead = PagesAhead()
        while let entry = next {
            let id = entry.integerKey
            guard id <= range.upperBound else { break }
            let bytes = unsafe entry.value.withUnsafeBytes { unsafe $0 }
            unsafe ahead.come(to: bytes)
            do {
                unsafe try check(RecordView(bytes), id, transaction)
            } catch let error as LMDBError {
                throw error
            } catch let error as DamagedRecord {
                report.add(.record(id), error.what)
            } catch {
                report.add(.record(id), "\(error)")
            }
            next = try cursor.next()
        }
    }

    private mutating func check(
        _ record: RecordView, _ id: RecordID, _ transaction: borrowing some RecordSnapshot & ~Copyable
    ) throws {
        if record.isTombstone {
            report.counts.tombstones += 1
        } else if record.isEntity {
            report.counts.entities += 1
        } else {
            report.counts.parts += 1
        }
        guard record.storedChecksum == record.checksum(of: id) else {
            report.add(.record(id), "it has another checksum")
            return
        }
        guard isThorough else { return }
        if let state, id == 0 || id >= state.nextRecord {
            report.add(.record(id), "its number was never given; the next is \(state.nextRecord)")
        }
        if !names.contains(record.type) { report.add(.record(id), "its type \(record.type) has no name") }
        if record.isTombstone && (!record.isEntity || record.count > 1 || record.isSplit) {
            report.add(.record(id), "a tombstone holds more than a version")
        }
        if record.isSplit {
            split.insert(id)
            if record.count > 0 { report.add(.record(id), "it is split and has fields of its own") }
        }
        if record.owner != nil {
            parts.insert(id)
            if keyed.contains(id) { report.add(.record(id), "a key leads to it, and it is a part") }
        } else {
            let key = unsafe StoredKey.bytes(Array(try record.key))
            let found = key.isEmpty ? nil : try transaction.get(key.rawSpan, in: tables.keys)
            if unsafe found?.withUnsafeBytes(StoredNumber.number) != id {
                report.add(.record(id), "its key \(shown(key)) does not lead to it")
            }
        }
        var last: FieldID = 0
        for index in 0..<record.count {
            let field = record.field(index)
            if field <= last { report.add(.field(record: id, field: field), "fields are out of order") }
            last = field
            try check(record.value(index), record.payload, id, field, transaction)
        }
        checkLists(id)
    }

    mutating func checkSplitFields(_ transaction: borrowing some RecordSnapshot & ~Copyable) throws(LMDBError) {
        var cursor = try transaction.cursor(in: tables.fields)
        while let entry = try cursor.next() {
            report.counts.splitFields += 1
            let bytes = unsafe entry.value.withUnsafeBytes { unsafe $0 }
            guard let key = unsafe entry.key.withUnsafeBytes({ unsafe SplitFieldKey($0) }) else {
                report.add(.page(nil), "the table of split fields has a key of \(entry.key.byteCount) bytes")
                continue
            }
            guard unsafe key.isSound(bytes) else {
                report.add(.field(record: key.record, field: key.field), "it has another checksum")
                continue
            }
            guard isThorough else { continue }
            if !split.contains(key.record) {
                report.add(.field(record: key.record, field: key.field), "it belongs to no split record")
            }
            let payload = unsafe PayloadView(bytes: bytes)
            try check(payload.word, payload, key.record, key.field, transaction)
            checkLists(key.record)
        }
    }

    /// Says where the lists that were found in one record lie in each other's bytes, and forgets them.
    private mutating func checkLists(_ id: RecordID) {
        defer { lists.removeAll(keepingCapacity: true) }
        guard lists.count > 1 else { return }
        lists.sort { $0.lowerBound < $1.lowerBound }
        var end = 0
        for list in lists where !list.isEmpty {
            if list.lowerBound < end { return report.add(.record(id), "its lists overlap") }
            end = list.upperBound
        }
    }

    /// Checks a field's value: everything in it can be read, and what it refers to is there.
    private mutating func check(
        _ word: ValueWord, _ payload: PayloadView, _ record: RecordID, _ field: FieldID,
        _ transaction: borrowing some RecordSnapshot & ~Copyable
    ) throws(LMDBError) {
        if !names.contains(field) { report.add(.field(record: record, field: field), "the field has no name") }
        holdings.removeAll(keepingCapacity: true)
        do throws(DamagedRecord) {
            var budget = ListBudget(payload)
            try checkValue(word, payload, record, field, &budget, depth: 0)
        } catch {
            report.add(.field(record: record, field: field), error.what)
        }
        for part in holdings { try checkHolding(part, record, field, transaction) }
    }

    // The recursion ends at `greatestListDepth`.
    private mutating func checkValue(
        _ word: ValueWord, _ payload: PayloadView, _ record: RecordID, _ field: FieldID,
        _ budget: inout ListBudget, depth: Int
    ) throws(DamagedRecord) {
        switch word.tag {
        case nil: throw DamagedRecord("a value has an unknown tag")
        case .null, .no, .yes, .smallInt: return
        case .int, .float: _ = try payload.eightBytes(word)
        case .number, .string, .json: unsafe try checkText(payload.text(word))
        case .farString, .farJSON:
            let place = try payload.place(word)
            guard let segment = unsafe segments[place.segment] else {
                throw DamagedRecord("the segment of a text is missing or damaged")
            }
            unsafe try checkText(TextHeap.text(at: place, in: segment))
        case .list:
            guard depth < RecordFormat.greatestListDepth else { throw .listsTooDeep }
            let elements = try payload.list(word)
            try budget.take(elements)
            lists.append(elements.range)
            for index in 0..<elements.count {
                try checkValue(elements[index], payload, record, field, &budget, depth: depth + 1)
            }
        case .reference, .wideReference:
            report.counts.references += 1
            let target = try payload.record(word)
            // The record may be gone; its key stays.
            guard keyed.contains(target) else { throw DamagedRecord("it refers to \(target), which no key leads to") }
        case .part, .widePart:
            holdings.append(try payload.record(word))
        }
    }

    private func checkText(_ text: UnsafeRawBufferPointer) throws(DamagedRecord) {
        guard unsafe String(validating: text, as: UTF8.self) != nil else { throw DamagedRecord("a text is not UTF-8") }
    }

    /// A part that a field holds is there, and says the same.
    private mutating func checkHolding(
        _ part: RecordID, _ owner: RecordID, _ field: FieldID,
        _ transaction: borrowing some RecordSnapshot & ~Copyable
    ) throws(LMDBError) {
        let stored = try transaction.get(part, in: tables.records)
        let known = unsafe stored?.withUnsafeBytes { bytes in unsafe (try? RecordView(bytes))?.owner }
        guard let known = known ?? nil else {
            return report.add(.field(record: owner, field: field), "its part \(part) does not exist")
        }
        if known.record != owner || known.field != field {
            report.add(.record(part), "record \(owner) holds it, and it names \(known.record)")
        }
        if !held.insert(part) { holders[part, default: 1] += 1 }
    }

    /// Every part is held exactly once.
    mutating func checkHoldings() {
        var (report, parts) = (report, parts)
        parts.drain { part in
            if !held.contains(part) { report.add(.record(part), "nothing holds it") }
        }
        for (part, count) in holders.sorted(by: { $0.key < $1.key }) {
            report.add(.record(part), "it is held \(count) times")
        }
        self.report = report
    }
}
