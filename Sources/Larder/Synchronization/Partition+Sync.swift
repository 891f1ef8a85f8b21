import LarderFiles
import LarderRecords

extension Partition {
    /// Brings the objects of a type to the state of the server: the first time in a walk through everything, then by
    /// what has changed since.
    ///
    /// Each page is stored in one commit with the place that was reached, while the server is asked for the next ones; what
    /// comes meanwhile shares the next commit. A walk that was interrupted, by whatever, goes on with the page after the
    /// last that was stored. Calls for the same synchronization wait for each other.
    ///
    /// - Parameters:
    ///   - synchronization: The delta query, and what it follows.
    ///   - progress: Called after each page.
    /// - Throws: As `fetch`; `.paging` where the pages have no end: a token comes again, or more than 1,000 pages in a
    ///   row have no objects; `.operation` where the operation is no delta query; `records.busy` where another process
    ///   synchronizes the same. What was stored stays, and the position where it was.
    @discardableResult
    public func sync(
        _ synchronization: Synchronization, progress: @Sendable (SyncReport) -> Void = { _ in }
    ) async throws(LarderError) -> SyncReport {
        try await core.requireAwake()
        guard transport != nil else {
            throw LarderError(.noTransport, "The partition has no transport, and a synchronization needs the server")
        }
        // A server is not asked where its answer could not be kept.
        do { try core.cache.checkWritable() } catch { throw LarderError.parking(error) }
        var walk = try SyncWalk(synchronization, self)
        try await core.synchronizing.begin(walk.key)
        defer { core.synchronizing.end(walk.key) }
        return try await walk.run(progress)
    }

    /// - Throws: `.operation`, `.syntax` or `.variables` where the operation is no delta query.
    func check(_ synchronization: Synchronization) throws(LarderError) { _ = try SyncQuery(synchronization, self) }
}

/// The synchronizations that are under way in this process, by their keys.
final class SynchronizationsUnderWay: Sendable {
    private let keys = Locked<Set<String>>([])
    private let changeSignal = ChangeSignal()

    /// Waits until no other call has the key.
    func begin(_ key: String) async throws(LarderError) {
        while true {
            let count = changeSignal.count
            if keys.withLock({ $0.insert(key).inserted }) { return }
            guard !Task.isCancelled else { throw LarderError(.cancelled, "The task was cancelled") }
            await changeSignal.wait(past: count, for: nil)
        }
    }

    func end(_ key: String) {
        keys.withLock { _ = $0.remove(key) }
        changeSignal.notify()
    }
}

/// One walk through the pages of a delta query.
private struct SyncWalk {
    private let query: SyncQuery
    private let partition: Partition

    private var position: SyncPosition
    /// The position as it is stored.
    private var stored: SyncPosition?
    private var report = SyncReport()
    /// The cache keys of all pages of the last walk through everything, if this call has stored that walk from its first
    /// page on. Otherwise nil: the sweep then reads the stored marks.
    private var seen: WalkedKeys?
    /// Whether the token that is to be sent was stored by an earlier call: it may be too old.
    private var isResumed = false

    /// A record that is changed while another is read may have an earlier time than the walk, and come after it.
    private static let overlap: Int64 = 2_000

    var key: String { query.key }

    init(_ synchronization: Synchronization, _ partition: Partition) throws(LarderError) {
        query = try SyncQuery(synchronization, partition)
        self.partition = partition
        position = SyncPosition(name: query.name, types: query.types)
    }

    mutating func run(_ progress: (SyncReport) -> Void) async throws(LarderError) -> SyncReport {
        do { stored = try partition.core.cache.position(of: key) } catch { throw LarderError.parking(error) }
        if let stored { position = stored }
        if let server = partition.transport?.server {
            // What another server told of its changes says nothing of this one's.
            if let last = position.server, last != server {
                (position.startedAt, position.walk, position.sweep) = (nil, nil, nil)
            }
            position.server = server
        }
        // The end of a removal that was broken off.
        if stored?.sweep != nil, position.sweep != nil { try await sweep() }
        isResumed = position.walk != nil
        var beganEarlier = isResumed
        var pages = SyncPages(
            of: query, since: position.walk.map(\.since) ?? lastSync, token: position.walk?.token)
        /// What came of asking for pages that are not stored yet.
        var answers: [Result<SyncPages.Page, SyncPages.Failure>] = []
        while true {
            try await partition.core.requireAwake()
            guard !Task.isCancelled else { throw LarderError(.cancelled, "The task was cancelled") }
            let room = query.synchronization.maximumPageCount.map { $0 - report.pageCount } ?? .max
            if room <= 0 { return report }
            if answers.isEmpty { answers = [await pages.next()] }
            if case .failure(let failure)? = answers.first {
                answers = []
                // A token is good for a time only; the walk begins again.
                guard failure.isEndless || position.walk != nil && failure.error.mayBeOfToken else {
                    throw failure.error
                }
                try await giveUp()
                guard isResumed, !failure.isEndless else { throw failure.error }
                (isResumed, beganEarlier) = (false, false)
                pages = SyncPages(of: query, since: lastSync)
                continue
            }
            isResumed = false
            // A failure behind these is looked at once they are stored.
            let fetched = answers.compactMap { try? $0.get() }
            answers.removeFirst(fetched.count)
            if position.walk == nil, let last = position.startedAt, pages.since != nil,
                let first = fetched.first, !isDelta(last, first.startedAt)
            {
                pages = SyncPages(of: query, since: nil)
                continue
            }
            // The server is asked for more while these are stored, unless what follows is known.
            if answers.isEmpty, !pages.hasEnded, fetched.count < room {
                let isStoring = Locked(true)
                let asked = pages
                async let following = asked.goingOn(upTo: room - fetched.count) { isStoring.withLock { $0 } }
                try await store(fetched, since: pages.since, progress)
                isStoring.withLock { $0 = false }
                (answers, pages) = await following
            } else {
                try await store(fetched, since: pages.since, progress)
            }
            guard position.walk == nil else { continue }
            guard beganEarlier else { return report }
            // What was changed after an earlier call began the walk may stand on pages that it had left behind.
            (beganEarlier, report.isFinished) = (false, false)
            pages = SyncPages(of: query, since: lastSync)
        }
    }

