import LarderGraphQL
import LarderLMDB

extension RecordCache {
    /// Stores a response to an operation.
    ///
    /// The same response again changes nothing and publishes nothing. A response without data changes nothing.
    ///
    /// - Parameters:
    ///   - root: What the response's root is; for mutations and subscriptions it is not stored.
    ///   - key: Of the mutation that this is the answer to. It is noted in the same transaction; where it is known
    ///     already, nothing is changed and `Commit.earlier` says what is known.
    ///   - edits: What becomes of lists, after the response is stored; not where the key is known already.
    ///   - synchronizing: Makes the commit survive power loss, whatever the cache's durability. A failure to do so is
    ///     thrown, and leaves it committed: writing the same answer again does no harm.
    package func write(
        _ parsed: ParsedResponse, of operation: BoundOperation, to root: Root = .query,
        applying key: AppliedKey? = nil, edits: [ListEdit] = [], synchronizing: Bool = false,
        deadline: ContinuousClock.Instant? = nil
    ) async throws(RecordError) -> Commit {
        try await write(
            deadline: deadline, synchronizing: synchronizing, then: Self.steps(edits),
            storing(parsed, of: operation, to: root, applying: key))
    }

    /// Stores the answers of mutations in their order, in one commit which survives power loss.
    ///
    /// - Returns: For each, in order, what came of it. One that does not fit fails alone; where there is no room for one,
    ///   later ones are not stored either: nothing older is ever stored over what is newer.
    /// - Throws: What kept all of them from being tried.
    package func write(
        _ answers: [MutationAnswer], deadline: ContinuousClock.Instant? = nil
    ) async throws(RecordError) -> [Result<Commit, RecordError>] {
        guard !answers.isEmpty else { return [] }
        // The server has done what they tell of: behind a compaction of this process they wait for longer.
        let turnDeadline = ContinuousClock.now + max(options.lockDeadline, .seconds(60))
        let works: [(work: WriteWork, then: [WriteWork])] = answers.map { answer in
            (storing(answer.parsed, of: answer.operation, to: .query, applying: answer.key), Self.steps(answer.edits))
        }
        return try await write(deadline: deadline, turnDeadline: turnDeadline, synchronizing: true, works)
    }

    private func storing(
        _ parsed: ParsedResponse, of operation: BoundOperation, to root: Root, applying key: AppliedKey?
    ) -> WriteWork {
        { (generation, transaction, changes) throws in
            var changes = changes
            if let key, try !changes.note(key, .applied, self.options.now(), generation, transaction) { return changes }
            let writer = ResponseWriter(parsed, of: operation, in: generation, changes)
            return try writer.run(.init(root, operation), transaction)
        }
    }

    private static func steps(_ edits: [ListEdit]) -> [WriteWork] {
        edits.map { edit in
            { (generation, transaction, changes) throws in
                var changes = changes
                try changes.edit(edit, generation, transaction)
                return changes
            }
        }
    }

    /// Reads an answer, lets `body` make a response of it, and stores that, all in one transaction.
    ///
    /// If `body` throws, nothing is changed. It runs on the writer's thread and must not wait for another write, which
    /// is `.busy` at its deadline; it may run again where the transaction has to be made again.
    ///
    /// - Parameter body: Answers the new data, or nil to leave everything as it is.
    package func update(
        _ operation: BoundOperation, at root: Root = .query, deadline: ContinuousClock.Instant? = nil,
        _ body: @escaping @Sendable (CacheAnswer) throws -> ParsedResponse?
    ) async throws(RecordError) -> Commit {
        try await write(deadline: deadline) { (generation, transaction, changes) throws in
            let answer = try generation.answer(operation, from: root, transaction)
            guard let parsed = try body(answer) else { return changes }
            let writer = ResponseWriter(parsed, of: operation, in: generation, changes, isEdited: true)
            return try writer.run(.init(root, operation), transaction)
        }
    }

    /// How an object goes.
    package enum Removal: Sendable, Hashable {
        /// It is known to be no more: lists go without it, and references to it read null.
        case deleted
        /// Nothing is known of it any more: reading it is a miss until it comes again.
        case evicted
    }

    /// Removes objects by their cache keys; keys that are not in the cache are passed over.
    package func remove(
        keys: [String], as removal: Removal, deadline: ContinuousClock.Instant? = nil
    ) async throws(RecordError) -> Commit {
        try await write(deadline: deadline) { (generation, transaction, changes) throws in
            var changes = changes
            for key in keys {
                guard let id = try generation.tables.record(of: key, transaction) else { continue }
                // The root of all queries is emptied; it cannot be no more.
                let leavesTombstone = removal == .deleted && key != CacheKey.queryRoot
                _ = try changes.removeEntity(id, leavingTombstone: leavesTombstone, generation, transaction)
            }
            return changes
        }
    }

    /// Removes all objects of a type.
    ///
    /// - Complexity: O(n) in the objects of the type.
    package func remove(
        type: String, as removal: Removal, deadline: ContinuousClock.Instant? = nil
    ) async throws(RecordError) -> Commit {
        try await write(deadline: deadline) { (generation, transaction, changes) throws in
            var changes = changes
            for id in try generation.records(ofType: type, transaction) {
                _ = try changes.removeEntity(id, leavingTombstone: removal == .deleted, generation, transaction)
            }
            return changes
        }
    }

    /// Removes a field of an object with whatever arguments it was stored, or of the root of all queries.
    ///
    /// - Parameter field: The field's name, or a whole field key to remove one set of arguments.
    package func remove(
        field: String, of key: String, deadline: ContinuousClock.Instant? = nil
    ) async throws(RecordError) -> Commit {
        try await write(deadline: deadline) { (generation, transaction, changes) throws in
            var changes = changes
            guard let id = try generation.tables.record(of: key, transaction) else { return changes }
            _ = try changes.removeFields(
                of: id, where: { $0.hasSameBytes(as: field) || $0.utf8.starts(with: (field + "(").utf8) },
                generation, transaction)
            return changes
        }
    }
}

extension ResponseWriter.Root {
    init(_ root: RecordCache.Root, _ operation: BoundOperation) {
        self = operation.layout.plan.kind == .query ? .record(key: root.key) : .unstored
    }
}

extension Generation {
    /// The entities of a type that are in the cache: their keys all begin with the type's name.
    func records(
        ofType type: String, _ transaction: borrowing some RecordSnapshot & ~Copyable
    ) throws -> [RecordID] {
        let prefix = Array("\(type):".utf8)
        var found: [RecordID] = []
        var cursor = try transaction.cursor(in: tables.keys)
        var entry = try cursor.seek(atLeast: prefix.rawSpan)
        while let current = entry {
            let isOfType = current.key.withUnsafeBytes { $0.starts(with: prefix) }
            guard isOfType else { break }
            guard let id = current.value.withUnsafeBytes(StoredNumber.number) else {
                throw RecordError(.damaged, "a number in the cache's index is damaged")
            }
            found.append(id)
            entry = try cursor.next()
        }
        return found
    }
}
