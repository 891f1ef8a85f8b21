package import Foundation

/// The mutations of all partitions that are on their way to the server.
///
/// Each write is one transaction, and on disk when its call returns. None of them loses a mutation: it goes from state
/// to state, and the last step, `settle` or `discard`, leaves its outcome. A call that finds another state than it
/// expects throws `.wrongState` and changes nothing: another caller was quicker.
///
/// ```
/// enqueue -> pending -> begin -> inFlight -> answer -> acknowledged -> settle -> (outcome)
///               ^                   |
///               +--- retryLater ----+          setAside, expire: -> deadLetter -> replay -> pending
///                                                                              -> discard -> (outcome)
/// ```
///
/// **Clocks.** The order is that of the sequence, never of a clock. A backoff ends early if the clock is set back past
/// its beginning, so that nothing waits for a time that was worked out wrongly. Only pending mutations expire: one
/// whose attempt is under way may have taken effect. An expired one is a dead letter and can be replayed.
package struct MutationQueue: Sendable {
    let database: OperationsDatabase
    var isBlocking = false

    /// The same queue, whose writes may keep the caller's thread waiting for the disk: two changes of threads fewer for
    /// each. Not for Swift's own threads, which are as many as there are processors.
    package var blocking: MutationQueue {
        var queue = self
        queue.isBlocking = true
        return queue
    }

    /// Queues a mutation at the end of the order.
    ///
    /// Real ids take the places of temporary ones where they are known; where they are not, the mutation depends on
    /// the mutations that reserved them. O(log n), and a share of a commit.
    ///
    /// - Returns: The mutation as it is stored.
    /// - Throws: `.duplicate`, `.unknownTemporaryID`, `.invalid`; `.notFound` for a dependency that is not known;
    ///   `.full`, `.busy` and others of the database; `.commitUnknown` where it may be queued or not, which `find` decides.
    package func enqueue(_ draft: MutationDraft) async throws(OperationsError) -> Mutation {
        try Self.check(draft)
        let mayHoldIDs = draft.mayHoldTemporaryIDs
        return try await naming(draft.id) { () async throws(OperationsError) in
            try await write { transaction in
                let partition = try transaction.db.usablePartition(making: draft.partition)
                return try transaction.enqueue(draft, in: partition, mayHoldIDs: mayHoldIDs)
            }
        }
    }

    /// Queues mutations at the end of the order, all of them or none, in one transaction. Later ones may depend on
    /// earlier ones and use their temporary ids.
    ///
    /// - Returns: The mutations as they are stored, in the same order.
    /// - Throws: As for one, with the first mutation that cannot be queued.
    package func enqueue(_ drafts: [MutationDraft]) async throws(OperationsError) -> [Mutation] {
        for draft in drafts { try Self.check(draft) }
        guard let first = drafts.first else { return [] }
        let mayHoldIDs = drafts.map(\.mayHoldTemporaryIDs)
        return try await naming(first.id) { () async throws(OperationsError) in
            try await write { try $0.enqueue(drafts, mayHoldIDs: mayHoldIDs) }
        }
    }

    /// Says by which mutation the caller can ask whether a commit is there that failed.
    private func naming<Value>(
        _ id: UUID, _ body: () async throws(OperationsError) -> Value
    ) async throws(OperationsError) -> Value {
        do throws(OperationsError) { return try await body() } catch {
            guard error.code == .commitUnknown else { throw error }
            var error = error
            error.mutation = id
            throw error
        }
    }

    private static func check(_ draft: MutationDraft) throws(OperationsError) {
        try requireObject(draft.content.variables, of: draft.id)
        guard draft.idempotencyKey != "" else {
            throw OperationsError(
                .invalid, "The idempotency key is empty; leave it out, or give one", mutation: draft.id)
        }
    }

    /// Makes several steps in one transaction: all of them, or none.
    ///
    /// - Returns: The mutations that were begun, in order, as they are to be sent.
    /// - Throws: `.notFound`, `.wrongState`, `.notItsTurn`, `.expired`, `.invalid`, `.duplicate` for the first step
    ///   that cannot be made, with its mutation.
    @discardableResult
    package func apply(_ transitions: [Transition], now: Date) async throws(OperationsError) -> [Mutation] {
        try await write { transaction in
            try transitions.compactMap { try transaction.apply($0, now: now) }
        }
    }

    /// Pending to in flight. See `Transition`, as for the five that follow.
    package func begin(
        _ id: UUID, owner: String, telling: KeyDelivery = .none, now: Date
    ) async throws(OperationsError) -> Mutation {
        guard let mutation = try await apply([.begin(id, owner: owner, telling: telling)], now: now).first else {
            throw OperationsError(.storage, "A mutation was begun and not returned", mutation: id)
        }
        return mutation
    }

    package func retryLater(
        _ attempt: Attempt, at: Date?, _ failure: MutationFailure, revision: Revision? = nil,
        leaving doubt: RemainingDoubt? = nil, now: Date
    ) async throws(OperationsError) {
        try await apply([.retryLater(attempt, at: at, failure, revision: revision, leaving: doubt)], now: now)
    }

    package func answer(
        _ attempt: Attempt, _ answer: [UInt8], temporaryIDs: [TemporaryID: String] = [:], now: Date
    ) async throws(OperationsError) {
        try await apply([.answer(attempt, answer, temporaryIDs: temporaryIDs)], now: now)
    }

    /// Notes an answer, and begins the next of the lane in the same commit.
    ///
    /// - Parameter expecting: Is told of the next before the commit is made, so that it can be got ready while the disk
    ///   is waited for: more than once where the commit has to be made again, and in vain where it fails.
    /// - Returns: The next, where there is one that can be sent now.
    package func answer(
        _ attempt: Attempt, _ answer: [UInt8], temporaryIDs: [TemporaryID: String], beginningNextAs owner: String,
        telling: KeyDelivery = .none, now: Date, expecting: @escaping @Sendable (Mutation) -> Void = { _ in }
    ) async throws(OperationsError) -> Mutation? {
        try await write { transaction in
            let next = try transaction.acknowledge(
                attempt, answer, temporaryIDs, beginningNextAs: owner, telling: telling, now: now)
            if let next { expecting(next) }
            return next
        }
    }

    package func settle(_ id: UUID, result: [UInt8]? = nil, now: Date) async throws(OperationsError) {
        try await settle([(id, result)], now: now)
    }

    /// Acknowledged to settled: several in one transaction and few statements, all of them or none.
    ///
    /// - Parameter errors: For mutations that took effect in part, what the server said had failed, as a JSON list.
    /// - Throws: `.notFound`, `.wrongState` for the first that is not acknowledged.
    package func settle(
        _ settled: [(mutation: UUID, result: [UInt8]?)], errors: [UUID: [UInt8]] = [:], now: Date
    ) async throws(OperationsError) {
        try await write { transaction in
            try transaction.settle(settled, now: now)
            try transaction.note(errors)
        }
    }

    package func setAside(
        _ id: UUID, expecting state: MutationState, _ failure: MutationFailure, now: Date
    ) async throws(OperationsError) {
        try await apply([.setAside(id, expecting: state, failure)], now: now)
    }

    package func adopt(
        _ attempt: Attempt, from old: String, to new: String, now: Date
    ) async throws(OperationsError) {
        try await apply([.adopt(attempt, from: old, to: new)], now: now)
    }

    func write<Value: Sendable>(
        _ body: @escaping @Sendable (QueueTransaction) throws -> Value
    ) async throws(OperationsError) -> Value {
        try await database.write(isBlocking: isBlocking) { try body(QueueTransaction(db: $0)) }
    }

    func read<Value>(_ body: (QueueTransaction) throws -> Value) throws(OperationsError) -> Value {
        try database.read { try body(QueueTransaction(db: $0)) }
    }
}
