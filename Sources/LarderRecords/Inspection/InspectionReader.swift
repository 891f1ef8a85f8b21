import LarderGraphQL
import LarderLMDB

/// Makes what is stored readable: numbers become names again.
///
/// Safe: a reader lasts no longer than the one snapshot in which the bytes lie that it reads. What it gives are copies.
struct InspectionReader {
    private let generation: Generation
    private var heap = TextHeap()

    init(_ generation: Generation) { self.generation = generation }

    mutating func keys(
        type: String?, prefix: [UInt8], limit: Int, _ includingTombstones: Bool,
        _ transaction: borrowing some RecordSnapshot & ~Copyable
    ) throws -> [String] {
        var wanted: FieldID?
        if let type {
            wanted = try generation.names.number(of: type, transaction, generation.tables)
            // No record is of a type without a number.
            if wanted == nil { return [] }
        }
        // Long keys stand under their first bytes.
        let start = prefix.isEmpty ? [0] : StoredKey.prefix(prefix)
        var found: [String] = []
        var cursor = try transaction.cursor(in: generation.tables.keys)
        var entry = try cursor.seek(atLeast: start.rawSpan)
        while found.count < limit, let current = entry {
            let isInRange = unsafe current.key.withUnsafeBytes { unsafe prefix.isEmpty || $0.starts(with: start) }
            guard isInRange else { break }
            if let id = unsafe current.value.withUnsafeBytes(StoredNumber.number),
                let record = try generation.record(id, transaction), wanted == nil || record.type == wanted,
                includingTombstones || !record.isTombstone
            {
                let key = unsafe try record.key
                if unsafe key.starts(with: prefix) { unsafe found.append(String(decoding: key, as: UTF8.self)) }
            }
            entry = try cursor.next()
        }
        return found
    }

    mutating func types(
        _ transaction: borrowing some RecordSnapshot & ~Copyable
    ) throws -> [CacheStatistics.TypeCount] {
        var counts: [FieldID: CacheStatistics.TypeCount] = [:]
        var types: [RecordID: FieldID] = [:]
        var cursor = try transaction.cursor(in: generation.tables.records)
        while let entry = try cursor.next() {
            let record = unsafe try RecordView(unsafe entry.value.withUnsafeBytes { unsafe $0 })
            if record.isSplit { types[entry.integerKey] = record.type }
            var count =
                try counts[record.type]
                ?? CacheStatistics.TypeCount(type: try name(of: record.type, transaction))
            unsafe count.bytes += record.bytes.count
            if record.isTombstone {
                count.tombstones += 1
            } else if record.isEntity {
                count.entities += 1
            } else {
                count.parts += 1
            }
            counts[record.type] = count
        }
        var fields = try transaction.cursor(in: generation.tables.fields)
        while let entry = try fields.next() {
            guard let key = unsafe entry.key.withUnsafeBytes({ unsafe SplitFieldKey($0) }), let type = types[key.record]
            else {
                continue
            }
            counts[type]?.bytes += entry.value.byteCount
        }
        return counts.values.sorted { $0.type < $1.type }
    }

    mutating func ages(
        now: ReceivedTime, _ transaction: borrowing some RecordSnapshot & ~Copyable
    ) throws -> [CacheStatistics.AgeCount] {
        var counts = [3_600, 86_400, 7 * 86_400, 30 * 86_400, nil].map { CacheStatistics.AgeCount(within: $0) }
        var (number, slots) = (UInt64.max, ReceivedBlock.empty)
        var cursor = try transaction.cursor(in: generation.tables.records)
        while let entry = try cursor.next() {
            let id = entry.integerKey
            let record = unsafe try RecordView(unsafe entry.value.withUnsafeBytes { unsafe $0 })
            guard record.isEntity, !record.isTombstone else { continue }
            if number != ReceivedBlock.number(of: id) {
                number = ReceivedBlock.number(of: id)
                slots = try generation.tables.receivedSlots(number, transaction)
            }
            let age = slots[ReceivedBlock.index(of: id)].time.age(at: now)
            let index = counts.firstIndex { count in
                age.flatMap { age in count.within.map { age <= $0 } } ?? (count.within == nil)
            }
            guard let index else { continue }
            counts[index].objects += 1
            counts[index].bytes += entry.value.byteCount
        }
        return counts
    }

    // MARK: One record

    mutating func record(
        key: String, _ transaction: borrowing some RecordSnapshot & ~Copyable
    ) throws -> StoredRecord? {
        if let id = try generation.tables.record(of: key, transaction) {
            return try record(id, path: key, transaction)
        }
        guard let (id, path) = try part(at: key, transaction) else { return nil }
        return try record(id, path: path, transaction)
    }

    private mutating func record(
        _ id: RecordID, path: String, _ transaction: borrowing some RecordSnapshot & ~Copyable
    ) throws -> StoredRecord? {
        guard let record = try generation.record(id, transaction) else { return nil }
        var fields: [StoredRecord.Field] = []
        var byteCount = unsafe record.bytes.count
        for (field, payload, word) in try fieldsOf(record, id, transaction) {
            let name = try name(of: field, transaction)
            if record.isSplit { unsafe byteCount += payload.bytes.count }
            fields.append(.init(name: name, value: try value(word, payload, "\(path).\(name)", transaction)))
        }
        fields.sort { $0.name.utf8.lexicographicallyPrecedes($1.name.utf8) }
        return StoredRecord(
            key: path, kind: record.isTombstone ? .tombstone : record.isEntity ? .entity : .part,
            type: try name(of: record.type, transaction), isSplit: record.isSplit, byteCount: byteCount, fields: fields)
    }

