import Foundation
import GRDB

extension QueueTransaction {
    /// Adds a mutation at the end of the order.
    ///
    /// - Parameters:
    ///   - partition: The draft's, which was found usable in this transaction.
    ///   - mayHoldIDs: `MutationDraft.mayHoldTemporaryIDs`, which the caller works out before it has the transaction.
    /// - Throws: `.duplicate`, `.unknownTemporaryID`, `.invalid`; `.notFound` for a dependency that is not known.
    func enqueue(_ draft: MutationDraft, in partition: Int64, mayHoldIDs: Bool) throws -> Mutation {
        if mayHoldIDs || !draft.dependencies.isEmpty { try requireUnsettled(draft.id) }
        if let key = draft.idempotencyKey { try requireUnsettled(key, partition, of: draft.id) }
        var found =
            mayHoldIDs
            ? try resolve(draft.content, lane: draft.lane, partition: partition, own: Set(draft.temporaryIDs))
            : ResolvedContent(content: draft.content, lane: draft.lane)
        var discarded: UUID?
        for id in draft.dependencies {
            if let dependency = try dependency(id, partition) {
                found.dependencies[dependency.sequence] = dependency
            } else if try outcome(ofDependency: id, partition) == .discarded {
                discarded = id
            }
        }
        let isStalled = found.dependencies.values.contains { $0.isDeadOrStalled }
        let touched = found.content.touched(draft)
        let sequence = try insert(draft, found, touched, partition, isStalled)
        for dependency in found.dependencies.keys { try addDependency(of: sequence, on: dependency) }
        let transfers = draft.transfers.isEmpty ? [] : try wait(draft, sequence, partition)
        for id in draft.temporaryIDs { try reserve(id, for: sequence, partition) }
        for id in found.uses { try addUse(of: id, by: sequence) }
        var mutation = Mutation(draft, sequence: sequence, touched: touched)
        mutation.lane = found.lane
        mutation.isStalled = isStalled
        mutation.content = found.content
        mutation.dependencies = found.dependencies.sorted { $0.key < $1.key }.map(\.value.id)
        mutation.transfers = transfers
        mutation.temporaryIDs = draft.temporaryIDs.sorted { $0.text < $1.text }
        if let discarded {
            // As if it had been queued before that was discarded.
            let failure = MutationFailure(
                .dependencyDiscarded,
                message: "The mutation \(discarded.canonicalText), which it depends on, was discarded",
                time: draft.created)
            try setAside(sequence: sequence, failure)
            (mutation.state, mutation.failure) = (.deadLetter, failure)
        }
        return mutation
    }

    private func insert(
        _ draft: MutationDraft, _ found: ResolvedContent, _ touched: [UInt8]?, _ partition: Int64, _ isStalled: Bool
    ) throws -> Int64 {
        do {
            try db.run(
                """
                INSERT INTO mutation (id, partition, lane, state, stalled, queued, attempts, idempotency_key, created,
                    expires, touched)
                SELECT ?1, ?2, ?3, \(mutation: .pending), ?4, ?5, 0, ?6, ?7, ?8, ?9
                WHERE NOT EXISTS (SELECT 1 FROM outcome WHERE id = ?1)
                """
            ) { row in
                row.bind(draft.id)
                row.bind(partition)
                row.bind(found.lane)
                row.bind(isStalled ? 1 : 0)
                row.bind(isStalled ? 0 : 1)
                row.bind(draft.idempotencyKey)
                row.bind(draft.created.milliseconds)
                row.bind(draft.expires?.milliseconds)
                row.bind(touched)
            }
        } catch let error as DatabaseError where error.extendedResultCode == .SQLITE_CONSTRAINT_UNIQUE {
            throw OperationsError.duplicate(draft.id)
        }
        // A duplicate of a settled mutation; the table's own indices tell of queued ones.
        guard db.changesCount == 1 else { throw OperationsError.duplicate(draft.id) }
        let sequence = db.lastInsertedRowID
        try db.run(Self.contentSQL) { $0.bind(sequence, found.content) }
        return sequence
    }

    static let contentInsertionSQL = """
        INSERT INTO mutation_content (sequence, document, operation_name, variables, optimistic_response, list_edits,
            updater, resolver, check_query) VALUES
        """
    static let contentRow = " (?, ?, ?, ?, ?, ?, ?, ?, ?)"
    private static let contentSQL = contentInsertionSQL + contentRow

    /// Before anything else is found wrong with a mutation that refers to others. Of one that does not the insertion
    /// itself looks, which takes less.
    func requireUnsettled(_ id: UUID) throws {
        if try db.exists("SELECT 1 FROM outcome WHERE id = ?", [id]) { throw OperationsError.duplicate(id) }
    }

    /// - Throws: `.duplicate` if the key is that of a mutation which took effect.
    func requireUnsettled(_ key: String, _ partition: Int64, of id: UUID) throws {
        // What was discarded had no effect that could be had twice.
        let isKnown = try db.exists(
            """
            SELECT 1 FROM outcome INDEXED BY outcome_idempotency
            WHERE partition = ? AND idempotency_key = ? AND idempotency_key IS NOT NULL AND kind = \(outcome: .applied)
            """, [partition, key])
        if isKnown { throw OperationsError.duplicate(id) }
    }

