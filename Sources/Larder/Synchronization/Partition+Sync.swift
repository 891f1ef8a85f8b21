import Crypto
import LarderFiles
import LarderGraphQL
import LarderRecords

extension Partition {
    /// Brings the objects of a type to the state of the server: the first time in a walk through everything, then by
    /// what has changed since.
    ///
    /// Each page is stored in one commit with the place that was reached, while the server is asked for the next one. A
    /// walk that was interrupted, by whatever, goes on with the page after the last that was stored. Calls for the same
    /// synchronization wait for each other.
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
    func check(_ synchronization: Synchronization) throws(LarderError) { _ = try SyncWalk(synchronization, self) }
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
    let key: String
    private let synchronization: Synchronization
    private let partition: Partition
    private let plan: SyncPlan
    private let isFiltered: Bool
    private let compiled: CompiledOperation

    private var position: SyncPosition
    /// The position as it is stored.
    private var stored: SyncPosition?
    private var report = SyncReport()
    /// Whether the token that is to be sent was stored by an earlier call: it may be too old.
    private var isResumed = false
    private var tokens: Set<String> = []
    private var emptyPageCount = 0

    /// A record that is changed while another is read may have an earlier time than the walk, and come after it.
    private static let overlap: Int64 = 2_000
    private static let longestEmptyChain = 1_000

    init(_ synchronization: Synchronization, _ partition: Partition) throws(LarderError) {
        let core = partition.core
        var synchronization = synchronization
        synchronization.operation = try core.withRealIDs(synchronization.operation)
        try core.requireRealIDs(in: synchronization.operation)
        self.synchronization = synchronization
        self.partition = partition
        let bound = try core.operations.bound(query: synchronization.operation)
        do { plan = try SyncPlan(bound.layout.plan) } catch { throw LarderError(error) }
        compiled = try core.operations.compiled(synchronization.operation)
        isFiltered = plan.isFiltered(bound.binding.variables)
        let name = plan.listKey(bound.binding.variables, core.operations.schema)
        key = hexadecimal(SHA256.hash(data: Array((compiled.sentHash + name).utf8)))
        position = SyncPosition(name: name, types: plan.types)
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
        var since = position.walk == nil ? lastSync : position.walk?.since
        /// What came of asking for the next page while the one before it was stored.
        var ahead: Result<Page, LarderError>?
        while true {
            try await partition.core.requireAwake()
            guard !Task.isCancelled else { throw LarderError(.cancelled, "The task was cancelled") }
            if let limit = synchronization.maximumPageCount, report.pageCount >= limit { return report }
            let answered: Result<Page, LarderError>
            if let asked = ahead {
                answered = asked
            } else {
                answered = await asking(since: since, token: position.walk?.token)
            }
            ahead = nil
            let page: Page
            do throws(LarderError) { page = try answered.get() } catch {
                // A token is good for a time only; the walk begins again.
                guard position.walk != nil, error.mayBeOfToken else { throw error }
                try await giveUp()
                guard isResumed else { throw error }
                (isResumed, beganEarlier) = (false, false)
                since = lastSync
                continue
            }
            isResumed = false
            let startedAt = position.walk?.startedAt ?? page.startedAt
            if position.walk == nil, let last = position.startedAt, since != nil, !isDelta(last, startedAt) {
                since = nil
                continue
            }
            if let next = page.next {
                emptyPageCount = page.objectCount == 0 ? emptyPageCount + 1 : 0
                guard emptyPageCount <= Self.longestEmptyChain, next != position.walk?.token,
                    tokens.insert(next).inserted
                else {
                    try await giveUp()
                    throw LarderError(
                        .paging,
                        "The pages of \(plan.place) have no end: a token comes again, or too many pages are empty")
                }
            }
            if let next = page.next, report.pageCount + 1 < synchronization.maximumPageCount ?? .max {
                let (walk, begun) = (self, since)
                async let following = walk.asking(since: begun, token: next)
                try await store(page, since: since, startedAt: startedAt)
                progress(report)
                ahead = await following
                continue
            }
            try await store(page, since: since, startedAt: startedAt)
            progress(report)
            guard position.walk == nil else { continue }
            guard beganEarlier else { return report }
            // What was changed after an earlier call began the walk may stand on pages that it had left behind.
            (beganEarlier, report.isFinished) = (false, false)
            since = lastSync
        }
    }

    /// What is asked for: what was changed after this time; nil for everything.
    private var lastSync: Int64? { position.startedAt.map { max(0, $0 - Self.overlap) } }

    /// Whether the server, by its own clock, tells of everything since the last walk.
    private func isDelta(_ last: Int64, _ startedAt: Int64) -> Bool {
        let lifetime = synchronization.deltaLifetime.milliseconds
        return startedAt >= last && startedAt - last + Self.overlap < lifetime - min(60_000, lifetime / 10)
    }

