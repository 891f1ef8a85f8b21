package import Foundation

/// The files of all partitions that are on their way to or from a storage. Their states and transitions:
/// `TransferState`.
///
/// Each write is one transaction, and on disk when its call returns.
package struct TransferTable: Sendable {
    package let database: OperationsDatabase

    /// Queues transfers, all of them or none, in one transaction.
    ///
    /// - Throws: `.duplicate` where an id was used before; `.parked`; `.full`, `.busy` and others of the database.
    package func enqueue(_ drafts: [TransferDraft]) async throws(OperationsError) {
        let home = database.home
        try await write { transaction in
            var partitions: [String: Int64] = [:]
            for draft in drafts {
                let partition =
                    try partitions[draft.partition]
                    ?? transaction.db.usablePartition(making: draft.partition)
                partitions[draft.partition] = partition
                var draft = draft
                if let home { draft.path = home.stored(draft.path) }
                try transaction.enqueue(draft, in: partition)
            }
        }
    }

    /// The transfer with its file's whole path.
    func located(_ transfer: StoredTransfer) -> StoredTransfer {
        guard let home = database.home else { return transfer }
        var transfer = transfer
        transfer.path = home.located(transfer.path)
        return transfer
    }

    // MARK: What a runner does

    /// Pending to running.
    ///
    /// - Returns: The transfer as it was begun; nil where it is not pending any more, or its time has come.
    package func begin(_ id: UUID, owner: String, now: Date) async throws(OperationsError) -> StoredTransfer? {
        try await write { try $0.begin(id, owner: owner, now: now) }.map(located)
    }

    /// Notes what an attempt has found out or agreed with the storage, in one transaction.
    ///
    /// - Throws: `.wrongState` where the attempt is not under way any more; `.notFound`.
    package func note(_ attempt: TransferAttempt, _ notes: [TransferNote]) async throws(OperationsError) {
        try await write { transaction in
            let sequence = try transaction.sequence(attempt)
            for note in notes { try transaction.note(note, of: sequence) }
        }
    }

    /// Running to done; mutations that wait for it go on.
    package func finish(
        _ attempt: TransferAttempt, etag: String?, version: String? = nil, crc32c: UInt32? = nil, now: Date
    ) async throws(OperationsError) {
        try await write { try $0.finish(attempt, etag, version, crc32c, now: now) }
    }

    /// Running to pending.
    ///
    /// - Parameter at: Not to be begun again before; nil for at once.
    package func retryLater(
        _ attempt: TransferAttempt, at: Date?, _ failure: TransferFailure, now: Date
    ) async throws(OperationsError) {
        try await write { try $0.retryLater(attempt, at: at, failure, now: now) }
    }

    /// Running to pending, with nothing that speaks against it: its runner has stopped.
    package func release(_ attempt: TransferAttempt) async throws(OperationsError) {
        try await write { try $0.set(.pending, of: $0.sequence(attempt)) }
    }

    /// Running to failed. The mutations that wait for it are set aside, with the reason.
    ///
    /// - Returns: The mutations that were set aside.
    @discardableResult
    package func fail(
        _ attempt: TransferAttempt, _ failure: TransferFailure, now: Date
    ) async throws(OperationsError) -> [UUID] {
        try await write { transaction in
            try transaction.fail(transaction.sequence(attempt), failure, now: now)
        }
    }

    /// Makes pending again what a dead runner left. The caller holds the runner's lock.
    ///
    /// - Parameters:
    ///   - putting: For how many seconds the storage may still keep an object that the runner had sent in one piece.
    ///   - completing: For how many seconds it may still put one together whose parts have all arrived.
    package func recover(
        in partition: String, now: Date, puttingLasts putting: Double, completingLasts completing: Double
    ) async throws(OperationsError) {
        try await write { transaction in
            guard let number = try transaction.db.partition(partition) else { return }
            try transaction.recover(
                number, now: now, now.addingTimeInterval(putting), now.addingTimeInterval(completing))
        }
    }

    /// Notes until when the object of an upload may still appear, since an attempt has sent it and had no answer, in
    /// whatever state the upload is by now. Later uploads of the key are not begun before.
    package func noteDoubt(of id: UUID, until: Date, now: Date) async throws(OperationsError) {
        try await write { transaction in
            try transaction.db.run(
                "UPDATE transfer SET doubt = ?, doubt_set = ? WHERE id = ? AND kind = \(kind: .upload)",
                [until.milliseconds, now.milliseconds, id])
        }
    }

    /// Notes that the executor outside of the program does not have the transfer any more, whatever its state.
    package func noteHandedBack(_ id: UUID) async throws(OperationsError) {
        try await write { transaction in
            try transaction.db.run(
                "UPDATE transfer SET handed_over = NULL WHERE id = ? AND handed_over IS NOT NULL", [id])
        }
    }

    /// Turns pending transfers whose time is over into failed ones.
    ///
    /// - Returns: The mutations that were set aside because of that.
    @discardableResult
    package func expire(in partition: String, now: Date) async throws(OperationsError) -> [UUID] {
        try await write { transaction in
            guard let number = try transaction.db.partition(partition) else { return [] }
            let sequences = try transaction.db.integers(
                """
                SELECT sequence FROM transfer INDEXED BY transfer_expiry
                WHERE partition = ? AND state = \(transfer: .pending) AND expires IS NOT NULL AND expires <= ?
                ORDER BY sequence
                """, [number, now.milliseconds])
            let failure = TransferFailure(
                code: "transfer.expired", message: "The transfer's time was over before it was done", time: now)
            return try sequences.flatMap { try transaction.fail($0, failure, now: now) }
        }
    }

    /// Cancelling to cancelled: what it left behind is gone.
    package func cleared(_ id: UUID, now: Date) async throws(OperationsError) {
        try await write { transaction in
            try transaction.clear(transaction.entry(id, in: [.cancelling]), now: now)
        }
    }

    /// What the storage had begun of a transfer that has failed is gone.
    package func forgetUpload(of id: UUID) async throws(OperationsError) {
        try await write { transaction in
            let entry = try transaction.entry(id, in: [.failed])
            try transaction.note(.restart, of: entry.sequence)
        }
    }

    // MARK: What people do

    /// Pending or running to paused.
    package func pause(_ id: UUID) async throws(OperationsError) {
        try await write { transaction in
            let entry = try transaction.entry(id, in: [.pending, .running])
            try transaction.set(.paused, of: entry.sequence)
        }
    }

    /// Paused to pending.
    package func resume(_ id: UUID) async throws(OperationsError) {
        try await write { transaction in
            let entry = try transaction.entry(id, in: [.paused])
            try transaction.set(.pending, of: entry.sequence)
        }
    }

    /// Failed to pending. The mutations that were set aside because of it wait for it again, except mutations that wait
    /// for another transfer that has failed or was given up.
    ///
    /// - Parameters:
    ///   - source: Of an upload: the file as it is now, which is sent from its beginning if it is another.
    ///   - expires: Its new expiry.
    /// - Throws: `.wrongState` where it has not failed, or has because its row was damaged; `.notFound`.
    package func retry(_ id: UUID, source: FileIdentity?, expires: Date? = nil) async throws(OperationsError) {
        try await write { try $0.retry(id, source, expires) }
    }

    /// Gives a transfer up.
    ///
    /// - Returns: The mutations that were set aside because of that.
    @discardableResult
    package func cancel(_ id: UUID, now: Date) async throws(OperationsError) -> [UUID] {
        try await write { transaction in
            let entry = try transaction.entry(id, in: [.pending, .running, .paused, .failed])
            return try transaction.cancel(entry.sequence, now: now)
        }
    }

    /// Forgets transfers of a partition that are done or cancelled, except the last `count` and transfers that
    /// something refers to.
    package func prune(keeping count: Int, in partition: String) async throws(OperationsError) {
        try await write { transaction in
            guard let number = try transaction.db.partition(partition) else { return }
            try transaction.prune(keeping: count, in: number)
        }
    }

    /// Forgets the transfers of a partition that have ended, and gives up the downloads, which are forgotten too as
    /// soon as nothing of them is left in the store's folder.
    ///
    /// - Parameter keepsQueued: Whether transfers that have not ended stay as they are.
    /// - Returns: All that there were, and the mutations that were set aside because they waited for one.
    /// - Throws: `.unsentWork` where there are uploads that the storage may not have, and they are not to stay.
    package func erase(
        in partition: String, keepsQueued: Bool, now: Date
    ) async throws(OperationsError) -> (transfers: [UUID], setAside: [UUID]) {
        try await write { transaction in
            guard let number = try transaction.db.partition(partition) else { return ([], []) }
            return try transaction.erase(in: number, keepsQueued: keepsQueued, now: now)
        }
    }

    func write<Value: Sendable>(
        _ body: @escaping @Sendable (TransferTransaction) throws -> Value
    ) async throws(OperationsError) -> Value {
        try await database.write { try body(TransferTransaction(db: $0)) }
    }

    func read<Value>(_ body: (TransferTransaction) throws -> Value) throws(OperationsError) -> Value {
        try database.read { try body(TransferTransaction(db: $0)) }
    }
}

/// What a runner notes of a transfer that it carries out.
package enum TransferNote: Sendable, Hashable {
    /// What a download is of.
    case object(etag: String, size: Int64, crc32c: UInt32?)
    /// Into how large parts it is cut.
    case partSize(Int64)
    /// The partial file of a download.
    case file(FileIdentity)
    /// The storage is about to be asked to begin an upload in parts, and has these of the key already.
    case uploadAsked(before: [String])
    /// The storage has begun an upload in parts.
    case upload(String)
    /// Parts have arrived.
    case parts([StoredPart])
    /// Parts that the storage, or the partial file, does not have after all.
    case lost([Int])
    /// The storage neither knows the upload in parts nor lets it be aborted. It may know it again later, so the upload
    /// becomes a transfer of its own that is being cancelled, and is forgotten when the storage lets go of it.
    case uploadLeft
    /// An executor outside of the program is about to be handed it.
    case handedOver(Date)
    /// All that was agreed with the storage, and all that arrived, is void: it begins anew.
    case restart
}

extension OperationsDatabase {
    /// Files that are on their way to or from a storage.
    package var transfers: TransferTable { TransferTable(database: self) }
}
