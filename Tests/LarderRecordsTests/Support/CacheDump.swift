import LarderLMDB

@testable import LarderRecords

/// Everything that one snapshot of a cache holds, read without plans, and what is wrong with it.
struct CacheDump {
    struct Record: Equatable {
        var key: String?
        var type: FieldID
        var isTombstone: Bool
        var owner: RecordField?
        var fields: [FieldID: String] = [:]
        var parts: [(field: FieldID, record: RecordID)] = []
        var references: [RecordID] = []

        static func == (left: Record, right: Record) -> Bool {
            left.key == right.key && left.type == right.type && left.isTombstone == right.isTombstone
                && left.fields == right.fields
        }
    }

    private(set) var records: [RecordID: Record] = [:]
    private(set) var splitRecords: Set<RecordID> = []
    /// What cannot be so in a sound cache.
    private(set) var faults: [String] = []
    private(set) var names: [FieldID: String] = [:]

    init(_ cache: RecordCache) throws {
        var dump = CacheDump()
        try cache.generations.withSnapshot { (generation, transaction) throws in
            try dump.collect(generation, transaction)
        }
        self = dump
    }

    private init() {}

    private mutating func collect(_ generation: Generation, _ transaction: borrowing ReadTransaction) throws {
        var cursor = try transaction.cursor(in: generation.tables.records)
        var entry = try cursor.first()
        while let found = entry {
            let id = found.integerKey
            let view = try RecordView(unsafe found.value.withUnsafeBytes { $0 })
            if view.storedChecksum != view.checksum(of: id) { faults.append("record \(id) has a wrong checksum") }
            var record = Record(
                key: view.isEntity ? String(decoding: try view.key, as: UTF8.self) : nil, type: view.type,
                isTombstone: view.isTombstone,
                owner: view.owner.map { RecordField(record: $0.record, field: $0.field) })
            var last: FieldID = 0
            for index in 0..<view.count {
                let field = view.field(index)
                if field <= last { faults.append("record \(id) has its fields out of order") }
                last = field
                try note(view.value(index), view.payload, field, &record)
            }
            if view.isSplit {
                splitRecords.insert(id)
                if view.count > 0 { faults.append("record \(id) is split and has fields") }
            }
            records[id] = record
            entry = try cursor.next()
        }
        try collectSplitFields(generation, transaction)
        try checkKeys(generation, transaction)
        try checkParts()
        for record in records.values {
            for id in [record.type] + Array(record.fields.keys) {
                if let name = try generation.names.lookUpName(of: id, transaction, generation.tables) {
                    names[id] = name
                } else {
                    faults.append("the name \(id) is unknown")
                }
            }
        }
    }

    private mutating func collectSplitFields(
        _ generation: Generation, _ transaction: borrowing ReadTransaction
    ) throws {
        var cursor = try transaction.cursor(in: generation.tables.fields)
        var entry = try cursor.first()
        while let found = entry {
            let value = PayloadView(bytes: unsafe found.value.withUnsafeBytes { $0 })
            if let key = unsafe found.key.withUnsafeBytes({ SplitFieldKey($0) }), var record = records[key.record],
                splitRecords.contains(key.record)
            {
                try note(value.word, value, key.field, &record)
                records[key.record] = record
            } else {
                faults.append("a split field has no split record")
            }
            entry = try cursor.next()
        }
    }

    private mutating func checkKeys(_ generation: Generation, _ transaction: borrowing ReadTransaction) throws {
        for (id, record) in records {
            guard let key = record.key else { continue }
            if try generation.tables.record(of: key, transaction) != id {
                faults.append("the key \(key) does not lead to its record")
            }
        }
    }

    private mutating func checkParts() throws {
        var held: [RecordID: RecordField] = [:]
        for (id, record) in records {
            for part in record.parts {
                if held.updateValue(RecordField(record: id, field: part.field), forKey: part.record) != nil {
                    faults.append("the part \(part.record) is held twice")
                }
                if records[part.record] == nil { faults.append("the part \(part.record) is not there") }
            }
            for reference in record.references where records[reference].map({ $0.key == nil }) ?? false {
                faults.append("\(reference) is a part and is referred to as an entity")
            }
        }
        for (id, record) in records where record.key == nil {
            if held[id] == nil { faults.append("the part \(id) is held by nothing") }
            if held[id] != record.owner { faults.append("the part \(id) names another owner than it has") }
        }
    }

    private func note(
        _ word: ValueWord, _ payload: PayloadView, _ field: FieldID, _ record: inout Record
    ) throws {
        record.fields[field] = try text(word, payload, field, &record)
    }

    private func text(
        _ word: ValueWord, _ payload: PayloadView, _ field: FieldID, _ record: inout Record
    ) throws -> String {
        switch word.tag {
        case .null: return "null"
        case .no: return "false"
        case .yes: return "true"
        case .smallInt: return "int \(word.smallInt)"
        case .int: return "int \(Int64(bitPattern: try payload.eightBytes(word)))"
        case .float: return "float \(try payload.eightBytes(word))"
        case .number, .string, .json:
            return "\(word.tag.map { "\($0)" } ?? "") \(Array(try payload.text(word)))"
        case .list:
            let list = try payload.list(word)
            return "["
                + (try (0..<list.count).map { try text(list[$0], payload, field, &record) })
                .joined(separator: ",") + "]"
        case .reference, .wideReference:
            record.references.append(try payload.record(word))
            return "reference \(try payload.record(word))"
        case .part, .widePart:
            record.parts.append((field, try payload.record(word)))
            return "part \(try payload.record(word))"
        case .farString, .farJSON: return "far text at \(try payload.place(word))"
        case nil: return "unknown"
        }
    }

    /// The fields that are different, and the records that came, went or became another, in ascending order.
    func difference(from before: CacheDump) -> [RecordField] {
        var different: [RecordField] = []
        for id in Set(records.keys).union(before.records.keys) {
            guard let new = records[id], let old = before.records[id], new.type == old.type,
                new.isTombstone == old.isTombstone
            else {
                different.append(RecordField(record: id, field: RecordField.any))
                continue
            }
            for field in Set(new.fields.keys).union(old.fields.keys) where new.fields[field] != old.fields[field] {
                different.append(RecordField(record: id, field: field))
            }
        }
        return different.sorted()
    }

    /// The changes by what they are called: `Movie:1.title`, and `Movie:1` for a record as a whole; parts as `part`.
    func named(_ changes: ChangeSet, before: CacheDump? = nil) -> [String] {
        changes.fields.map { change in
            let record = records[change.record] ?? before?.records[change.record]
            let key = record?.key ?? "part"
            let name = names[change.field] ?? before?.names[change.field] ?? "?"
            return change.field == RecordField.any ? key : "\(key).\(name)"
        }.sorted()
    }
}
