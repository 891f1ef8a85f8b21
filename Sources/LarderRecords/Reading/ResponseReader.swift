import LarderGraphQL
import LarderLMDB

/// Answers one operation from one snapshot.
///
/// Records are read in the order in which the plan meets them; a record's fields are found by going through the
/// plan's FieldIDs and the record's side by side, both being sorted. Nothing that is not asked for is decoded, and
/// text is copied once, from the map into the answer.
///
/// - Complexity: O(n) in the records and bytes of the answer, and O(log m) for each record among m where they do not
///   follow each other.
///
/// Safe: the way to a value is in memory of the caller's, which has room for the plan's depth.
@safe struct ResponseReader: ~Copyable {
    private let operation: BoundOperation
    let layout: PlanLayout
    let plan: ResolvedPlan
    /// Whether the snapshot is a commit, whose names may be kept.
    private let isCommitted: Bool
    var builder: ResponseBuilder
    private(set) var missing: [ResponsePath] = []
    /// About the bytes that `missing` took, forgotten ones included.
    private var missingSize = 0
    /// The bytes that the answer may take.
    private let limit: Int
    private var absentKeys: [String] = []
    /// Whether optimistic layers have changed a record or a field that the answer depends on.
    private var isOptimistic = false
    /// Whether the last call of `stored` found the record in the overlay.
    private var wasOverlaid = false
    var heap = TextHeap()
    /// The way to the value that is being read; as many entries as `depth` says.
    let path: UnsafeMutablePointer<PathEntry>
    var depth = 0
    /// The type name that was written last, and its cell.
    private var typename: (type: FieldID, cell: ResponseCell) = (0, ResponseCell(.absent))
    var ages: AgeReading
    /// The record of the root of all queries, where that is what is read.
    private(set) var queryRoot: RecordID?

    /// What came of reading a value, before it is known whether its place may be null.
    enum Outcome {
        /// It stands in its place.
        case read
        case null
        /// The cache does not know it; its path has been noted.
        case missing
        /// The object is known to be no more.
        case deleted
    }

    /// - Parameter path: Room for `Plan.depth` entries, and as many fields; it must outlive the reader.
    init(
        _ operation: BoundOperation, _ plan: ResolvedPlan, path: UnsafeMutablePointer<PathEntry>, isCommitted: Bool
    ) {
        unsafe self.path = unsafe path
        self.isCommitted = isCommitted
        self.operation = operation
        self.plan = plan
        layout = operation.layout
        limit = plan.generation.maximumAnswerSize
        ages = AgeReading(now: ReceivedTime(milliseconds: plan.generation.now()))
        builder = ResponseBuilder(capacity: operation.expectedAnswerSize.load(ordering: .relaxed), limit: limit)
    }

    /// - Parameters:
    ///   - root: Nil if the cache does not have the record.
    ///   - key: The root's cache key.
    consuming func read<Snapshot: RecordSnapshot & ~Copyable>(
        _ root: RecordID?, key: String, _ transaction: borrowing Snapshot
    ) throws -> CacheAnswer {
        if root == nil { absentKeys.append(key) }
        if key == CacheKey.queryRoot.text { queryRoot = root }
        let tables = plan.generation.tables
        var cursor = try transaction.cursor(in: tables.records)
        let outcome: Outcome
        if let root {
            if key == CacheKey.queryRoot.text, unsafe try stored(root, &cursor, transaction) == nil {
                try builder.appendVisit(root, caseIndex: Visit.anyField)
                outcome = try emptyRoot(&cursor, transaction)
            } else {
                outcome = try object(
                    root, selection: layout.plan.root, into: 0, isNamed: true, &cursor, transaction)
            }
        } else {
            outcome = try key == CacheKey.queryRoot.text ? emptyRoot(&cursor, transaction) : noteMissing()
        }
        switch outcome {
        case .read: break
        case .null, .deleted: builder.store(ResponseCell(.null), at: 0)
        case .missing: builder.store(ResponseCell(.absent), at: 0)
        }
        let buffer = builder.finish(shapes: layout.shapes)
        operation.noteAnswerSize(buffer.count)
        return CacheAnswer(
            response: Response(
                buffer: buffer, missing: missing, age: ages.age, isExpired: ages.isExpired,
                received: ages.received?.secondsSince1970),
            plan: plan, absentKeys: absentKeys,
            isDeleted: outcome == .deleted, overlay: transaction.overlay, isOptimistic: isOptimistic)
    }

