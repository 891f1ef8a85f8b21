import LarderFiles
import LarderGraphQL
import LarderRecords

/// The pages of one list, in order: loaded one after the other, or all.
///
/// A loaded page is in the cache like any other answer, and is loaded after a restart too. Calls that load wait for
/// each other. Objects that come again on a later page are left out there.
///
/// ```swift
/// let orders = try app.pages(GraphQLOperation("""
///     query Orders($limit: Int, $nextToken: String) {
///       listOrders(limit: $limit, nextToken: $nextToken) { items { id sku price } nextToken }
///     }
///     """))
/// try await orders.all()
/// ```
public final class Pages: Sendable {
    private struct Entry {
        var number: Int
        var position: PagePosition
        var next: PagePosition?
        var previous: PagePosition?
        var keys: [ExactText?]
        /// Whether the server answered it since this value was made: its token is not older than that.
        var isFetched: Bool
    }

    private struct Loaded {
        var isKnown = false
        var entries: [Entry] = []
        /// By object: the number of the entry that shows it.
        var owners: [ExactText: Int] = [:]
        var objectCount = 0
        var lastNumber = 0
        var stalePageCount = 0

        var status: PagesStatus {
            PagesStatus(
                pageCount: entries.count, objectCount: objectCount,
                isComplete: entries.last.map { $0.next == nil } ?? false, stalePageCount: stalePageCount)
        }

        func has(_ position: PagePosition) -> Bool { positions.contains(position) }

        private var positions: Set<PagePosition> = []

        /// - Returns: False where the page is no new one: the server's pages lead back.
        mutating func add(
            _ content: PageContent, at position: PagePosition, isFetched: Bool, atFront: Bool = false
        ) -> Bool {
            let neighbour = atFront ? entries.first : entries.last
            // A server that does not look at the offset answers the same page again and again.
            let isSame = neighbour.map {
                !content.keys.isEmpty && $0.keys == content.keys && !content.keys.contains(nil)
            }
            guard isSame != true, positions.insert(position).inserted else { return false }
            lastNumber += 1
            for key in content.keys {
                guard let key else {
                    objectCount += 1
                    continue
                }
                if owners[key] == nil {
                    owners[key] = lastNumber
                    objectCount += 1
                }
            }
            let entry = Entry(
                number: lastNumber, position: position, next: content.next, previous: content.previous,
                keys: content.keys, isFetched: isFetched)
            // Only the pages at the ends are compared with what comes.
            if atFront {
                entries.insert(entry, at: 0)
                if entries.count > 2 { entries[1].keys = [] }
            } else {
                entries.append(entry)
                if entries.count > 2 { entries[entries.count - 2].keys = [] }
            }
            return true
        }

        /// The page as the list shows it.
        func page(_ content: PageContent, of entry: Entry) -> Page {
            var shown: Set<ExactText> = []
            let objects = zip(content.objects, content.keys).filter { _, key in
                guard let key else { return true }
                return owners[key] ?? entry.number == entry.number && shown.insert(key).inserted
            }
            return Page(response: content.response, objects: objects.map(\.0))
        }
    }

    let partition: Partition
    let list: PagedList
    private let options: FetchOptions
    private let loaded = Locked(Loaded())
    private let isBusy = Locked(false)
    private let changeSignal = ChangeSignal()
    let holding = PagesHolding()

    init(
        _ operation: GraphQLOperation, _ partition: Partition, _ options: FetchOptions, _ merger: PageMerger?
    ) throws(LarderError) {
        self.partition = partition
        self.options = options
        list = try PagedList(operation, partition.core, merger)
    }

    /// How much of the list is loaded, also while a call loads more. The first question looks through the pages that the
    /// cache has, one at a time.
    public func status() async throws(LarderError) -> PagesStatus {
        try know()
        return loaded.withLock { $0.status }
    }

    /// A page that is loaded, from the cache; nil where fewer are.
    ///
    /// - Throws: `.miss` where something of the page was evicted since.
    public func page(_ index: Int) throws(LarderError) -> Page? {
        if !loaded.withLock({ $0.isKnown }) { try know() }
        let entry = loaded.withLock { $0.entries.indices.contains(index) ? $0.entries[index] : nil }
        guard let entry else { return nil }
        let answer = try partition.answer(list.bound(at: entry.position), from: .query, allowsPartial: false)
        let content = try list.content(answer.response, at: entry.position)
        return loaded.withLock { $0.page(content, of: entry) }
    }

