import LarderGraphQL
import LarderLMDB

/// Works out what a response changes in a generation.
///
/// Objects become records in the order of the text, so that an answer's records stand one after the other. What is
/// stored is compared value by value with what came, and only differences are written.
///
/// - Complexity: O(n) in the response's size, and O(log m) for each object among m records.
///
/// Safe: keys are bytes of `parsed`, which it has, and of the root's key, which `run` keeps to its end. Stored records
/// are bytes of the transaction of `run`, or of the overlay over it, which last longer.
@safe struct ResponseWriter: ~Copyable {
    let parsed: ParsedResponse
    let layout: PlanLayout
    let operation: BoundOperation
    let generation: Generation
    var changes: RecordChanges

    /// By object: its record, or 0 where it is not stored.
    var records: [RecordID]
    /// By object: the index of its record in `staged`, or -1.
    var places: [Int32]
    /// By entity, the first of its key: the number that the key has in the store; 0 until it is needed.
    var storedRecords: [RecordID]
    /// By object without identity.
    var origins: [PartOrigin]
    /// Of `PartOrigin.existing`.
    var storedParts: [StoredPart] = []
    /// Of parts that the response has more than once, by the first: those after it, one of each case.
    var twins: [Int: [Int]] = [:]
    /// Whether the response is what a program made of an answer that it read: a part that it changed is the same part.
    let isEdited: Bool
    /// By the plan's keys, the first of each field: the value in the object that is being compared with another.
    var compared: [(comparison: Int, cell: ParsedCell)] = []
    var comparisons = 0
    var staged: [StagedRecord] = []
    /// Those of the staged records that are stored, as they are: see `StagedRecord.existing`.
    var storedViews: [RecordView] = []
    /// Of the records that are met again.
    var fields: [StagedField] = []
    /// Where a field is, for records of so many that walking their chains would not do.
    var fieldIndex: [StagedPlace: Int] = [:]
    /// By the plan's keys, the first of each field: where it was staged last.
    var lastStaged: [StagedPlace]
    /// By the same: the record that had it last, of the records that are met for the first time.
    var lastMet: [Int]
    /// By `Plan.keys`: the field's number, 0 until it is needed, and the first key with that number.
    var keyIDs: [(id: FieldID, first: Int32)]
    var firstKeys: [FieldID: Int32] = [:]
    /// By type number; 0 until it is needed.
    private var typeIDs: [FieldID]
    /// Parts that nothing holds any more.
    var orphans: [RecordID] = []
    /// The key under which the root is stored, whose bytes `run` keeps, and its index in `staged`.
    var root: (key: UnsafeRawBufferPointer, record: Int)?
    var heap = TextHeap()
    /// By the records' indices in `staged`, up to the last of which the response tells a version.
    private var versions: [Int64?] = []
    /// False where the cache is empty, so that nothing need be looked for in it.
    var mayHaveKeys = true

    /// A field of a staged record, both by their indices.
    struct StagedPlace: Hashable {
        var record: Int
        var field: Int
    }

    /// What the root of the response is stored as.
    enum Root {
        /// Under this key: the root of all queries, or the object that a fragment was asked of.
        case record(key: String)
        /// Not at all: the roots of mutations and subscriptions are no objects.
        case unstored
    }

    /// Memory for the work on one record, kept from one to the next.
    var spareEntries: [RecordEncoder.Entry] = []
    var spareFields: [FieldID] = []
    /// Whether the response's root is the root of all queries, each of whose fields has a time of its own.
    private(set) var isQueryRoot = false

    init(
        _ parsed: ParsedResponse, of operation: BoundOperation, in generation: Generation,
        _ changes: consuming RecordChanges, isEdited: Bool = false
    ) {
        self.isEdited = isEdited
        self.parsed = parsed
        self.operation = operation
        self.generation = generation
        self.changes = changes
        layout = parsed.layout
        let count = parsed.objects.count
        records = Array(repeating: 0, count: count)
        places = Array(repeating: -1, count: count)
        storedRecords = Array(repeating: 0, count: parsed.entities.count)
        origins = Array(repeating: .unstored, count: count)
        let keyCount = parsed.layout.plan.keys.count
        keyIDs = Array(repeating: (0, 0), count: keyCount)
        lastStaged = Array(repeating: StagedPlace(record: -1, field: -1), count: keyCount)
        lastMet = Array(repeating: -1, count: keyCount)
        firstKeys.reserveCapacity(keyCount)
        typeIDs = Array(repeating: 0, count: parsed.layout.typeNames.count + parsed.unknownTypes.count)
        staged.reserveCapacity(count)
    }

    /// The version that the response tells of a staged record; nil where it tells none.
    func stagedVersion(of record: Int) -> Int64? { record < versions.count ? versions[record] : nil }

    mutating func note(_ version: Int64?, of record: Int) {
        guard let version else { return }
        while versions.count <= record { versions.append(nil) }
        versions[record] = version
    }

    consuming func run(
        _ root: Root, _ transaction: borrowing some RecordSnapshot & ~Copyable
    ) throws -> RecordChanges {
        guard let rootObject = parsed.root else { return changes }
        let rootKey: FlatBuffer<UInt8> =
            if case .record(let key) = root { FlatBuffer(Array(key.utf8)) } else { FlatBuffer() }
        if case .record(CacheKey.queryRoot.text) = root { isQueryRoot = true }
        // A staged record has the key's place, and is finished last.
        defer { withExtendedLifetime(rootKey) {} }
        mayHaveKeys = try transaction.overlay != nil || transaction.entryCount(of: generation.tables.keys) > 0
        if !mayHaveKeys { changes.reserveCapacity(records: parsed.objects.count, keyBytes: parsed.keys.count) }
        var cursor = try transaction.cursor(in: generation.tables.records)
        var keyCursor = try transaction.cursor(in: generation.tables.keys)
        for object in parsed.objects.indices {
            let record: Int?
            if object == rootObject {
                switch root {
                case .record:
                    record = unsafe try stageRoot(
                        object, UnsafeRawBufferPointer(rootKey.elements), &cursor, &keyCursor, transaction)
                case .unstored: record = nil
                }
            } else {
                record = try stage(object, &cursor, &keyCursor, transaction)
            }
            guard let record else { continue }
            records[object] = staged[record].id
            places[object] = Int32(truncatingIfNeeded: record)
            try stageFields(of: object, in: record, transaction)
        }
        if isQueryRoot { changes.received?.root = records[rootObject] }
        replacePartsOfReplaced()
        (origins, storedRecords) = ([], [])
        let values = ParsedValues(parsed: parsed, records: records)
        if let order = changedOrder() {
            for record in order where !staged[record].isAbandoned { try finish(record, values, transaction) }
        } else {
            for record in staged.indices where !staged[record].isAbandoned { try finish(record, values, transaction) }
        }
        try changes.removeParts(orphans, generation, transaction)
        return changes
    }

    /// The staged records in ascending order of their numbers; nil where that is the text's, as where all are new.
    private func changedOrder() -> [Int]? {
        if staged.indices.dropFirst().allSatisfy({ staged[$0 - 1].id < staged[$0].id }) { return nil }
        return staged.indices.sorted { staged[$0].id < staged[$1].id }
    }

    mutating func typeID(
        of object: Int, _ transaction: borrowing some RecordSnapshot & ~Copyable
    ) throws -> FieldID {
        let number = Int(parsed.objects[object].type)
        if typeIDs[number] == 0 {
            typeIDs[number] = try changes.fieldID(parsed.typeName(Int32(number)), generation, transaction)
        }
        return typeIDs[number]
    }
}