    private struct Page {
        let parsed: ParsedResponse
        let operation: BoundOperation
        let next: String?
        let startedAt: Int64
        let objectCount: Int
    }

    private func fetch(since: Int64?, token: String?) async throws(LarderError) -> Page {
        guard let transport = partition.transport else {
            throw LarderError(.noTransport, "The partition has no transport, and a synchronization needs the server")
        }
        let core = partition.core
        var variables = synchronization.operation.variables
        variables[plan.lastSync] = since.map(Value.int)
        variables[plan.token] = token.map(Value.string)
        if let limit = plan.limit, variables[limit] == nil { variables[limit] = .int(Int64(synchronization.pageSize)) }
        let bound = try core.operations.boundOnce(compiled, variables)
        let request = core.request(compiled, bound, headers: synchronization.headers)
        let answer: GraphQLAnswer
        do { answer = try await core.send(request, by: transport, within: synchronization.timeout) } catch {
            throw error.code == .cancelled
                ? LarderError(.cancelled, "The task was cancelled", cause: error) : LarderError(error)
        }
        let parsed: ParsedResponse
        do throws(RecordError) { parsed = try ParsedResponse.parse(answer.body, along: bound.layout) } catch {
            throw LarderError.parking(error)
        }
        // An object that could not be read would be missing for good.
        guard parsed.hasData, parsed.errors.isEmpty else {
            throw LarderError(.serverErrors, "The server answered with errors", errors: parsed.errors)
        }
        guard case .int(let startedAt)? = parsed.leaf(at: [plan.field, plan.startedAt]),
            SyncPosition.times.contains(startedAt), let count = parsed.elementCount(at: [plan.field, plan.items])
        else { throw LarderError(.paging, "A page of \(plan.place) does not say when its walk began, or has no list") }
        var next: String?
        if case .string(let token)? = parsed.leaf(at: [plan.field, plan.nextToken]) { next = token }
        return Page(parsed: parsed, operation: bound, next: next, startedAt: startedAt, objectCount: count)
    }

    private func asking(since: Int64?, token: String?) async -> Result<Page, LarderError> {
        do throws(LarderError) { return .success(try await fetch(since: since, token: token)) } catch {
            return .failure(error)
        }
    }

    private mutating func store(_ page: Page, since: Int64?, startedAt: Int64) async throws(LarderError) {
        let number = position.walk?.pageCount ?? 0
        let marks = since == nil && !isFiltered
        if let next = page.next {
            position.walk = .init(since: since, startedAt: startedAt, token: next, pageCount: number + 1)
        } else {
            (position.walk, position.startedAt) = (nil, startedAt)
            if marks { position.sweep = .init(changedBefore: startedAt - Self.overlap) }
        }
        position.lastUsed = partition.core.now().milliseconds
        let end = SyncPage(key: key, position: position, after: stored, number: number, marks: marks)
        do { try await partition.core.cache.write(page.parsed, of: page.operation, as: end) } catch {
            throw LarderError.parking(error)
        }
        stored = position
        report.pageCount += 1
        report.objectCount += page.objectCount
        (report.isBase, report.isFinished) = (report.isBase || since == nil, page.next == nil)
        report.milliseconds = position.startedAt
        if page.next == nil { try await sweep() }
    }

    /// Removes what a walk through everything did not have, in short commits.
    private mutating func sweep() async throws(LarderError) {
        guard position.sweep != nil else { return }
        let core = partition.core
        let seen: WalkedKeys
        do { seen = try core.cache.walkedKeys(of: key) } catch { throw LarderError.parking(error) }
        while let open = stored, open.sweep != nil {
            try await core.requireAwake()
            guard !Task.isCancelled else { throw LarderError(.cancelled, "The task was cancelled") }
            let (kept, needed) = (try NeededObjects(core).pinned(), try core.namedByQueue())
            do {
                stored = try await core.cache.sweep(key, at: open, seen: seen, needed: needed, kept: kept)
            } catch { throw LarderError.parking(error) }
            position.sweep = stored?.sweep
        }
    }

    /// Forgets how far the walk has come, not what it has stored.
    private mutating func giveUp() async throws(LarderError) {
        do { try await partition.core.cache.forgetWalk(of: key) } catch { throw LarderError.parking(error) }
        position.walk = nil
        stored?.walk = nil
        (tokens, emptyPageCount) = ([], 0)
    }
}

extension Duration {
    fileprivate var milliseconds: Int64 {
        let (seconds, attoseconds) = components
        let (product, isTooLong) = seconds.multipliedReportingOverflow(by: 1_000)
        return isTooLong ? .max : product.addingReportingOverflow(attoseconds / 1_000_000_000_000_000).partialValue
    }
}
