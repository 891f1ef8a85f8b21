package import Foundation
import GRDB
import LarderFiles

extension MutationQueue {
    /// Changes what a dead letter says, before it is replayed. It goes on waiting for what it waited for, also where
    /// its new variables hold no temporary id of that any more.
    ///
    /// One that may have been sent, here or by the store that a backup was made of, gets a new idempotency key, unless
    /// it is given one: a server that knows the old one would take what is new for a repeat, and answer what came of
    /// the old, or refuse it.
    ///
    /// - Throws: `.notFound`; `.wrongState`, also where its row was damaged; `.invalid`, `.unknownTemporaryID`,
    ///   `.duplicate`.
    package func edit(_ id: UUID, _ revision: Revision) async throws(OperationsError) {
        try await write { transaction in
            let entry = try transaction.entry(id, in: .deadLetter)
            guard let mutation = try transaction.mutation(id) else { return }
            try transaction.requireWhole(mutation)
            var revision = revision
            if entry.attempts > 0 || mutation.isInDoubt, revision.idempotencyKey == nil {
                revision.idempotencyKey = UUID().uuidString.lowercased()
            }
            try transaction.revise(id, entry, revision)
        }
    }

    /// Makes a dead letter pending again, at its old place in the order: mutations that depend on it come after it, and
    /// at the end of a lane it would wait for them while they wait for it.
    ///
    /// Attempts are counted on, and the last failure stays until there is another.
    ///
    /// - Parameter expires: Its new expiry. Nil keeps the old one, unless that is over: it may be why it is here.
    /// - Throws: `.notFound`; `.wrongState`, also where a transfer that it waits for has failed or was given up, and
    ///   where its row was damaged; `.unknownTemporaryID` if what it holds must be edited first.
    package func replay(_ id: UUID, expires: Date? = nil, now: Date) async throws(OperationsError) {
        try await write { try $0.replay(id, expires: expires, now: now) }
    }

    /// Gives up a dead letter. Its outcome says so.
    ///
    /// - Returns: Its dependents that are dead letters because of it.
    /// - Throws: `.notFound`, `.wrongState`.
    @discardableResult
    package func discard(
        _ id: UUID, dependents: DiscardedDependents, now: Date
    ) async throws(OperationsError) -> [UUID] {
        try await write { try $0.discard(id, $0.entry(id, in: .deadLetter), dependents, now: now) }
    }

    /// Gives up all that is pending or a dead letter, each with its outcome, for a caller that was told to: signing
    /// out, clearing a store. What is acknowledged stays: it took effect.
    ///
    /// - Returns: How many.
    /// - Throws: `.unsentWork` if one is in flight, which may take effect. Then nothing is given up.
    @discardableResult
    package func discardAll(in partition: String, now: Date) async throws(OperationsError) -> Int {
        try await write { transaction in
            guard let number = try transaction.db.partition(partition) else { return 0 }
            try transaction.requireNoneInFlight(in: number)
            return try transaction.discardUnsent(in: number, now: now)
        }
    }

    /// - Throws: `.unsentWork` where the answers of mutations are noted, and are yet to be stored.
    package func requireStored(in partition: String) throws(OperationsError) {
        let count = try counts(in: partition)[.acknowledged] ?? 0
        guard count > 0 else { return }
        throw OperationsError(
            .unsentWork,
            "The server's answer to \(count.counted("mutation")) is yet to be stored; let a runner do so first",
            unsent: .init(mutations: count))
    }

    /// Forgets how the mutations of a partition ended, and the real ids that were learnt.
    package func forgetOutcomes(in partition: String) async throws(OperationsError) {
        try await write { transaction in
            guard let number = try transaction.db.partition(partition) else { return }
            try ForgottenOutcomes(db: transaction.db).note(outcomes: "o.partition = ?", [number])
            try transaction.db.run("DELETE FROM outcome WHERE partition = ?", [number])
            try transaction.db.run(
                "DELETE FROM temporary_id WHERE partition = ? AND sequence IS NULL", [number])
        }
    }
}
