package import Foundation
import GRDB
import LarderFiles

/// Mutations and uploads that the server may not have: what would be lost with what they belong to.
extension OperationsDatabase {
    /// - Throws: `.unsentWork`, with their numbers, where a partition has any.
    package func requireSent(in partition: String) throws(OperationsError) {
        try read { db in
            guard let number = try db.partition(partition) else { return }
            let queue = QueueTransaction(db: db)
            let uploads = try TransferTransaction(db: db).unsentUploads(in: number)
            guard try uploads > 0 || queue.hasUnsent(in: number) else { return }
            let counts = try queue.counts(in: partition)
            let (dead, others) = (counts[.deadLetter] ?? 0, (counts[.pending] ?? 0) + (counts[.inFlight] ?? 0))
            throw OperationsError(
                .unsentWork,
                "Not sent yet: \(others.counted("mutation")) that can be sent, \(dead) set aside, and "
                    + "\(uploads.counted("upload")); send them, or say that they are to be kept or discarded",
                unsent: .init(mutations: others + dead, uploads: uploads))
        }
    }

    /// Gives them up, all of them or none.
    ///
    /// - Returns: Whether there were any.
    /// - Throws: `.unsentWork` where a mutation is under way, which may take effect.
    package func discardUnsent(in partition: String, now: Date) async throws(OperationsError) -> Bool {
        try await write { db in
            guard let number = try db.partition(partition) else { return false }
            let queue = QueueTransaction(db: db)
            try queue.requireNoneInFlight(in: number)
            let mutations = try queue.discardUnsent(in: number, now: now)
            return try TransferTransaction(db: db).cancelAll(in: number, .upload, now: now).count + mutations > 0
        }
    }
}
