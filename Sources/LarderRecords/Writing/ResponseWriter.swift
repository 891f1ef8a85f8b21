internal import LarderGraphQL
internal import LarderLMDB

/// Works out what a response changes in a generation.
///
/// Objects become records in the order of the text, so that an answer's records stand one after the other. What is
/// stored is compared value by value with what came, and only differences are written.
///
/// - Complexity: O(n) in the response's size, and O(log m) for each object among m records.
struct ResponseWriter: ~Copyable {
    let parsed: ParsedResponse
    private let layout: PlanLayout
    private let operation: BoundOperation
    let generation: Generation
    var changes: RecordChanges

    /// By object: its record, or 0 where it is not stored.
    var records: [RecordID]
    /// By object without identity: where its record comes from.
    var origins: [Origin]
    var staged: [StagedRecord] = []
    var stagedByID: [RecordID: Int] = [:]
    /// Fields of all staged records; each record's are chained.
    var stagedFields: [StagedField] = []
    /// The fields of records with more than `chainLimit`, by index in `staged` and field: the chain would be walked for
    /// each.
    private var fieldIndex: [RecordField: Int] = [:]
    private static let chainLimit = 32
    /// The first object of each entity, by a hash of its key; other keys of the same hash follow at the next numbers.
    private var entities: [UInt64: Int] = [:]
    /// By `Plan.keys` and by type number; 0 until they are needed.
    private var fieldIDs: [FieldID]
    private var typeIDs: [FieldID]
    var orphans: [RecordID] = []
    /// The key under which the root is stored, and its index in `staged`.
    private var root: (key: [UInt8], record: Int)?
    var heap = TextHeap()

    /// Where the record of a part comes from.
    enum Origin {
        /// The object that holds it is not stored, and neither is it.
        case unstored
        case new(owner: RecordID, field: FieldID)
        /// The part that stands in its place already. `isReplaced`: nothing of it stays that is not in the response.
        case existing(RecordID, owner: RecordID, field: FieldID, isReplaced: Bool)
        /// The response has it twice. The other comes before it.
        case same(object: Int)
    }

    struct StagedRecord {
        var id: RecordID
        /// The first of its objects in the response.
        var object: Int
        /// As it is stored; nil if it is not, or is a tombstone.
        var existing: RecordView?
        var isReplaced: Bool
        var place: Place
        /// True for a part in whose place the response has something else later on: it is not stored.
        var isAbandoned = false
        var firstField = -1
        var lastField = -1
        var fieldCount = 0
    }

    enum Place {
        case entity(key: [UInt8])
        case part(owner: RecordID, field: FieldID)
    }

    struct StagedField {
        var id: FieldID
        var cell: ParsedCell
        var next: Int
    }

    /// What the root of the response is stored as.
    enum Root {
        /// Under this key: the root of all queries, or the object that a fragment was asked of.
        case record(key: String)
        /// Not at all: the roots of mutations and subscriptions are no objects.
        case unstored
    }

    /// Memory for the work on one record, kept from one to the next.
    var spareFields: [StagedField] = []
    var spareEntries: [RecordEncoder.Entry] = []

    init(_ parsed: ParsedResponse, of operation: BoundOperation, in generation: Generation, _ changes: RecordChanges) {
        self.parsed = parsed
        self.operation = operation
        self.generation = generation
        self.changes = changes
        layout = parsed.layout
        records = Array(repeating: 0, count: parsed.objects.count)
        origins = Array(repeating: .unstored, count: parsed.objects.count)
        fieldIDs = Array(repeating: 0, count: parsed.layout.plan.keys.count)
        typeIDs = Array(repeating: 0, count: parsed.layout.typeNames.count + parsed.unknownTypes.count)
        staged.reserveCapacity(parsed.objects.count)
        stagedByID.reserveCapacity(parsed.objects.count)
        stagedFields.reserveCapacity(parsed.fields.count)
    }

