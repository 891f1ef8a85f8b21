import Foundation
import LarderFiles
import LarderOperations
import LarderRecords

/// What a partition's queued mutations show before the server has answered: one optimistic layer for each, in the order
/// of the queue, over whatever is read.
final class QueuedLayers: Sendable {
    private struct Page {
        var sequence: Int64
        var id: UUID
        var layer: OptimisticLayer
    }

    private struct Book {
        /// In the order of the queue.
        private(set) var pages: [Page] = []
        /// The pages' layers. The cache is given copies, whose first layers it knows again.
        private(set) var layers = SharedList<OptimisticLayer>()
        /// Mutations whose layers the cache still has, though they are settled.
        var settled: Set<UUID> = []
        /// How often layers were taken out.
        var removals: UInt64 = 0

        /// - Parameter new: In the order of the queue.
        mutating func put(_ new: [Page]) {
            guard let first = new.first else { return }
            // Nearly always at the end.
            guard pages.last.map({ $0.sequence < first.sequence }) ?? true else { return merge(new) }
            pages += new
            for page in new { layers.append(page.layer) }
        }

        mutating func replace(with pages: [Page]) {
            self.pages = pages
            layers = SharedList(pages.map(\.layer))
        }

        /// Of pages for the same mutation, the new one stays.
        private mutating func merge(_ new: [Page]) {
            let numbers = Set(new.map(\.sequence))
            let kept = pages.filter { !numbers.contains($0.sequence) }
            replace(with: (kept + new).sorted { $0.sequence < $1.sequence })
        }
    }

    private let cache: RecordCache
    private let operations: OperationCache
    private let name: String

    /// Held while layers are handed to the cache, so that they come in order.
    private let book = Locked(Book())

    init(name: String, cache: RecordCache, operations: OperationCache) {
        self.name = name
        self.cache = cache
        self.operations = operations
    }

    /// How often layers were taken out so far.
    var removals: UInt64 { book.withLock { $0.removals } }

    /// Shows what these mutations are expected to do, as far as they say so and have not ended already: all at once.
    ///
    /// - Parameter removals: As many as there were before they were queued: a runner may have ended some since.
    func put(_ mutations: [Mutation], after removals: UInt64, _ queue: MutationQueue) {
        let pages = mutations.compactMap { $0.state == .deadLetter ? nil : page(of: $0.expectation) }
        guard !pages.isEmpty else { return }
        change { book in
            guard book.removals != removals else { return book.put(pages) }
            book.put(
                pages.compactMap { page in
                    // Where the queue cannot be read it is shown: it was accepted.
                    guard let standing = try? queue.find(page.id) else { return page }
                    guard case .present(let found) = standing, found.state != .deadLetter else { return nil }
                    return self.page(of: found.expectation)
                })
        }
    }

    /// Notes that mutations are settled. Their layers are out of sight since the cache knows of them; they are taken
    /// away when they are as many as the others, or by `tidy`: taking away each by itself would cost as much as there
    /// are layers.
    func settled(_ ids: [UUID]) {
        let areMany = book.withLock { book in
            book.settled.formUnion(ids)
            book.removals += 1
            return book.settled.count * 2 >= book.pages.count
        }
        if areMany { tidy() }
    }

    /// Takes away the layers of settled mutations.
    func tidy() {
        guard book.withLock({ !$0.settled.isEmpty }) else { return }
        change { book in
            let settled = book.settled
            book.replace(with: book.pages.filter { !settled.contains($0.id) })
            book.settled = []
        }
    }

    /// Shows no more what mutations were expected to do: there will be no answers.
    func remove(_ ids: [UUID]) {
        guard !ids.isEmpty else { return }
        let ids = Set(ids)
        change { book in
            book.removals += 1
            book.replace(with: book.pages.filter { !ids.contains($0.id) })
        }
    }

    /// Shows what the queue holds now, and nothing else.
    func reload(_ queue: MutationQueue) throws(LarderError) {
        // Read while no other thread writes in the book: a caller that changes the queue does so before it comes here,
        // and a change that is newer than what is found here comes after it.
        try change { book throws(LarderError) in
            let expectations: [Expectation]
            do throws(OperationsError) { expectations = try queue.expectations(in: name) } catch {
                throw LarderError(error)
            }
            book.removals += 1
            let contents = QueuedContents(queue, operations)
            book.replace(with: expectations.compactMap { page(of: $0, contents) })
        }
    }

    private func change<Failure>(_ body: (inout Book) throws(Failure) -> Void) throws(Failure) {
        try book.withLock { (book) throws(Failure) in
            let hadAny = !book.pages.isEmpty
            try body(&book)
            if hadAny || !book.pages.isEmpty { cache.replaceLayers(book.layers) }
        }
    }

    /// Nil where nothing is expected. What no longer fits the schema is left out by the cache, which tells of it: the
    /// mutation goes its way unseen.
    ///
    /// - Parameter contents: Where what the expectation lacks is read.
    private func page(of expectation: Expectation, _ contents: QueuedContents? = nil) -> Page? {
        guard let key = AppliedKey(expectation.idempotencyKey) else { return nil }
        let touched = operations.touched(expectation)
        let layer: OptimisticLayer
        if let content = expectation.content {
            guard content.isShown else { return nil }
            layer = OptimisticLayer(
                key: key, touching: touched, content: operations.reading(content, of: expectation.id))
        } else if let contents {
            layer = OptimisticLayer(key: key, touching: touched, number: expectation.sequence, of: contents)
        } else {
            return nil
        }
        return Page(sequence: expectation.sequence, id: expectation.id, layer: layer)
    }
}

extension OperationCache {
    /// What the updater of this name does to lists.
    ///
    /// - Throws: `.unknownUpdater`; `.data` with what the updater throws.
    func edits(
        by name: String, of operation: GraphQLOperation, _ parsed: ParsedResponse
    ) throws(LarderError) -> [ListEdit] {
        guard let updater = updaters[name] else { throw .unknownUpdater(name) }
        let response: Response
        do { response = try parsed.assembled() } catch { throw LarderError(error) }
        do {
            return try updater(AnsweredMutation(operation: operation, response: response)).map(\.edit)
        } catch { throw LarderError(.data, "The updater \(name) failed: \(error)", cause: error) }
    }

    /// Reads what a mutation shows when it is called.
    func reading(
        _ content: MutationContent, of mutation: UUID
    ) -> @Sendable () throws(RecordError) -> OptimisticLayer.Content {
        { () throws(RecordError) in
            do throws(LarderError) { return try self.layer(of: content, mutation) } catch {
                throw RecordError(.responseMismatch, error.message, cause: error)
            }
        }
    }

    /// What a mutation's layer can have to do with; nil where that is not known by this schema.
    func touched(_ expectation: Expectation) -> TouchedKeys? {
        expectation.touched.flatMap { $0.isEmpty ? nil : TouchedKeys(stored: $0, schema: numberOfSchema) }
    }

    private func layer(of content: MutationContent, _ mutation: UUID) throws(LarderError) -> OptimisticLayer.Content {
        var layer = OptimisticLayer.Content(edits: try [ListChange](content, of: mutation).map(\.edit))
        guard let response = content.optimisticResponse else { return layer }
        let operation = try PartitionCore.operation(content, of: mutation)
        let bound = try boundOnce(operation, exposesAdded: true)
        let parsed: ParsedResponse
        do { parsed = try ParsedResponse.parse(data: response, along: bound.layout) } catch { throw LarderError(error) }
        layer.response = .init(parsed, of: bound)
        if let name = content.updater { layer.edits += try edits(by: name, of: operation, parsed) }
        return layer
    }
}