    // MARK: Loading

    /// Loads the page after the last one; nil at the end of the list.
    ///
    /// - Throws: `.paging` where the server's pages form no list; otherwise as `Partition.fetch`. What is loaded stays.
    public func next() async throws(LarderError) -> Page? {
        try await exclusively { () async throws(LarderError) in
            try self.know()
            return try await self.loadNext(asksServer: false)
        }
    }

    /// Loads the page before the first one; nil where none is, and in lists that go by tokens, which only go forward.
    ///
    /// - Throws: As `next`.
    public func previous() async throws(LarderError) -> Page? {
        try await exclusively { () async throws(LarderError) in
            try self.know()
            guard let first = self.loaded.withLock({ $0.entries.first }) else {
                return try await self.load(.start, asksServer: false)
            }
            guard let position = first.previous else { return nil }
            return try await self.load(position, asksServer: false, atFront: true)
        }
    }

    /// Asks the server for the first page again. The rest stays where the new page leads to it; pages that it does not
    /// lead to are stale, and no part of the list any more.
    @discardableResult
    public func refresh() async throws(LarderError) -> PagesStatus {
        try await exclusively { () async throws(LarderError) in
            try self.know()
            let before = self.loaded.withLock { $0.entries.count }
            _ = try await self.content(at: .start, asksServer: true)
            self.forget()
            try self.know()
            return self.loaded.withLock { loaded in
                loaded.stalePageCount = max(0, before - loaded.entries.count)
                return loaded.status
            }
        }
    }

    /// Loads page after page, to the end. Pages that are loaded are not asked for again, so that it goes on where it
    /// was left, after a kill too; where the server does not take the last token any more, it starts over.
    ///
    /// One page is in memory at a time, beside the keys of the objects. A cancelled call keeps what it has loaded.
    ///
    /// - Parameters:
    ///   - count: It ends as soon as so many objects are loaded.
    ///   - startingOver: Whether the server is asked for every page again.
    ///   - progress: Called after each page.
    /// - Throws: As `next`.
    @discardableResult
    public func all(
        upTo count: Int? = nil, startingOver: Bool = false, progress: @Sendable (PagesStatus) -> Void = { _ in }
    ) async throws(LarderError) -> PagesStatus {
        try await extend(to: count ?? .max, startingOver, progress)
    }

    /// Loads page after page until there are so many objects, or the list ends. A server that filters after it has
    /// counted sends pages with few objects, or none.
    ///
    /// - Throws: As `next`.
    @discardableResult
    public func atLeast(
        _ count: Int, progress: @Sendable (PagesStatus) -> Void = { _ in }
    ) async throws(LarderError) -> PagesStatus {
        try await extend(to: count, false, progress)
    }

    private func extend(
        to count: Int, _ startingOver: Bool, _ progress: @Sendable (PagesStatus) -> Void
    ) async throws(LarderError) -> PagesStatus {
        try await exclusively { () async throws(LarderError) in
            var asksServer = startingOver
            defer { if asksServer { self.holding.end() } }
            if startingOver { self.startOver() } else { try self.know() }
            do throws(LarderError) {
                while self.loaded.withLock({ $0.objectCount < count }) {
                    do throws(LarderError) {
                        guard try await self.loadNext(asksServer: asksServer) != nil else { break }
                    } catch {
                        let isOldToken = self.loaded.withLock { $0.entries.last.map { !$0.isFetched } ?? false }
                        guard error.code == .serverErrors, isOldToken, !asksServer else { throw error }
                        asksServer = true
                        self.startOver()
                        continue
                    }
                    progress(self.loaded.withLock { $0.status })
                }
            } catch {
                // What the cache has now may be made of both lists.
                if asksServer { self.forget() }
                throw error
            }
            return self.loaded.withLock { $0.status }
        }
    }

    private func loadNext(asksServer: Bool) async throws(LarderError) -> Page? {
        guard let last = loaded.withLock({ $0.entries.last }) else {
            return try await load(.start, asksServer: asksServer)
        }
        guard let position = last.next else { return nil }
        return try await load(position, asksServer: asksServer)
    }

