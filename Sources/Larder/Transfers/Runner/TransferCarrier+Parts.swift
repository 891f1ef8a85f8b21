internal import LarderOperations

extension TransferCarrier {
    /// Moves parts of a transfer, so many side by side as there may be connections, and notes each that has arrived.
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
            while try await group.next() != nil {
                if let number = left.next() {
                    group.addTask { try await self.move(number, of: transfer, meter, move) }
                }
            }
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
                options.afterStep(.partSent)
                try await table.note(transfer.attempt, [.parts([part])])
                options.afterStep(.partNoted)
            } catch {
                meter.end(number, arrived: nil)
                throw error
            }
            meter.end(number, arrived: part.size)
            runner.noteArrival(of: transfer.id)
        }
    }
}
