public import Foundation
import LarderOperations

/// A file on its way, by its id: handles are made as often as one likes, also after a restart, and all are equal.
public struct Transfer: Sendable, Identifiable {
    /// By which it is found.
    public let id: TransferID
    let core: PartitionCore

    /// What is known of it.
    ///
    /// - Throws: `.unknownTransfer` where there is none, or it was forgotten; `operations.…`.
    public func status() throws(LarderError) -> TransferStatus {
        guard let database = try core.operationsStore.database(making: false) else { throw unknown }
        let found: StoredTransfer?
        do { found = try database.transfers.find(id.uuid) } catch { throw LarderError(error) }
        guard let found else { throw unknown }
        return TransferStatus(found)
    }

    /// How far it has come, now and whenever that has changed, at most ten times a second; the last is that of its end.
    /// Ends also when the partition is parked or the store closed, and at once where there is no such transfer.
    public var progress: some AsyncSequence<TransferProgress, Never> & Sendable {
        TransferProgressSequence(transfer: self)
    }

    /// Waits until it is done, has failed or is given up.
    ///
    /// - Parameter time: How long at most; a wait that ends does not end the transfer.
    /// - Throws: `.unfinishedTransfer` when the time is over; `.unknownTransfer`; `.parked`; `.cancelled` where the
    ///   waiting task is.
    public func outcome(within time: Duration) async throws(LarderError) -> TransferOutcome {
        var deadline = SuspendingClock.now + time
        let changeSignal = core.transfers.changeSignal(of: id.uuid, core)
        defer { core.transfers.releaseChangeSignal(of: id.uuid) }
        while true {
            deadline += await core.operationsStore.suspension.sitOut()
            let count = changeSignal.count
            let status: TransferStatus
            do throws(LarderError) { status = try self.status() } catch {
                guard error.code == .suspended else { throw error }
                // Suspended just now, unless the wait for the end of that was cancelled.
                guard !Task.isCancelled else { throw cancelledWait }
                continue
            }
            if let outcome = TransferOutcome(status) { return outcome }
            if Task.isCancelled { throw cancelledWait }
            try core.requireCurrent()
            let left = SuspendingClock.now.duration(to: deadline)
            guard left > .zero else {
                throw LarderError(
                    .unfinishedTransfer,
                    "Transfer \(id) is still \(status.state.rawValue); it goes on without this wait")
            }
            await changeSignal.wait(past: count, for: left)
        }
    }

    private var cancelledWait: LarderError { LarderError(.cancelled, "The wait for transfer \(id) was cancelled") }

    // MARK: What people do

    /// Holds it, at once where it is under way in this process. The bytes that have arrived stay.
    ///
    /// - Throws: `operations.wrongState` unless it is pending or running; `.unknownTransfer`; `.parked`.
    public func pause() async throws(LarderError) {
        try await change { (table) throws(OperationsError) in try await table.pause(id.uuid) }
    }

    /// Goes on where it was paused.
    ///
    /// - Throws: `operations.wrongState` unless it is paused; `.unknownTransfer`; `.parked`.
    public func resume() async throws(LarderError) {
        try await change { (table) throws(OperationsError) in try await table.resume(id.uuid) }
    }

    /// Tries a failed one again. An upload sends the file as it is now, from its beginning if it is another. The
    /// mutations that were set aside because of it wait for it again.
    ///
    /// - Parameter expires: Its new expiry.
    /// - Throws: `operations.wrongState` unless it has failed; `.sourceMissing` and the like of an upload's file;
    ///   `.unknownTransfer`; `.parked`.
    public func retry(expires: Date? = nil) async throws(LarderError) {
        let status = try status()
        // Any other is refused, whatever has become of its file.
        let isFailedUpload = status.kind == .upload && status.state == .failed
        let source = isFailedUpload ? try SourceFile.identity(at: status.file.path, core.files) : nil
        try await change { (table) throws(OperationsError) in
            try await table.retry(id.uuid, source: source, expires: expires)
        }
        try core.layers.reload(core.operationsStore.database().mutations)
        core.operationsStore.changeSignal.notify()
    }

    /// Gives it up. What it has left at the storage, or in the store's folder, is removed by the runner. The mutations
    /// that wait for it are set aside, with the reason.
    ///
    /// - Throws: `operations.wrongState` where it is done or cancelled; `.unknownTransfer`; `.parked`, as of all that
    ///   changes it.
    public func cancel() async throws(LarderError) {
        let now = core.now()
        var waiting: [UUID] = []
        try await change { (table) throws(OperationsError) in waiting = try await table.cancel(id.uuid, now: now) }
        core.layers.remove(waiting)
        core.operationsStore.changeSignal.notify()
    }

    private func change(
        _ body: (TransferTable) async throws(OperationsError) -> Void
    ) async throws(LarderError) {
        try await core.requireAwake()
        let table = try core.operationsStore.database().transfers
        do { try await body(table) } catch { throw translated(error) }
        core.transfers.noteChanges(of: [id.uuid])
    }

    private func translated(_ error: OperationsError) -> LarderError {
        error.code == .notFound ? unknown : LarderError(error)
    }

    private var unknown: LarderError {
        LarderError(.unknownTransfer, "There is no transfer \(id), or it was forgotten")
    }
}

extension Transfer: Hashable {
    /// Whether both are of one transfer.
    public static func == (left: Transfer, right: Transfer) -> Bool { left.id == right.id }

    /// By the id.
    public func hash(into hasher: inout Hasher) { hasher.combine(id) }
}