    private func load(
        _ position: PagePosition, asksServer: Bool, atFront: Bool = false
    ) async throws(LarderError) -> Page {
        guard !loaded.withLock({ $0.has(position) }) else { throw list.repeated() }
        let (content, isFetched) = try await content(at: position, asksServer: asksServer)
        let page = loaded.withLock { loaded -> Page? in
            guard loaded.add(content, at: position, isFetched: isFetched, atFront: atFront) else { return nil }
            return (atFront ? loaded.entries.first : loaded.entries.last).map { loaded.page(content, of: $0) }
        }
        guard let page else { throw list.repeated() }
        return page
    }

    private func content(
        at position: PagePosition, asksServer: Bool
    ) async throws(LarderError) -> (content: PageContent, isFetched: Bool) {
        guard !Task.isCancelled else { throw LarderError(.cancelled, "The task was cancelled") }
        if !asksServer, let cached = try cached(position) { return (cached, false) }
        _ = try await partition.fetch(list.operation(at: position), policy: .networkOnly, options: options)
        let answer = try partition.answer(list.bound(at: position), from: .query, allowsPartial: false)
        return (try list.content(answer.response, at: position), true)
    }

    private func cached(_ position: PagePosition) throws(LarderError) -> PageContent? {
        let answer = try partition.answer(list.bound(at: position), from: .query, allowsPartial: true)
        guard answer.response.isComplete else { return nil }
        return try list.content(answer.response, at: position)
    }

    // MARK: What is loaded

    /// Follows the pages that the cache has, unless that is done.
    private func know() throws(LarderError) {
        guard !loaded.withLock({ $0.isKnown }) else { return }
        var found = Loaded()
        var position: PagePosition? = .start
        while let here = position, !found.has(here), let content = try cached(here) {
            guard found.add(content, at: here, isFetched: false) else { break }
            position = content.next
        }
        position = found.entries.first?.previous
        while let here = position, !found.has(here), let content = try cached(here) {
            guard found.add(content, at: here, isFetched: false, atFront: true) else { break }
            position = content.previous
        }
        found.isKnown = true
        loaded.withLock { loaded in
            // Another caller may have been quicker, and gone on.
            if !loaded.isKnown { loaded = found }
        }
    }

    private func forget() { loaded.withLock { $0 = Loaded() } }

    private func startOver() {
        holding.begin()
        loaded.withLock { loaded in
            loaded = Loaded()
            loaded.isKnown = true
        }
    }

    /// Runs `body` when no other call loads.
    private func exclusively<Result: Sendable>(
        _ body: () async throws(LarderError) -> Result
    ) async throws(LarderError) -> Result {
        while true {
            let count = changeSignal.count
            let isFree = isBusy.withLock { isBusy in
                defer { isBusy = true }
                return !isBusy
            }
            if isFree { break }
            guard !Task.isCancelled else { throw LarderError(.cancelled, "The task was cancelled") }
            await changeSignal.wait(past: count, for: nil)
        }
        defer {
            isBusy.withLock { $0 = false }
            changeSignal.notify()
        }
        return try await body()
    }
}

extension Partition {
    /// The pages of the one list that an operation asks for.
    ///
    /// A `@fieldPolicy` with `paginationArgs`, or `Schema.setPagination`, says how the list's field goes from page to
    /// page: see <doc:Paging>. The arguments that choose a page must be variables of the operation. Where it leaves the
    /// size of a page out, the largest that the policy allows is asked for.
    ///
    /// - Parameters:
    ///   - operation: A query.
    ///   - options: Of every page's fetch.
    ///   - merger: Goes from page to page in place of a policy, where the server's lists are of a kind of their own.
    /// - Throws: `.operation` where the operation asks for no list of pages, or not for what leads to the next one;
    ///   `.variables` for a page that is larger than the policy allows; `.syntax`, `.parked`.
    public func pages(
        _ operation: GraphQLOperation, options: FetchOptions = FetchOptions(), merger: PageMerger? = nil
    ) throws(LarderError) -> Pages {
        try core.requireCurrent()
        return try Pages(core.withRealIDs(operation), self, options, merger)
    }

    /// As `pages` of an operation, for a typed one; each ``Page/decode(_:)`` says the type of the objects.
    public func pages(
        _ operation: some TypedOperation, options: FetchOptions = FetchOptions(), merger: PageMerger? = nil
    ) throws(LarderError) -> Pages {
        try pages(operation.operation, options: options, merger: merger)
    }
}
