import LarderOperations

extension TransferExecutor {
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
                    if !Self.mayPass(error) { group.cancelAll() }
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
                options.reached(.partSent)
                try await table.note(transfer.attempt, [.parts([part])])
                options.reached(.partNoted)
            } catch {
                meter.end(number, arrived: nil)
                throw error
            }
            meter.end(number, arrived: part.size)
            runner.noteArrival(of: transfer.id)
        }
    }
}
