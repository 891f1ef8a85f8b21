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
    private let loaded: Locked<LoadedPages>
    private let lastRead = Locked<[(position: PagePosition, operation: BoundOperation)]>([])
    private let isBusy = Locked(false)
    private let changeSignal = ChangeSignal()
    let holding = PagesHolding()
    /// More empty pages in a row are taken for a list without an end.
    private static let longestEmptyChain = 1_000
    /// Whether the list begins with its last page, and goes on with the one before: where the operation asks for so many
    /// of the last.
    package var goesBackward: Bool { list.goesBackward }

    init(
        _ operation: GraphQLOperation, _ partition: Partition, _ options: FetchOptions, _ merger: PageMerger?
    ) throws(LarderError) {
        self.partition = partition
        self.options = options
        list = try PagedList(operation, partition.core, merger)
        loaded = Locked(LoadedPages(isBackward: list.goesBackward))
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
        let answer = try partition.answer(bound(at: entry.position), from: .query, allowsPartial: takesPartial)
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
            guard !self.loaded.withLock({ $0.entries.isEmpty }) else { return try await self.load(.start) }
            guard let position = self.loaded.withLock({ $0.entries.last?.next }) else { return nil }
            return try await self.load(position)
        }
    }

    /// Loads the page before the first one; nil where none is, and in lists that go by tokens, which only go forward.
    ///
    /// - Throws: As `next`.
    public func previous() async throws(LarderError) -> Page? {
        try await exclusively { () async throws(LarderError) in
            try self.know()
            guard let first = self.loaded.withLock({ $0.entries.first }) else { return try await self.load(.start) }
            guard let position = first.previous else { return nil }
            return try await self.load(position, atFront: true)
        }
    }

    /// Asks the server for the first page again. The rest stays where the new page leads to it; pages that it does not
    /// lead to are stale, and no part of the list any more. So are the others of a list by offset or number.
    @discardableResult
    public func refresh() async throws(LarderError) -> PagesStatus {
        try await exclusively { () async throws(LarderError) in
            try self.know()
            let before = self.loaded.withLock { $0.entries.count }
            try await self.ask(.start)
            try self.lookAgain()
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
            // What was loaded may have gone from the cache since.
            if startingOver { self.startOver() } else { try self.lookAgain() }
            /// The page that was asked for again: its token was refused, or it leads back.
            var renewed: PagePosition?
            /// The page that came from the server last.
            var latest: PagePosition?
            // Others may begin it anew again and again.
            var rounds = 3
            var emptyCount = 0
            do throws(LarderError) {
                while self.loaded.withLock({ $0.objectCount < count }) {
                    let edge = self.loaded.withLock { $0.edge }
                    do throws(LarderError) {
                        guard let position = self.loaded.withLock({ $0.edge == nil ? .start : $0.onward }) else {
                            guard rounds > 0, try self.wasBegunAnew() else { break }
                            rounds -= 1
                            try self.lookAgain()
                            continue
                        }
                        let taken = try await self.take(
                            position, asksServer: asksServer, atFront: self.list.goesBackward)
                        if taken.entry == nil {
                            // What the cache has may be of another time than what came now.
                            guard !asksServer, let edge, edge.position != renewed,
                                edge.position != latest || taken.page != nil && !taken.isFetched
                            else { throw self.list.repeated() }
                            renewed = edge.position
                            try await self.askOnward(from: edge.position, atFront: self.list.goesBackward)
                            continue
                        }
                        if taken.isFetched { latest = position }
                        emptyCount = taken.page?.content.records.isEmpty == true ? emptyCount + 1 : 0
                        guard emptyCount <= Self.longestEmptyChain else { throw self.list.endless(emptyCount) }
                    } catch {
                        guard error.mayBeOfToken(ofListAt: self.list.depth), !asksServer, let edge, !edge.isFetched,
                            edge.position != renewed
                        else { throw error }
                        renewed = edge.position
                        asksServer = try await !self.renewToken(of: edge)
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
            let page = try part(at: .start)
        else { return false }
        if list.countsPlaces, let earlier = first.received, let later = page.received, later > earlier { return true }
        return page.content.next != first.next || list.goesBackward && page.content.previous != first.previous
    }

    /// Asks for the last page of an earlier run again, which leads on by a new token. Where the server refuses that too,
    /// the list starts over: an error about the page after it says nothing of the token.
    ///
    /// - Returns: False where it starts over.
    private func renewToken(of last: LoadedPages.Entry) async throws(LarderError) -> Bool {
        if last.position != .start {
            do throws(LarderError) {
                try await ask(last.position)
                try lookAgain()
                return true
            } catch {
                guard error.mayBeOfToken(ofListAt: list.depth) else { throw error }
            }
        }
        startOver()
        return false
    }

    /// - Returns: Nil where the list ends there, which a page that was asked for again may say.
    private func load(_ position: PagePosition, atFront: Bool = false) async throws(LarderError) -> Page? {
        var position = position
        var taken = try await take(position, asksServer: false, atFront: atFront)
        if taken.entry == nil, let edge = loaded.withLock({ atFront ? $0.entries.first : $0.entries.last }) {
            try await askOnward(from: edge.position, atFront: atFront)
            let (index, onward) = loaded.withLock { $0.following(edge.position, atFront: atFront) }
            // That request has loaded the page, which may itself lead to another one.
            if let index { return try self.page(index) }
            guard let onward else { return nil }
            position = onward
            taken = try await take(position, asksServer: false, atFront: atFront)
        }
        guard let page = taken.page, let entry = taken.entry else { throw list.repeated() }
        return list.page(page.content.response) { _ in entry.hidden }
    }

    /// - Returns: The page, without an entry where the pages lead back to one that is loaded.
    private func take(
        _ position: PagePosition, asksServer: Bool, atFront: Bool
    ) async throws(LarderError) -> (page: ReadPage?, entry: LoadedPages.Entry?, isFetched: Bool) {
        let (isKnown, neighbour) = loaded.withLock {
            ($0.has(position), atFront ? $0.entries.first : $0.entries.last)
        }
        guard !isKnown else { return (nil, nil, false) }
        let (page, isFetched) = try await page(
            at: position, after: neighbour, asksServer: asksServer, atFront: atFront)
        if loaded.withLock({ $0.isOutdated(by: page) }) { try renumber(page.generation) }
        let entry = loaded.withLock { $0.add(page, at: position, isFetched: isFetched, atFront: atFront) }
        return (page, entry, isFetched)
    }

    /// Asks the server for the first or the last loaded page, and for the page to which that leads now, and looks through
    /// the cache again.
    private func askOnward(from position: PagePosition, atFront: Bool) async throws(LarderError) {
        let content = try await ask(position).content
        let onward = atFront ? content.previous : content.next
        if let onward, !loaded.withLock({ $0.has(onward) }) { try await ask(onward, atFront: atFront) }
        try lookAgain()
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
        at position: PagePosition, after neighbour: LoadedPages.Entry?, asksServer: Bool, atFront: Bool
    ) async throws(LarderError) -> (page: ReadPage, isFetched: Bool) {
        guard !Task.isCancelled else { throw LarderError(.cancelled, "The task was cancelled") }
        if !asksServer, let cached = try part(at: position, after: neighbour) { return (cached, false) }
        return (try await ask(position, atFront: atFront), true)
    }

    /// Whether a page may lack what the server could not tell of some object.
    private var takesPartial: Bool { options.errorPolicy != .fail }

    /// Asks the server for a page. Where pages do not say what follows, one that is another page now is followed by what
    /// is at the next place of an earlier list, which goes in the same commit.
    ///
    /// - Parameter atFront: Whether the page after it has led to it.
    @discardableResult
    private func ask(_ position: PagePosition, atFront: Bool = false) async throws(LarderError) -> ReadPage {
        var options = options
        // What the errors are tells whether a token was refused.
        if options.errorPolicy == .ignore { options.errorPolicy = .partial }
        let place = atFront ? nil : try list.place(of: position)
        let response = try await partition.fetch(list.operation(at: position), endingListAfter: place, options: options)
        guard !list.isLacking(in: response) else { throw list.lacking(in: response) }
        let answer = try partition.answer(list.bound(at: position), from: .query, allowsPartial: takesPartial)
        do throws(LarderError) {
            return ReadPage(content: try list.content(answer.response, at: position), generation: answer.generation)
        } catch {
            // It has taken the place of the page that was loaded.
            forget()
            throw error
        }
    }

    /// A page that the cache has; nil where it lacks some of it.
    private func read(_ position: PagePosition) throws(LarderError) -> ReadPage? {
        let answer = try partition.answer(list.bound(at: position), from: .query, allowsPartial: true)
        guard answer.response.isComplete else { return nil }
        return ReadPage(content: try list.content(answer.response, at: position), generation: answer.generation)
    }

    /// A page that the cache has; nil also where it is none of a list.
    ///
    /// - Parameter neighbour: The page that leads to it. Where pages do not say what follows, one that came before that
    ///   page is of an earlier list.
    private func part(
        at position: PagePosition, after neighbour: LoadedPages.Entry? = nil
    ) throws(LarderError) -> ReadPage? {
        let found: ReadPage?
        do throws(LarderError) { found = try read(position) } catch {
            guard error.code == .paging else { throw error }
            return nil
        }
        if list.countsPlaces, let earlier = neighbour?.received, let received = found?.received, received < earlier {
            return nil
        }
        return found
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
        var found = LoadedPages(isBackward: list.goesBackward)
        for isBackward in [false, true] {
            var position = isBackward ? found.entries.first?.previous : .start
            while let here = position, !found.has(here),
                let page = try part(at: here, after: isBackward ? found.entries.first : found.entries.last)
            {
                guard !found.isOutdated(by: page) else { return nil }
                guard let entry = found.add(page, at: here, isFetched: false, atFront: isBackward) else { break }
                position = isBackward ? entry.previous : entry.next
            }
        }
        return found
    }

    private func forget() { loaded.withLock { $0 = LoadedPages(isBackward: list.goesBackward) } }

    private func lookAgain() throws(LarderError) {
        forget()
        try know()
    }

    private func startOver() {
        holding.begin()
        loaded.withLock { loaded in
            loaded = LoadedPages(isBackward: list.goesBackward)
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
