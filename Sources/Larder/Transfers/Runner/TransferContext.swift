import Foundation
import LarderOperations

/// What attempts of transfers are given, and share with the attempts beside them.
///
/// An attempt reports each step that it has done, and ends with an object or an error. What follows from that, the
/// `TransferRunner` decides.
struct TransferContext: Sendable {
    let core: PartitionCore
    let table: TransferTable
    /// Of the transfer that is carried out.
    private(set) var storage: any ObjectTransport
    let options: TransferRunner.Options
    let connections: Connections
    let pacer: Pacer
    let report: @Sendable (_ step: TransferRunner.KillPoint, _ transfer: UUID) -> Void

    /// The same with the storage of a transfer; nil where the runner does not have it.
    func with(_ storage: (any ObjectTransport)?) -> TransferContext? {
        guard let storage else { return nil }
        var context = self
        context.storage = storage
        return context
    }

    var deadline: SuspendingClock.Instant { .now + options.timeout }

    /// Moves parts of a transfer, so many side by side as there may be connections, and notes each that has arrived.
    ///
    /// After a failure no part is begun any more. Parts under way go on where the failure may pass, so that the bytes
    /// that have arrived are not lost.
    ///
    /// - Parameter move: One exchange with the storage.
    func move(
        _ numbers: [Int], of transfer: StoredTransfer, _ meter: TransferMeter,
        _ move: @escaping @Sendable (_ number: Int) async throws -> StoredPart
    ) async throws {
        try await withThrowingTaskGroup(of: Void.self) { group in
            var left = numbers.makeIterator()
            for _ in 0..<max(1, options.connectionsPerHost) {
                guard let number = left.next() else { break }
                group.addTask { try await self.move(number, of: transfer, meter, move) }
            }
            var failure: (any Error)?
            while let result = await group.nextResult() {
                switch result {
                case .success where failure == nil:
                    if let number = left.next() {
                        group.addTask { try await self.move(number, of: transfer, meter, move) }
                    }
                case .success: break
                case .failure(let error):
                    if !TransferConsequence.mayPass(error) { group.cancelAll() }
                    failure = failure ?? error
                }
            }
            if let failure { throw failure }
        }
    }

    private func move(
        _ number: Int, of transfer: StoredTransfer, _ meter: TransferMeter,
        _ move: @Sendable (_ number: Int) async throws -> StoredPart
    ) async throws {
        try await connections.with(storage.host(of: transfer.location)) {
            let part: StoredPart
            do {
                part = try await move(number)
                report(.partSent, transfer.id)
                try await table.note(transfer.attempt, [.parts([part])])
                report(.partNoted, transfer.id)
            } catch {
                meter.end(number, arrived: nil)
                throw error
            }
            meter.end(number, arrived: part.size)
        }
    }
}
