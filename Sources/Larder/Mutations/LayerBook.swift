internal import Foundation
internal import LarderOperations
internal import LarderRecords
internal import Logging
internal import Synchronization

/// What a partition's queued mutations show before the server has answered: one optimistic layer for each, in the order
/// of the queue, over whatever is read.
final class LayerBook: Sendable {
    private struct Page {
        var sequence: Int64
        var layer: OptimisticLayer
    }

    private let cache: RecordCache
    private let operations: OperationCache
    private let logger: Logger
    private let name: String
    private struct Book {
        var pages: [UUID: Page] = [:]
        /// Whether the cache still has layers of mutations that are settled.
        var isBehind = false
        /// How often layers were taken out.
        var removals: UInt64 = 0
    }

    /// Held while layers are handed to the cache, so that they come in order.
    private let book = Mutex(Book())

    init(name: String, cache: RecordCache, operations: OperationCache, logger: Logger) {
        self.name = name
        self.cache = cache
        self.operations = operations
        self.logger = logger
    }

    /// How often layers were taken out so far.
    var removals: UInt64 { book.withLock { $0.removals } }

    /// Shows what a mutation is expected to do, if it says so, and if it is not set aside already.
    ///
    /// - Parameter removals: As many as there were before it was queued: a runner may have ended it since.
    func put(_ mutation: Mutation, after removals: UInt64, _ queue: MutationQueue) throws(LarderError) {
        guard let page = page(of: mutation) else { return }
        try change { book throws(LarderError) in
            if book.removals != removals {
                do throws(OperationsError) {
                    guard case .present(let found) = try queue.find(mutation.id), found.state != .deadLetter else { return }
                } catch { throw LarderError(error) }
            }
            book.pages[mutation.id] = page
        }
    }

    /// Notes that a mutation is settled. Its layer is out of sight since the cache knows of it; it is taken away with
    /// the next change, or by `tidy`, since taking away each by itself would cost as much as there are layers.
    func settled(_ id: UUID) {
        book.withLock { book in
            if book.pages.removeValue(forKey: id) != nil { book.isBehind = true }
        }
    }

    /// Takes away the layers of settled mutations.
    func tidy() throws(LarderError) {
        guard book.withLock({ $0.isBehind }) else { return }
        try change { _ in }
    }

    /// Shows no more what mutations were expected to do: there will be no answers.
    func remove(_ ids: [UUID]) throws(LarderError) {
        try change { book in
            book.removals += 1
            for id in ids { book.pages[id] = nil }
        }
    }

    /// Shows what the queue holds now, and nothing else.
    func reload(_ queue: MutationQueue) throws(LarderError) {
        let filter = MutationFilter(partition: name, states: [.pending, .inFlight, .acknowledged])
        // Looked at while nobody else writes in the book: whoever changes the queue does so before it comes here, and
        // what is newer than what is found here comes after it.
        try change { book throws(LarderError) in
            let unsettled: [Mutation]
            do throws(OperationsError) { unsettled = try queue.list(filter) } catch { throw LarderError(error) }
            let new = unsettled.compactMap { mutation in page(of: mutation).map { (mutation.id, $0) } }
            book.removals += 1
            book.pages = Dictionary(new, uniquingKeysWith: { first, _ in first })
        }
    }

    private func change(_ body: (inout Book) throws(LarderError) -> Void) throws(LarderError) {
        let failures = try book.withLock { (book) throws(LarderError) -> [LayerFailure] in
            let had = !book.pages.isEmpty || book.isBehind
            try body(&book)
            book.isBehind = false
            guard had || !book.pages.isEmpty else { return [] }
            let layers = book.pages.values.sorted { $0.sequence < $1.sequence }.map(\.layer)
            do throws(RecordError) { return try cache.setLayers(layers) } catch {
                throw LarderError.parking(error)
            }
        }
        for failure in failures {
            logger.warning("what a mutation is expected to do cannot be shown", metadata: [
                "key": "\(failure.key)", "error": "\(failure.error)",
            ])
        }
    }

    /// Nil where nothing is expected, or where it no longer fits the schema: the mutation goes its way unseen.
    private func page(of mutation: Mutation) -> Page? {
        let content = mutation.content
        guard content.optimisticResponse != nil || content.listEdits != nil,
            let key = AppliedKey(mutation.idempotencyKey)
        else { return nil }
        do {
            var layer = OptimisticLayer(key: key, edits: try [ListChange](mutation).map(\.edit))
            if let response = content.optimisticResponse {
                let bound = try operations.bound(PartitionCore.operation(of: mutation), exposesAdded: true)
                layer.response = .init(try ParsedResponse.parse(data: response, along: bound.layout), of: bound)
            }
            return Page(sequence: mutation.sequence, layer: layer)
        } catch {
            logger.warning("an optimistic response no longer fits its operation", metadata: [
                "mutation": "\(mutation.id)", "error": "\(error)",
            ])
            return nil
        }
    }
}