    /// The bytes of a record, which stay where they are until the transaction ends; that outlives this call.
    @inline(__always)
    private mutating func stored<Snapshot: RecordSnapshot & ~Copyable>(
        _ id: RecordID, _ cursor: inout Cursor, _ transaction: borrowing Snapshot
    ) throws -> UnsafeRawBufferPointer? {
        if let overlay = transaction.overlay, let overlaid = overlay.record(id) {
            wasOverlaid = true
            return unsafe overlaid.bytes
        }
        wasOverlaid = false
        return unsafe try cursor.value(at: id)?.withUnsafeBytes { unsafe $0 }
    }

    /// Notes whether optimistic layers have changed a field of a record that the answer depends on, or all of it.
    private mutating func noteOptimistic<Snapshot: RecordSnapshot & ~Copyable>(
        _ field: FieldID, of record: RecordID, _ transaction: borrowing Snapshot
    ) {
        guard !isOptimistic, let overlay = transaction.overlay else { return }
        isOptimistic = overlay.touched.contains(RecordField(record: record, field: field))
    }

    /// Which case a record is read by. Notes that it is read so, and whether that is optimistic. Apart from what recurses,
    /// as `met`.
    private mutating func visit<Snapshot: RecordSnapshot & ~Copyable>(
        _ id: RecordID, _ record: RecordView, _ selection: Int, _ transaction: borrowing Snapshot
    ) throws -> Int {
        let caseIndex = try caseIndex(of: record, selection, transaction)
        try builder.appendVisit(id, caseIndex: UInt32(truncatingIfNeeded: caseIndex))
        // The overlay may have fields of a split record without the record itself.
        guard wasOverlaid || record.isSplit else { return caseIndex }
        let reads = plan.cases[caseIndex]
        for index in Int(reads.start)..<Int(reads.start + reads.count) {
            noteOptimistic(plan.reads[index].id, of: id, transaction)
        }
        return caseIndex
    }

    /// As `stored`, for a record that the answer depends on: notes whether it is optimistic, and tells a synchronization's
    /// demand of it. Apart from what recurses, to keep its stack frames small.
    private mutating func met<Snapshot: RecordSnapshot & ~Copyable>(
        _ id: RecordID, isNamed: Bool, _ cursor: inout Cursor, _ transaction: borrowing Snapshot
    ) throws -> UnsafeRawBufferPointer? {
        let found = unsafe try stored(id, &cursor, transaction)
        if wasOverlaid { noteOptimistic(RecordField.any, of: id, transaction) }
        if !isNamed, let demand = transaction.demand {
            unsafe try demand.note(met: found, isInOverlay: wasOverlaid)
        }
        return unsafe found
    }

    // MARK: Objects

    // The recursion is as deep as the plan.
    /// - Parameter isNamed: Whether it was found by its key.
    mutating func object<Snapshot: RecordSnapshot & ~Copyable>(
        _ id: RecordID, selection: Int, into offset: Int, isNamed: Bool = false, _ cursor: inout Cursor,
        _ transaction: borrowing Snapshot
    ) throws -> Outcome {
        guard let stored = unsafe try met(id, isNamed: isNamed, &cursor, transaction) else {
            try builder.appendVisit(id, caseIndex: Visit.anyField)
            return try noteMissing()
        }
        let record = unsafe try RecordView(stored)
        if record.isTombstone {
            try builder.appendVisit(id, caseIndex: Visit.anyField)
            return .deleted
        }
        let caseIndex = try visit(id, record, selection, transaction)
        let planned = layout.cases[caseIndex]
        let block = try builder.appendUnsetCells(Int(planned.visibleCount))
        let reads = plan.cases[caseIndex]
        if !ages.has(id, maxAge: planned.maxAge) { try addAge(of: id, record, planned, reads, transaction) }
        var isMissing = false
        var lacksFields = false
        let missingBefore = missing.count
        var position = 0
        for index in Int(reads.start)..<Int(reads.start + reads.count) {
            let read = plan.reads[index]
            let field = layout.fields[Int(read.field)]
            let place = block + Int(field.slot) * ResponseCell.size
            if read.id == FieldRead.typename {
                builder.store(try typenameCell(record.type, transaction), at: place)
                continue
            }
            unsafe path[depth] = .field(read.field)
            depth += 1
            let outcome: Outcome
            if record.isSplit {
                let value = try splitField(id, read, transaction)
                if value == nil { try lack(id, &lacksFields) }
                outcome = try splitField(value, field, into: place, &cursor, transaction)
            } else {
                while position < record.count, record.field(position) < read.id { position += 1 }
                if position < record.count, record.field(position) == read.id {
                    let word = record.value(position)
                    outcome =
                        if field.isLeaf {
                            try leaf(word, record.payload, field, into: place, transaction)
                        } else {
                            try value(word, record.payload, field, level: 0, into: place, &cursor, transaction)
                        }
                } else {
                    try lack(id, &lacksFields)
                    outcome = try absentField(field, into: place, &cursor, transaction)
                }
            }
            depth -= 1
            switch settle(outcome, isNonNull: field.isNonNull(0), at: place) {
            case .read: break
            case .missing: isMissing = true
            case .null, .deleted:
                forgetMissing(from: missingBefore)
                return .null
            }
        }
        if isMissing { return .missing }
        builder.store(
            ResponseCell(.object, count: UInt32(truncatingIfNeeded: caseIndex), payload: UInt64(block)), at: offset)
        return .read
    }

