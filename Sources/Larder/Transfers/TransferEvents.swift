/// The status of each transfer that has changed.
struct TransferEvents: AsyncSequence, Sendable {
    let core: PartitionCore

    /// Begins with the next change.
    func makeAsyncIterator() -> Iterator { Iterator(core: core) }

    /// One reader's place.
    struct Iterator: AsyncIteratorProtocol {
        private let core: PartitionCore
        private let listener: TransferBook.Listener

        init(core: PartitionCore) {
            self.core = core
            listener = core.transfers.listen(core)
        }

        /// The next change; nil when there will be none.
        mutating func next() async -> TransferStatus? {
            while !Task.isCancelled {
                _ = await core.operationsStore.suspension.sitOut()
                let count = core.transfers.changeSignal.count
                guard !core.isParked else { return nil }
                if let id = listener.take() {
                    guard let status = try? Transfer(id: TransferID(id), core: core).status() else { continue }
                    guard listener.isNews(status) else { continue }
                    return status
                }
                await core.transfers.changeSignal.wait(past: count, for: core.operationsStore.longestWait)
            }
            return nil
        }
    }
}