    consuming func run(
        _ root: Root, _ transaction: borrowing some Transaction & ~Copyable
    ) throws -> RecordChanges {
        guard let rootObject = parsed.root else { return changes }
        var cursor = try transaction.cursor(in: generation.tables.records)
        for object in parsed.objects.indices {
            let record: Int?
            if object == rootObject {
                switch root {
                case .record(let key): record = try stageRoot(object, key: key, &cursor, transaction)
                case .unstored: record = nil
                }
            } else {
                record = try stage(object, &cursor, transaction)
            }
            if let record { records[object] = staged[record].id }
            try stageFields(of: object, in: record, transaction)
        }
        let order = staged.indices.sorted { staged[$0].id < staged[$1].id }
        let values = ParsedValues(parsed: parsed, records: records)
        for record in order where !staged[record].isAbandoned { try finish(staged[record], values, transaction) }
        try changes.removeParts(orphans, generation, transaction)
        return changes
    }

    // MARK: Objects

    private mutating func stageRoot(
        _ object: Int, key: String, _ cursor: inout Cursor, _ transaction: borrowing some Transaction & ~Copyable
    ) throws -> Int {
        let bytes = Array(key.utf8)
        if parsed.objects[object].keyCount > 0 {
            let own = keyBytes(of: object)
            guard own.elementsEqual(bytes) else {
                throw RecordError(
                    .responseMismatch,
                    "the object is \(String(decoding: own, as: UTF8.self)), and was to be stored as \(key)")
            }
        }
        let record = try stageEntity(object, key: bytes, &cursor, transaction)
        root = (bytes, record)
        return record
    }

    private mutating func stage(
        _ object: Int, _ cursor: inout Cursor, _ transaction: borrowing some Transaction & ~Copyable
    ) throws -> Int? {
        if parsed.objects[object].keyCount > 0 { return try stageEntity(object, &cursor, transaction) }
        switch origins[object] {
        case .unstored: return nil
        case .same(let other):
            let first = firstOccurrence(of: other)
            if case .unstored = origins[first] { return nil }
            return stagedByID[records[first]]
        case .new(let owner, let field):
            let id = changes.newRecordID()
            return append(StagedRecord(
                id: id, object: object, existing: nil, isReplaced: false, place: .part(owner: owner, field: field)))
        case .existing(let id, let owner, let field, let isReplaced):
            let existing = try existing(id, &cursor)
            let type = try typeID(of: object, transaction)
            return append(StagedRecord(
                id: id, object: object, existing: existing,
                isReplaced: isReplaced || existing.map { $0.type != type } ?? false,
                place: .part(owner: owner, field: field)))
        }
    }

    /// An entity: the same record for every object of its key.
    private mutating func stageEntity(
        _ object: Int, _ cursor: inout Cursor, _ transaction: borrowing some Transaction & ~Copyable
    ) throws -> Int {
        if let root, keyBytes(of: object).elementsEqual(root.key) { return root.record }
        var hash = UInt64(bitPattern: Int64(hashOfKey(object)))
        while let first = entities[hash] {
            if keyBytes(of: first).elementsEqual(keyBytes(of: object)) {
                if let record = stagedByID[records[first]] { return record }
            }
            hash &+= 1
        }
        entities[hash] = object
        return try stageEntity(object, key: Array(keyBytes(of: object)), &cursor, transaction)
    }

    private mutating func stageEntity(
        _ object: Int, key: [UInt8], _ cursor: inout Cursor, _ transaction: borrowing some Transaction & ~Copyable
    ) throws -> Int {
        guard let id = try generation.tables.record(of: key, transaction) else {
            let id = changes.newRecordID()
            changes.newKeys.append((key, id))
            changes.changes.createdKeys.append(String(decoding: key, as: UTF8.self))
            return append(StagedRecord(
                id: id, object: object, existing: nil, isReplaced: false, place: .entity(key: key)))
        }
        let existing = try existing(id, &cursor)
        if existing == nil { changes.changes.createdKeys.append(String(decoding: key, as: UTF8.self)) }
        let type = try typeID(of: object, transaction)
        return append(StagedRecord(
            id: id, object: object, existing: existing, isReplaced: existing.map { $0.type != type } ?? false,
            place: .entity(key: key)))
    }