    /// A field that a record lacks is waited for by the record as a whole: compacting forgets the number of a name that
    /// no record uses, and the name has another when it comes.
    private mutating func lack(_ record: RecordID, _ isNoted: inout Bool) throws {
        if !isNoted { try builder.appendVisit(record, caseIndex: Visit.anyField) }
        isNoted = true
    }

    /// The root of all queries before anything was stored in it: it lacks every field, and policies may know some.
    private mutating func emptyRoot<Snapshot: RecordSnapshot & ~Copyable>(
        _ cursor: inout Cursor, _ transaction: borrowing Snapshot
    ) throws -> Outcome {
        let type = layout.types[Int(layout.selections[layout.plan.root].typeStart)]
        let planned = layout.cases[Int(type.caseIndex)]
        let block = try builder.appendCells(Int(planned.visibleCount))
        var isMissing = false
        for number in planned.fieldStart..<(planned.fieldStart + planned.visibleCount) {
            let field = layout.fields[Int(number)]
            let place = block + Int(field.slot) * ResponseCell.size
            if field.content == .typename {
                builder.store(try text(layout.typeNames[Int(type.number)]), at: place)
                continue
            }
            unsafe path[depth] = .field(number)
            depth += 1
            let outcome = try absentField(field, into: place, &cursor, transaction)
            depth -= 1
            switch settle(outcome, isNonNull: field.isNonNull(0), at: place) {
            case .read: break
            case .missing: isMissing = true
            case .null, .deleted:
                forgetMissing(from: 0)
                return .null
            }
        }
        if isMissing { return .missing }
        builder.store(
            ResponseCell(.object, count: UInt32(bitPattern: type.caseIndex), payload: UInt64(block)), at: 0)
        return .read
    }

    /// Null propagation: a null in a non-null place makes its container null, an unknown value makes it unknown.
    @inline(__always)
    mutating func settle(_ outcome: Outcome, isNonNull: Bool, at place: Int) -> Outcome {
        switch outcome {
        case .read: return .read
        case .null, .deleted:
            if isNonNull { return .null }
            builder.store(ResponseCell(.null), at: place)
            return .read
        case .missing:
            if isNonNull { return .missing }
            builder.store(ResponseCell(.absent), at: place)
            return .read
        }
    }

    var currentPath: [PathEntry] { unsafe Array(UnsafeBufferPointer(start: path, count: depth)) }

    /// What is missing below a null makes no difference to the answer.
    mutating func forgetMissing(from count: Int) { missing.removeLast(missing.count - count) }

    private mutating func noteMissing() throws(ResponseTooLarge) -> Outcome {
        // What is missing takes memory as well: about as much for the path, and for each step of it.
        missingSize += 64 + depth * 32
        guard builder.count + missingSize <= limit else { throw ResponseTooLarge(limit: limit) }
        missing.append(layout.path(currentPath))
        return .missing
    }

    @inline(__always)
    private func caseIndex<Snapshot: RecordSnapshot & ~Copyable>(
        of record: RecordView, _ selection: Int, _ transaction: borrowing Snapshot
    ) throws -> Int {
        let selection = layout.selections[selection]
        let type = record.type
        for index in Int(selection.typeStart)..<Int(selection.typeStart + selection.typeCount) {
            let candidate = layout.types[index]
            if plan.typeIDs[Int(candidate.number)] == type { return Int(candidate.caseIndex) }
        }
        guard selection.onlyType < 0, selection.unknownTypeCase >= 0 else {
            let name = try plan.generation.names.lookUpName(of: type, transaction, plan.generation.tables)
            throw RecordError(
                .schemaMismatch,
                "The cache holds an object of type \(name ?? "?") where the schema does not allow it; fetch it again")
        }
        return Int(selection.unknownTypeCase)
    }

