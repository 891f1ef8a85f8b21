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
    let partition: Partition
    let list: PagedList
    private let options: FetchOptions
    private let loaded = Locked(LoadedPages())
    private let lastRead = Locked<[(position: PagePosition, operation: BoundOperation)]>([])
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
        let (entry, generation) = loaded.withLock { loaded in
            (loaded.entries.indices.contains(index) ? loaded.entries[index] : nil, loaded.generation)
        }
        guard let entry else { return nil }
        let answer = try partition.answer(bound(at: entry.position), from: .query, allowsPartial: false)
        var records: [UInt64]?
        let page = list.page(answer.response) { found in
            // Pages that show what this one hides may have lost it.
            if answer.generation != generation || found != entry.records || !entry.hidden.isEmpty { records = found }
            return entry.hidden
        }
        guard let records else { return page }
        // The page has other objects than when it was read last, which other pages may show, or show no more.
        let hidden = try renew(entry, records, answer.generation)
        return list.page(answer.response) { _ in hidden }
    }

    /// The operation that reads a page; those of the pages that were read last are kept.
    private func bound(at position: PagePosition) throws(LarderError) -> BoundOperation {
        if let known = lastRead.withLock({ $0.first { $0.position == position } }) { return known.operation }
        let bound = try list.bound(at: position)
        lastRead.withLock { lastRead in
            if lastRead.count >= 4 { lastRead.removeFirst() }
            lastRead.append((position, bound))
        }
        return bound
    }

    /// Takes in that a page has other records now.
    ///
    /// - Returns: Which of them the page does not show.
    private func renew(
        _ entry: LoadedPages.Entry, _ records: [UInt64], _ generation: UInt64
    ) throws(LarderError) -> [Int] {
        let new = Set(records)
        let others = loaded.withLock { loaded in
            generation == loaded.generation ? loaded.entries(with: new) : loaded.entries
        }
        var current = [entry.number: records]
        for other in others where other.number != entry.number {
            // Of a page that is not there any more nothing is shown.
            guard let page = try read(other.position) else { current[other.number] = []; continue }
            if page.generation == generation { current[other.number] = page.content.records }
        }
        return loaded.withLock { loaded in
            loaded.renew(current, generation)
            return loaded.entries.first { $0.number == entry.number }?.hidden ?? []
        }
    }

    // MARK: Loading

    /// Loads the page after the last one; nil at the end of the list.
    ///
    /// - Throws: `.paging` where the server's pages form no list; otherwise as `Partition.fetch`. What is loaded stays.
    public func next() async throws(LarderError) -> Page? {
        try await exclusively { () async throws(LarderError) in
            try self.know()
            guard let position = self.nextPosition else { return nil }
            return try await self.load(position, asksServer: false)
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
            do throws(LarderError) { try self.know() } catch {
                // Pages that the cache has form no list: what the server sends now may.
                guard error.code == .paging else { throw error }
            }
            let before = self.loaded.withLock { $0.entries.count }
            _ = try await self.page(at: .start, asksServer: true)
            self.forget()
            try self.know()
            return self.loaded.withLock { loaded in
                loaded.stalePageCount = max(0, before - loaded.entries.count)
                return loaded.status
            }
        }
    }

    /// Loads page after page, to the end. Pages that are loaded are not asked for again, so that it goes on where it
    /// was left, after a kill too. Where the server refuses the last token, and the page that had it as well, it starts
    /// over. Where another process has begun the list anew meanwhile, that list is loaded to its end.
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
            /// The page that was asked for again, because its token was refused.
            var renewed: PagePosition?
            // Others may begin it anew again and again.
            var rounds = 3
            do throws(LarderError) {
                while self.loaded.withLock({ $0.objectCount < count }) {
                    do throws(LarderError) {
                        guard let position = self.nextPosition else {
                            guard rounds > 0, try self.wasBegunAnew() else { break }
                            rounds -= 1
                            self.forget()
                            try self.know()
                            continue
                        }
                        _ = try await self.take(position, asksServer: asksServer)
                    } catch {
                        guard error.code == .serverErrors, !asksServer,
                            let last = self.loaded.withLock({ $0.entries.last }), !last.isFetched,
                            last.position != renewed
                        else { throw error }
                        renewed = last.position
                        asksServer = try await !self.renewToken(of: last)
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

    /// Whether another process, or another value of this kind, has asked for the first page since, and that leads to
    /// others than are loaded.
    private func wasBegunAnew() throws(LarderError) -> Bool {
        guard let first = loaded.withLock({ $0.entries.first { $0.position == .start } }),
            let page = try read(.start)
        else { return false }
        return page.content.next != first.next
    }

    /// Asks for the last page of an earlier run again, which leads on by a new token. Where the server refuses that too,
    /// the list starts over: an error about the page after it says nothing of the token.
    ///
    /// - Returns: False where it starts over.
    private func renewToken(of last: LoadedPages.Entry) async throws(LarderError) -> Bool {
        if last.position != .start {
            do throws(LarderError) {
                _ = try await page(at: last.position, asksServer: true)
                forget()
                try know()
                return true
            } catch {
                guard error.code == .serverErrors else { throw error }
            }
        }
        startOver()
        return false
    }

    /// Where the page after the last one begins; nil at the end of the list.
    private var nextPosition: PagePosition? {
        loaded.withLock { loaded in loaded.entries.last.map(\.next) ?? .start }
    }

    private func load(
        _ position: PagePosition, asksServer: Bool, atFront: Bool = false
    ) async throws(LarderError) -> Page {
        let (page, entry) = try await take(position, asksServer: asksServer, atFront: atFront)
        return list.page(page.content.response) { _ in entry.hidden }
    }

    private func take(
        _ position: PagePosition, asksServer: Bool, atFront: Bool = false
    ) async throws(LarderError) -> (page: ReadPage, entry: LoadedPages.Entry) {
        guard !loaded.withLock({ $0.has(position) }) else { throw list.repeated() }
        let (page, isFetched) = try await page(at: position, asksServer: asksServer)
        if loaded.withLock({ $0.isOutdated(by: page) }) { try renumber(page.generation) }
        let entry = loaded.withLock { $0.add(page, at: position, isFetched: isFetched, atFront: atFront) }
        guard let entry else { throw list.repeated() }
        return (page, entry)
    }

    /// Takes in the numbers that the objects of the loaded pages have in another generation.
    private func renumber(_ generation: UInt64) throws(LarderError) {
        var records: [Int: [UInt64]] = [:]
        for entry in loaded.withLock({ $0.entries }) {
            guard let page = try read(entry.position), page.generation == generation else { continue }
            records[entry.number] = page.content.records
        }
        loaded.withLock { $0.renew(records, generation) }
    }

    private func page(
        at position: PagePosition, asksServer: Bool
    ) async throws(LarderError) -> (page: ReadPage, isFetched: Bool) {
        guard !Task.isCancelled else { throw LarderError(.cancelled, "The task was cancelled") }
        if !asksServer, let cached = try read(position) { return (cached, false) }
        _ = try await partition.fetch(list.operation(at: position), policy: .networkOnly, options: options)
        let answer = try partition.answer(list.bound(at: position), from: .query, allowsPartial: false)
        return (
            ReadPage(content: try list.content(answer.response, at: position), generation: answer.generation), true
        )
    }

    /// A page that the cache has; nil where it lacks some of it.
    private func read(_ position: PagePosition) throws(LarderError) -> ReadPage? {
        let answer = try partition.answer(list.bound(at: position), from: .query, allowsPartial: true)
        guard answer.response.isComplete else { return nil }
        return ReadPage(content: try list.content(answer.response, at: position), generation: answer.generation)
    }

    // MARK: What is loaded

    /// Follows the pages that the cache has, unless that is done.
    private func know() throws(LarderError) {
        while !loaded.withLock({ $0.isKnown }) {
            guard var found = try follow() else { continue }
            found.isKnown = true
            loaded.withLock { [found] loaded in
                // Another caller may have been quicker, and gone on.
                if !loaded.isKnown { loaded = found }
            }
        }
    }

    /// Nil where the cache went on to another generation meanwhile.
    private func follow() throws(LarderError) -> LoadedPages? {
        var found = LoadedPages()
        for isBackward in [false, true] {
            var position = isBackward ? found.entries.first?.previous : .start
            while let here = position, !found.has(here), let page = try read(here) {
                guard !found.isOutdated(by: page) else { return nil }
                guard let entry = found.add(page, at: here, isFetched: false, atFront: isBackward) else { break }
                position = isBackward ? entry.previous : entry.next
            }
        }
        return found
    }

    private func forget() { loaded.withLock { $0 = LoadedPages() } }

    private func startOver() {
        holding.begin()
        loaded.withLock { loaded in
            loaded = LoadedPages()
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