    /// What is asked for: what was changed after this time; nil for everything.
    private var lastSync: Int64? { position.startedAt.map { max(0, $0 - Self.overlap) } }

    /// Whether the server, by its own clock, tells of everything since the last walk.
    private func isDelta(_ last: Int64, _ startedAt: Int64) -> Bool {
        let lifetime = query.synchronization.deltaLifetime.milliseconds
        return startedAt >= last && startedAt - last + Self.overlap < lifetime - min(60_000, lifetime / 10)
    }

    /// Stores pages that follow each other in one commit, as far as they can be stored.
    private mutating func store(
        _ pages: [SyncPages.Page], since: Int64?, _ progress: (SyncReport) -> Void
    ) async throws(LarderError) {
        var (next, last) = (position, stored)
        next.lastUsed = partition.core.now().milliseconds
        let ends = pages.map { page in
            let number = next.walk?.pageCount ?? 0
            let startedAt = next.walk?.startedAt ?? page.startedAt
            if let token = page.next {
                next.walk = .init(since: since, startedAt: startedAt, token: token, pageCount: number + 1)
            } else {
                (next.walk, next.startedAt) = (nil, startedAt)
                if page.mark != nil { next.sweep = .init(changedBefore: startedAt - Self.overlap) }
            }
            defer { last = next }
            return SyncPage(key: key, position: next, after: last, number: number, mark: page.mark)
        }
        let outcomes: [Result<Commit, RecordError>]
        do {
            outcomes = try await partition.core.cache.write(
                zip(pages, ends).map { page, end in (parsed: page.parsed, operation: page.operation, end: end) })
        } catch { throw LarderError.parking(error) }
        for (outcome, (page, end)) in zip(outcomes, zip(pages, ends)) {
            do { _ = try outcome.get() } catch { throw LarderError.parking(error) }
            (position, stored) = (end.position, end.position)
            if let mark = page.mark {
                // A new walk begins: an earlier one may have been given up.
                if end.number == 0 { seen = WalkedKeys() }
                do { try seen?.insert(mark) } catch { throw LarderError.parking(error) }
            }
            report.pageCount += 1
            report.objectCount += page.objectCount
            (report.isBase, report.isFinished) = (report.isBase || since == nil, page.next == nil)
            report.milliseconds = position.startedAt
            if page.next == nil { try await sweep() }
            progress(report)
        }
    }

    /// Removes what a walk through everything did not have, in short commits.
    private mutating func sweep() async throws(LarderError) {
        guard position.sweep != nil else { return }
        let core = partition.core
        let walked: WalkedKeys
        if let seen {
            walked = seen
        } else {
            do { walked = try core.cache.walkedKeys(of: key) } catch { throw LarderError.parking(error) }
        }
        while let open = stored, open.sweep != nil {
            try await core.requireAwake()
            guard !Task.isCancelled else { throw LarderError(.cancelled, "The task was cancelled") }
            let (kept, needed) = (try NeededObjects(core).pinned(), try core.namedByQueue())
            do {
                stored = try await core.cache.sweep(key, at: open, seen: walked, needed: needed, kept: kept)
            } catch { throw LarderError.parking(error) }
            position.sweep = stored?.sweep
        }
    }

    /// Forgets how far the walk has come, not what it has stored.
    private mutating func giveUp() async throws(LarderError) {
        do { try await partition.core.cache.forgetWalk(of: key) } catch { throw LarderError.parking(error) }
        position.walk = nil
        stored?.walk = nil
    }
}

extension Duration {
    fileprivate var milliseconds: Int64 {
        let (seconds, attoseconds) = components
        let (product, isTooLong) = seconds.multipliedReportingOverflow(by: 1_000)
        return isTooLong ? .max : product.addingReportingOverflow(attoseconds / 1_000_000_000_000_000).partialValue
    }
}