    private mutating func append(_ record: StagedRecord) -> Int {
        stagedByID[record.id] = staged.count
        staged.append(record)
        return staged.count - 1
    }

    private func existing(_ id: RecordID, _ cursor: inout Cursor) throws -> RecordView? {
        guard let stored = try cursor.value(at: id) else { return nil }
        // Nothing is written before all is worked out, so the bytes stay where they are.
        let view = try RecordView(unsafe stored.withUnsafeBytes { $0 })
        return view.isTombstone ? nil : view
    }

    private func keyBytes(of object: Int) -> ArraySlice<UInt8> {
        let parsed = parsed.objects[object]
        return self.parsed.keys[Int(parsed.keyStart)..<Int(parsed.keyStart + parsed.keyCount)]
    }

    private func hashOfKey(_ object: Int) -> Int32 {
        let key = keyBytes(of: object)
        return Int32(bitPattern: key.withUnsafeBytes { checksum($0) })
    }

    mutating func typeID(
        of object: Int, _ transaction: borrowing some Transaction & ~Copyable
    ) throws -> FieldID {
        let number = Int(parsed.objects[object].type)
        if typeIDs[number] == 0 {
            typeIDs[number] = try changes.fieldID(parsed.typeName(Int32(number)), generation, transaction)
        }
        return typeIDs[number]
    }

    // MARK: Fields

    private mutating func stageFields(
        of object: Int, in record: Int?, _ transaction: borrowing some Transaction & ~Copyable
    ) throws {
        guard let record else { return }
        let range = Int(parsed.objects[object].fieldStart)..<Int(
            parsed.objects[object].fieldStart + parsed.objects[object].fieldCount)
        for index in range {
            if !parsed.unanswered.isEmpty, parsed.unanswered.contains(index) { continue }
            let (number, cell) = (parsed.fields[index].field, parsed.fields[index].cell)
            let field = layout.fields[Int(number)]
            guard field.key >= 0 else { continue }
            let id = try fieldID(Int(field.key), transaction)
            let earlier = stagedField(id, of: record)
            if field.content == .object {
                let stored = try storedValue(of: id, in: staged[record], transaction)
                let holder = Holder(record: record, field: id)
                try originate(
                    cell, holder, stored: stored, earlier: earlier.map { stagedFields[$0].cell }, inList: false)
            }
            if let earlier {
                if field.content == .object { abandonParts(of: stagedFields[earlier].cell, unlessIn: cell) }
                stagedFields[earlier].cell = cell
            } else {
                appendField(StagedField(id: id, cell: cell, next: -1), to: record)
            }
        }
    }

    private mutating func fieldID(
        _ key: Int, _ transaction: borrowing some Transaction & ~Copyable
    ) throws -> FieldID {
        if fieldIDs[key] == 0 {
            fieldIDs[key] = try changes.fieldID(operation.binding.fieldKeys[key], generation, transaction)
        }
        return fieldIDs[key]
    }

    private func stagedField(_ id: FieldID, of record: Int) -> Int? {
        if staged[record].fieldCount > Self.chainLimit {
            return fieldIndex[RecordField(record: UInt64(record), field: id)]
        }
        var field = staged[record].firstField
        while field >= 0 {
            if stagedFields[field].id == id { return field }
            field = stagedFields[field].next
        }
        return nil
    }

    private mutating func appendField(_ field: StagedField, to record: Int) {
        let last = staged[record].lastField
        if last >= 0 {
            stagedFields[last].next = stagedFields.count
        } else {
            staged[record].firstField = stagedFields.count
        }
        staged[record].lastField = stagedFields.count
        stagedFields.append(field)
        staged[record].fieldCount += 1
        guard staged[record].fieldCount > Self.chainLimit else { return }
        // Past the limit for the first time: all of them; then the new one alone.
        var next = staged[record].fieldCount == Self.chainLimit + 1 ? staged[record].firstField : stagedFields.count - 1
        while next >= 0 {
            fieldIndex[RecordField(record: UInt64(record), field: stagedFields[next].id)] = next
            next = stagedFields[next].next
        }
    }
}
