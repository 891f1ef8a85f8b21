import LarderFiles
import LarderGraphQL
import LarderOperations
import LarderRecords

/// A queued mutation, whose outcome can be asked for and waited for.
public struct MutationReceipt: Sendable {
    /// By which it is found again, after a restart too: `Partition.mutation(_:)`.
    public let id: MutationID
    let operationsStore: OperationsStore

    /// What is known of it; nil where it never was, or was settled so long ago that it is forgotten.
    public func status() throws(LarderError) -> MutationStatus? {
        guard let database = try operationsStore.database(making: false) else { return nil }
        do {
            return switch try database.mutations.find(id.uuid) {
            case .present(let mutation): MutationStatus(mutation)
            case .settled(let outcome): MutationStatus(outcome)
            case .unknown: nil
            }
        } catch { throw LarderError(error) }
    }

    /// Waits until the mutation has been applied, discarded or set aside.
    ///
    /// - Parameter time: How long at most; a wait that ends does not end the mutation.
    /// - Throws: `.unsettled` when the time is over; `.unknownMutation` where there is none of this id; `.cancelled`.
    public func outcome(within time: Duration) async throws(LarderError) -> MutationOutcome {
        let status = try await ended(within: time)
        return switch status.state {
        case .applied:
            .applied(
                try status.storedResult.map { bytes throws(LarderError) in try Self.value(bytes) } ?? .null,
                errors: status.errors)
        case .discarded: .discarded(status.failure)
        default: .setAside(status.failure)
        }
    }

    /// The status now, and each one that it changes to, in this process or another, for a screen:
    ///
    /// ```swift
    /// let rating = Observed(receipt.changes)
    /// ```
    ///
    /// It goes on where the mutation was set aside, since the user may have it sent again. It ends when the mutation was
    /// applied or discarded, was never queued, or the store is closed.
    public var changes: AsyncStream<MutationStatus> {
        let told = Locked<MutationStatus?>(nil)
        return AsyncStream { [self] in await next(after: told) }
    }

    /// - Parameter told: The status that the reader knows; nil at first.
    private func next(after told: borrowing Locked<MutationStatus?>) async -> MutationStatus? {
        while !Task.isCancelled {
            let last = told.withLock { $0 }
            guard last?.state != .applied, last?.state != .discarded else { return nil }
            _ = await operationsStore.suspension.sitOut()
            let count = operationsStore.changeSignal.count
            let found: MutationStatus?
            do throws(LarderError) { found = try status() } catch {
                // Suspended just now.
                guard error.code == .suspended else { return nil }
                continue
            }
            guard let found else { return nil }
            if found != last {
                told.withLock { $0 = found }
                return found
            }
            await operationsStore.changeSignal.wait(past: count, for: Self.pause)
        }
        return nil
    }

    private static func value(_ json: [UInt8]) throws(LarderError) -> Value {
        do { return try Value(json: json) } catch {
            throw LarderError(.data, "The stored answer of the mutation is not JSON", cause: error)
        }
    }

    /// The status after the end.
    private func ended(within time: Duration) async throws(LarderError) -> MutationStatus {
        var deadline = SuspendingClock.now + time
        while true {
            deadline += await operationsStore.suspension.sitOut()
            let count = operationsStore.changeSignal.count
            let found: MutationStatus?
            do throws(LarderError) { found = try status() } catch {
                guard error.code == .suspended else { throw error }
                // Suspended just now, unless the wait for the end of that was cancelled.
                guard !Task.isCancelled else { throw cancelledWait }
                continue
            }
            guard let status = found else {
                throw LarderError(.unknownMutation, "There is no mutation \(id), or its outcome was forgotten")
            }
            if status.isEnded { return status }
            if Task.isCancelled { throw cancelledWait }
            let left = SuspendingClock.now.duration(to: deadline)
            guard left > .zero else {
                throw LarderError(
                    .unsettled, "Mutation \(id) is still \(status.state.rawValue); it goes on without this wait")
            }
            // Another process may carry it out, whose changeSignal this is not.
            await operationsStore.changeSignal.wait(past: count, for: min(left, Self.pause))
        }
    }

    private var cancelledWait: LarderError { LarderError(.cancelled, "The wait for mutation \(id) was cancelled") }

    private static let pause = Duration.milliseconds(100)
}