    private mutating func typenameCell<Snapshot: RecordSnapshot & ~Copyable>(
        _ type: FieldID, _ transaction: borrowing Snapshot
    ) throws -> ResponseCell {
        if typename.type == type { return typename.cell }
        let (names, tables) = (plan.generation.names, plan.generation.tables)
        let found =
            isCommitted
            ? try names.name(of: type, transaction, tables) : try names.lookUpName(of: type, transaction, tables)
        guard let name = found else {
            throw DamagedRecord("its type has no name")
        }
        typename = (type, try text(name))
        return typename.cell
    }

    private mutating func text(_ name: String) throws -> ResponseCell {
        var name = name
        return try name.withUTF8 { text throws -> ResponseCell in
            unsafe try builder.appendText(.string, UnsafeRawBufferPointer(text))
        }
    }

    // MARK: Fields

    /// A field of a record whose fields are entries of their own; nil where there is none.
    private func splitField<Snapshot: RecordSnapshot & ~Copyable>(
        _ id: RecordID, _ read: FieldRead, _ transaction: borrowing Snapshot
    ) throws -> PayloadView? {
        let key = SplitFieldKey(record: id, field: read.id)
        return read.id == 0 ? nil : try plan.generation.splitField(key, transaction)
    }

    private mutating func splitField<Snapshot: RecordSnapshot & ~Copyable>(
        _ payload: PayloadView?, _ field: FieldOp, into place: Int, _ cursor: inout Cursor,
        _ transaction: borrowing Snapshot
    ) throws -> Outcome {
        guard let payload else { return try absentField(field, into: place, &cursor, transaction) }
        guard unsafe payload.bytes.count >= SplitFieldKey.header else {
            throw DamagedRecord("one of its fields is too short")
        }
        return try value(payload.word, payload, field, level: 0, into: place, &cursor, transaction)
    }

    /// A field that the record does not have may still be answered: a field policy says which object it would be.
    private mutating func absentField<Snapshot: RecordSnapshot & ~Copyable>(
        _ field: FieldOp, into place: Int, _ cursor: inout Cursor, _ transaction: borrowing Snapshot
    ) throws -> Outcome {
        guard field.policy >= 0 else { return try noteMissing() }
        switch operation.binding.policyTargets[Int(field.policy)] {
        case .none: return try noteMissing()
        case .object(let candidates):
            guard let record = try existing(candidates, &cursor, transaction) else { return try noteMissing() }
            return try object(
                record, selection: Int(field.selection), into: place, isNamed: true, &cursor, transaction)
        case .list(let elements):
            // All or nothing: the length of a list that is known in part is unknown.
            var records: [RecordID] = []
            for candidates in elements {
                guard let record = try existing(candidates, &cursor, transaction) else { return try noteMissing() }
                records.append(record)
            }
            // As if the list had been stored.
            var encoder = RecordEncoder()
            encoder.encodeReferences(records)
            // The encoder is kept until the value has been read.
            defer { withExtendedLifetime(encoder) {} }
            let payload = unsafe PayloadView(bytes: encoder.bytes)
            return try value(payload.word, payload, field, level: 0, into: place, &cursor, transaction)
        }
    }

    /// The one record among the candidates that exists; nil where there is none, or where it cannot be told which of
    /// several types is meant.
    private mutating func existing<Snapshot: RecordSnapshot & ~Copyable>(
        _ candidates: [String], _ cursor: inout Cursor, _ transaction: borrowing Snapshot
    ) throws -> RecordID? {
        let tables = plan.generation.tables
        var found: RecordID?
        for key in candidates {
            guard let record = try tables.record(of: key, transaction),
                unsafe try stored(record, &cursor, transaction) != nil
            else {
                absentKeys.append(key)
                continue
            }
            if let found {
                // It can be told once one of them has gone.
                for id in [found, record] {
                    try builder.appendVisit(id, caseIndex: Visit.anyField)
                    noteOptimistic(RecordField.any, of: id, transaction)
                }
                return nil
            }
            found = record
        }
        return found
    }
}
