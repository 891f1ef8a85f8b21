/// How far a transfer has come, whenever that has changed.
struct TransferProgressSequence: AsyncSequence, Sendable {
    let transfer: Transfer

    /// Begins with what is known now.
    func makeAsyncIterator() -> Iterator { Iterator(transfer: transfer) }

    /// One reader's place.
    struct Iterator: AsyncIteratorProtocol {
        let transfer: Transfer
        private var last: TransferProgress?
        private var isOver = false

        private static let pause = Duration.milliseconds(100)

        init(transfer: Transfer) { self.transfer = transfer }

        /// The next that differs from the last; nil after that of the end.
        mutating func next() async -> TransferProgress? {
            let core = transfer.core
            if last != nil, !isOver { try? await Task.sleep(for: Self.pause) }
            let changeSignal = core.transfers.changeSignal(of: transfer.id.uuid, core)
            defer { core.transfers.releaseChangeSignal(of: transfer.id.uuid) }
            while !isOver, !Task.isCancelled {
                _ = await core.operationsStore.suspension.sitOut()
                let count = changeSignal.count
                guard !core.isParked else { return nil }
                let status: TransferStatus
                do throws(LarderError) { status = try transfer.status() } catch {
                    // Suspended just now.
                    guard error.code == .suspended, !Task.isCancelled else { return nil }
                    continue
                }
                let progress = core.progress(of: status)
                isOver = status.isEnded
                if progress != last {
                    last = progress
                    return progress
                }
                // What moves is noted on disk only where a part is whole.
                await changeSignal.wait(past: count, for: status.state == .running ? Self.pause : nil)
            }
            return nil
        }
    }
}