    /// Has a mutation wait for its transfers.
    ///
    /// - Returns: The transfers that are not done.
    /// - Throws: `.notFound`; `.wrongState` where one has failed or was cancelled; `.invalid` where one is another
    ///   partition's.
    private func wait(_ draft: MutationDraft, _ sequence: Int64, _ partition: Int64) throws -> [UUID] {
        let transfers = TransferTransaction(db: db)
        return try draft.transfers.filter { id in
            let entry = try transfers.entry(id, in: TransferState.hopeful)
            guard entry.partition == partition else {
                throw OperationsError(
                    .invalid, "A mutation can wait for transfers of its own partition alone", mutation: draft.id)
            }
            guard entry.state != .done else { return false }
            try db.run(
                "INSERT OR IGNORE INTO mutation_transfer (sequence, transfer) VALUES (?, ?)",
                [sequence, entry.sequence])
            return true
        }
    }

    /// Nil if it is settled.
    func dependency(_ id: UUID, _ partition: Int64) throws -> Dependency? {
        let found = try db.row("SELECT sequence, partition, state, stalled FROM mutation WHERE id = ?", [id]) { row in
            (try Dependency(id: id, row), try row.integer(1))
        }
        guard let (dependency, owner) = found else { return nil }
        guard owner == partition else { throw foreignDependency(id) }
        return dependency
    }

    /// How a dependency ended that has no row any more.
    ///
    /// - Throws: `.notFound` where nothing is known of it: whether it took effect cannot be told.
    private func outcome(ofDependency id: UUID, _ partition: Int64) throws -> Outcome.Kind {
        let found = try db.row("SELECT kind, partition FROM outcome WHERE id = ?", [id]) { row in
            (try Outcome.Kind(stored: row.integer(0)), try row.integer(1))
        }
        guard let (kind, owner) = found else {
            throw OperationsError(
                .notFound,
                "The store does not know the mutation \(id.canonicalText), which another is to depend on: it was never "
                    + "queued here, or its outcome was forgotten; leave the dependency out if it took effect",
                mutation: id)
        }
        guard owner == partition else { throw foreignDependency(id) }
        return kind
    }

    private func foreignDependency(_ id: UUID) -> OperationsError {
        OperationsError(.invalid, "A mutation can depend on those of its own partition alone", mutation: id)
    }

    func addDependency(of sequence: Int64, on dependency: Int64) throws {
        try db.run(
            "INSERT OR IGNORE INTO mutation_dependency (sequence, dependency) VALUES (?, ?)", [sequence, dependency])
    }
}

extension MutationContent {
    /// Whether it says what readers see before there is an answer. An updater alone has nothing to work with.
    package var isShown: Bool { optimisticResponse != nil || listEdits != nil }

    /// What is stored of what it touches: as the draft says, unless real ids took the places of temporary ones.
    func touched(_ draft: MutationDraft) -> [UInt8]? {
        guard isShown else { return [] }
        let isSame = optimisticResponse == draft.content.optimisticResponse && listEdits == draft.content.listEdits
        return isSame ? draft.touched : nil
    }
}

/// A mutation that another waits for.
struct Dependency {
    var id: UUID
    var sequence: Int64
    var isDeadOrStalled: Bool

    /// From the columns sequence, -, state, stalled.
    init(id: UUID, _ row: Columns) throws {
        self.id = id
        sequence = try row.integer(0)
        isDeadOrStalled = try row.integer(2) == MutationState.deadLetter.rawValue || row.integer(3) == 1
    }
}

extension OperationsError {
    static func duplicate(_ id: UUID) -> OperationsError {
        OperationsError(
            .duplicate, "The id or the idempotency key was used before; ask what became of that mutation", mutation: id)
    }
}

extension Binder {
    /// A row of `mutation_content`, in the order of `contentInsertionSQL`.
    mutating func bind(_ sequence: Int64, _ content: MutationContent) {
        bind(sequence)
        bind(content.document)
        bind(content.operationName)
        bind(content.variables)
        bind(content.optimisticResponse)
        bind(content.listEdits)
        bind(content.updater)
        bind(content.resolver)
        bind(content.checkQuery)
    }
}

extension Mutation {
    /// One that was queued as it is, and refers to no other.
    init(_ draft: MutationDraft, sequence: Int64, touched: [UInt8]?) {
        self.init(
            sequence: sequence, id: draft.id, partition: draft.partition, lane: draft.lane, state: .pending,
            isStalled: false, idempotencyKey: draft.idempotencyKey ?? draft.id.canonicalText, content: draft.content,
            touched: touched, dependencies: [], temporaryIDs: [], created: draft.created.stored,
            expires: draft.expires?.stored, attempts: 0)
    }
}

extension Date {
    /// To the millisecond, as it will be read again.
    var stored: Date { Date(milliseconds: milliseconds) }
}