    private func fieldsOf(
        _ record: RecordView, _ id: RecordID, _ transaction: borrowing some RecordSnapshot & ~Copyable
    ) throws -> [(FieldID, PayloadView, ValueWord)] {
        var found = (0..<record.count).map { (record.field($0), record.payload, record.value($0)) }
        if record.isSplit {
            try generation.forEachSplitField(of: id, transaction) { field, payload in
                found.append((field, payload, payload.word))
            }
        }
        return found
    }

    // `requireSeparateLists` refuses what is nested deeper than `greatestListDepth`.
    private mutating func value(
        _ word: ValueWord, _ payload: PayloadView, _ path: String,
        _ transaction: borrowing some RecordSnapshot & ~Copyable
    ) throws -> StoredValue {
        func text(_ bytes: UnsafeRawBufferPointer) -> String { unsafe String(decoding: bytes, as: UTF8.self) }
        switch word.tag {
        case nil: throw DamagedRecord("a value has an unknown tag")
        case .null: return .null
        case .no: return .boolean(false)
        case .yes: return .boolean(true)
        case .smallInt: return .int(word.smallInt)
        case .int: return .int(Int64(bitPattern: try payload.eightBytes(word)))
        case .float: return .float(Double(bitPattern: try payload.eightBytes(word)))
        case .number: return unsafe .number(text(try payload.text(word)))
        case .string: return unsafe .string(text(try payload.text(word)))
        case .json: return unsafe .json(text(try payload.text(word)))
        case .farString:
            return unsafe .string(text(try heap.text(at: payload.place(word), transaction, generation.tables)))
        case .farJSON:
            return unsafe .json(text(try heap.text(at: payload.place(word), transaction, generation.tables)))
        case .reference, .wideReference: return .reference(try key(of: payload.record(word), transaction))
        case .part, .widePart: return .part(path)
        case .list:
            try payload.requireSeparateLists(in: word)
            let elements = try payload.list(word)
            return .list(
                try (0..<elements.count).map { index in
                    try value(elements[index], payload, "\(path)[\(index)]", transaction)
                })
        }
    }

    /// The key of an entity that is referred to. Of one that was evicted only its number is at hand.
    private func key(of id: RecordID, _ transaction: borrowing some RecordSnapshot & ~Copyable) throws -> String {
        guard let record = try generation.record(id, transaction), record.isEntity else { return "#\(id)" }
        return unsafe String(decoding: try record.key, as: UTF8.self)
    }

    private func name(of number: FieldID, _ transaction: borrowing some RecordSnapshot & ~Copyable) throws -> String {
        try generation.names.name(of: number, transaction, generation.tables) ?? "#\(number)"
    }

    // MARK: Parts by their path

    /// The part at a path: the longest cache key that the path begins with, then field keys and positions.
    ///
    /// Keys and field keys may hold dots and brackets, so that every reading of them is tried that the records allow.
    private func part(
        at path: String, _ transaction: borrowing some RecordSnapshot & ~Copyable
    ) throws -> (RecordID, String)? {
        let bytes = Array(path.utf8)
        for dot in bytes.indices.reversed() where bytes[dot] == UInt8(ascii: ".") {
            let key = Array(bytes[..<dot])
            guard let id = try generation.tables.record(of: key, transaction),
                let found = try part(of: id, bytes[(dot + 1)...], transaction, depth: 0)
            else { continue }
            return (found, path)
        }
        return nil
    }

    // The recursion is as deep as the path has fields, and every step consumes some of it.
    private func part(
        of id: RecordID, _ rest: ArraySlice<UInt8>, _ transaction: borrowing some RecordSnapshot & ~Copyable, depth: Int
    ) throws -> RecordID? {
        guard depth < 256, let record = try generation.record(id, transaction) else { return nil }
        for (field, payload, word) in try fieldsOf(record, id, transaction) {
            let name = Array(try name(of: field, transaction).utf8)
            guard rest.starts(with: name) else { continue }
            var after = rest.dropFirst(name.count)
            var word = word
            while word.tag == .list, let (index, end) = position(after) {
                let elements = try payload.list(word)
                guard index < elements.count else { break }
                word = elements[index]
                after = end
            }
            guard word.tag == .part || word.tag == .widePart else { continue }
            let held = try payload.record(word)
            if after.isEmpty { return held }
            guard after.first == UInt8(ascii: ".") else { continue }
            if let found = try part(of: held, after.dropFirst(), transaction, depth: depth + 1) { return found }
        }
        return nil
    }

    /// `[17]` and what follows it.
    private func position(_ text: ArraySlice<UInt8>) -> (Int, ArraySlice<UInt8>)? {
        guard text.first == UInt8(ascii: "["), let end = text.firstIndex(of: UInt8(ascii: "]")) else { return nil }
        let digits = text[(text.startIndex + 1)..<end]
        guard let index = Int(String(decoding: digits, as: UTF8.self)), index >= 0 else { return nil }
        return (index, text[(end + 1)...])
    }
}
