import Crypto
import Foundation
import LarderFiles
import LarderGraphQL
import LarderRecords

/// Carries all subscriptions of a partition over one transport. The hub decides what to ask on the connection, and when
/// to open another one.
///
/// A subscription has a gap from the moment at which its connection broke to the one at which what was missed has been
/// fetched. It begins anew on each connection, and then its query that catches up is fetched; events that come
/// meanwhile are held back and stored after that answer, so that no event older than the answer stands over it for good.
actor SubscriptionHub {
    /// Equal subscriptions share one start.
    struct Key: Hashable {
        let document: ExactText
        let name: ExactText?
        let variables: [UInt8]
        let catchUp: CatchUp?
        let nulls: NullsInEvents
        let headers: [GraphQLRequest.Header]
    }

    /// One subscription at the server. Several readers of this process may share it.
    final class Entry {
        let request: GraphQLRequest
        let operation: BoundOperation
        /// By which the cache knows up to when everything has come.
        let positionKey: String
        let catchUp: CatchUp?
        let nulls: NullsInEvents
        let headers: [GraphQLRequest.Header]
        var readers: [SubscriptionEvents] = []
        var state = SubscriptionState()
        /// On the connection that is open; nil where it has not been asked there.
        var id: String?
        /// The number of that connection.
        var line: Int?
        var hasStarted = false
        /// When the connection is given up unless the server has acknowledged the start; nil before any.
        var startDeadline: SuspendingClock.Instant?
        /// When it was noted last that nothing is missing.
        var lastNoted: Date?
        /// How many starts in a row have failed.
        var failures = 0
        /// Events that wait for the answer that catches up; nil where none is awaited.
        var held: [[UInt8]]?
        var heldBytes = 0
        /// Whether more came than could be held.
        var hasOverflown = false
        /// Counts the times that it catches up; what an earlier one ends with counts for nothing.
        var round = 0
        /// On the connection that is to take the place of the one that is open; nil where it was not asked there.
        var next: Next?
        /// Ends the wait for another start, or the catching up.
        var task: Task<Void, Never>?
        /// The fetch that catches up, be it cancelled: another begins after it, whose answer is the newer one.
        var fetching: Task<Void, Never>?

        init(
            _ request: GraphQLRequest, _ operation: BoundOperation, _ options: SubscriptionOptions,
            _ nulls: NullsInEvents, server: String?
        ) {
            self.request = request
            self.operation = operation
            self.nulls = nulls
            // What is known of one server says nothing of another.
            let asked = Array(request.documentHash.utf8) + Array((server ?? "").utf8) + request.variables
            positionKey = hexadecimal(SHA256.hash(data: asked))
            catchUp = options.closingGaps
            headers = options.headers
        }
    }

    let partition: Partition
    nonisolated let transport: any SubscriptionTransport
    var entries: [Key: Entry] = [:]
    private var supervision: Task<Void, Never>?
    /// Ends the pauses.
    private let changeSignal = ChangeSignal()
    var isClosed = false

    var lineCount = 0
    /// The connection that is open or being opened. What one brings that is neither this nor the next is dropped.
    var main: Line?
    /// The connection that is to take the place of `main` once all subscriptions have begun on it.
    var successor: Line?
    /// Waits until another connection is to be opened.
    var replacement: (task: Task<Void, Never>, at: ContinuousClock.Instant)?
    /// How many attempts in a row to replace a connection have failed, or had to be made soon.
    var replacementCount = 0
    private var lastID = 0
    /// How often an unused connection was kept for a moment: only the timer of the last time may end it.
    private var lingerCount = 0
    /// Events that are to be stored, in their order, and until when all before them had come.
    var unstored: [(entry: Entry, response: [UInt8], since: Date)] = []
    var unstoredBytes = 0
    /// Of the events that are held back, of all subscriptions.
    var heldBytes = 0
    /// Up to when everything has come over subscriptions, as it is to be noted in the cache.
    var unnoted: [String: SubscriptionPosition] = [:]
    /// Nil where nothing is being noted.
    var noting: Task<Void, Never>?
    /// Nil where nothing is being stored.
    var storing: Task<Void, Never>?

    init(_ partition: Partition, _ transport: any SubscriptionTransport) {
        self.partition = partition
        self.transport = transport
    }

    var pacing: SubscriptionPacing { transport.pacing }

    // MARK: Readers

    func add(
        _ events: SubscriptionEvents, _ request: GraphQLRequest, _ operation: BoundOperation,
        _ options: SubscriptionOptions
    ) {
        guard !isClosed, !events.isEnded, partition.core.subscriptions.keep(self) else {
            return events.set(.ended(.parked))
        }
        let nulls = options.nulls ?? transport.nullsInEvents
        let key = Key(
            document: ExactText(request.document), name: request.operationName.map(ExactText.init),
            variables: request.variables, catchUp: options.closingGaps, nulls: nulls,
            headers: options.headers)
        let entry: Entry
        if let shared = entries[key] {
            entry = shared
        } else {
            entry = Entry(request, operation, options, nulls, server: partition.transport?.server)
            entry.state.noteGap(lastComplete(entry) ?? partition.core.now())
            entries[key] = entry
            start([entry])
            startNext([entry])
        }
        entry.readers.append(events)
        events.set(entry.state)
        if supervision == nil { supervision = Task { await self.supervise() } }
    }

    /// Ends the subscriptions that have no reader left.
    func removeEnded() {
        for (key, entry) in entries {
            entry.readers.removeAll(where: \.isEnded)
            if entry.readers.isEmpty { remove(entry, key) }
        }
    }

    /// Keeps a connection on which nothing is asked for a moment.
    func lingerUnused() {
        guard let number = main?.number else { return }
        lingerCount += 1
        let (count, end) = (lingerCount, SuspendingClock.now + pacing.lingering)
        Task {
            await CancellableTimer.wait(until: end)
            self.endUnused(line: number, count)
        }
    }

    private func endUnused(line number: Int, _ count: Int) {
        guard number == main?.number, count == lingerCount, entries.isEmpty else { return }
        main?.commands.finish()
        successor?.breakOff()
    }

    private func remove(_ entry: Entry, _ key: Key) {
        entries[key] = nil
        noteComplete(entry)
        drop(entry)
        entry.task?.cancel()
        if let id = entry.id { line(of: entry)?.ask([.stop(id: id)]) }
        entry.id = nil
        if let next = entry.next {
            successor?.ask([.stop(id: next.id)])
            dropNext(of: entry)
        }
        handOverIfReady()
        if entries.isEmpty, main?.isOpen == true { lingerUnused() }
    }

    func noteCaughtUp(_ events: SubscriptionEvents, since state: SubscriptionState) {
        guard let entry = entries.values.first(where: { $0.readers.contains { $0 === events } }),
            entry.catchUp == nil, entry.hasStarted, entry.state.gapCount == state.gapCount
        else { return }
        entry.change { $0.staleSince = nil }
        noteComplete(entry)
    }

    /// Ends all subscriptions: the partition is parked, or its store closed.
    func close() {
        isClosed = true
        replacement?.task.cancel()
        for line in [main, successor].compactMap(\.self) {
            line.commands.finish()
            if !line.isOpen { line.carrying?.cancel() }
        }
        supervision?.cancel()
        endAll(.parked)
        changeSignal.notify()
    }

    private func endAll(_ error: LarderError?) {
        for (key, entry) in entries {
            entry.change { $0 = .ended(error, staleSince: $0.staleSince) }
            remove(entry, key)
        }
    }

    /// Ends the connection before the store is suspended. `supervise` opens another after `resume`; the time between
    /// is a gap of every subscription.
    func breakOff() {
        for line in [main, successor].compactMap(\.self) { line.breakOff() }
    }

    // MARK: The connection

    /// Keeps a connection open for as long as anything is asked on it.
    private func supervise() async {
        defer {
            supervision = nil
            if entries.isEmpty { partition.core.subscriptions.remove(self) }
        }
        let connectivity = pacing.connectivity
        let observation = connectivity.observe { [changeSignal] _ in changeSignal.notify() }
        defer { observation.stop() }
        var failures = 0
        while !entries.isEmpty, !isClosed {
            let count = changeSignal.count
            _ = await partition.core.operationsStore.suspension.sitOut()
            guard connectivity.isConnected else {
                await changeSignal.wait(past: count, for: nil)
                continue
            }
            let began = SuspendingClock.now
            // Nothing is awaited between this look and the opening.
            guard !partition.core.operationsStore.suspension.isAsked else { continue }
            let end: TransportError
            if let failure = await carryLines() {
                end = failure
            } else {
                guard !entries.isEmpty, !partition.core.operationsStore.suspension.isAsked else { continue }
                end = TransportError(.interrupted, "The transport has ended the connection")
            }
            guard end.code != .unusableRequest else { return endAll(LarderError(end)) }
            // A connection that lasted was a good one.
            failures = SuspendingClock.now - began > .seconds(30) ? 1 : failures + 1
            let pause = pacing.backoff.pause(
                after: failures, asked: end.retryAfter, fraction: Double.random(in: 0...1))
            await wait(for: pause, untilSignIn: end.code == .notSignedIn)
        }
    }

    /// Opens a connection, and serves it and its replacements, until one ends without a replacement.
    ///
    /// - Returns: Why it ended; nil where nothing was asked on it any more.
    private func carryLines() async -> TransportError? {
        main = openLine()
        var end: TransportError?
        while let line = main {
            end = await line.end()
            line.commands.finish()
            line.startWatch?.cancel()
            // Another has taken its place, or takes it now.
            guard main === line else { continue }
            if !takeOver(from: line, end) { break }
        }
        successor?.breakOff()
        successor = nil
        for entry in entries.values { dropNext(of: entry) }
        interrupt(end)
        main = nil
        return end
    }

    /// What was asked on the connection is to be asked anew, and may miss what happens until then.
    func interrupt(_ error: TransportError?) {
        for entry in entries.values { interrupt(entry, error.map(LarderError.init)) }
    }

    /// Notes that a subscription does not run at the server any more, and is to be started again. From when the
    /// connection was heard of last, something may be missing.
    func interrupt(_ entry: Entry, _ error: LarderError?) {
        noteComplete(entry)
        drop(entry)
        entry.interrupt(line(of: entry)?.heard ?? partition.core.now(), error)
    }

    /// The connection on which a subscription was begun, or is to be.
    func line(of entry: Entry) -> Line? {
        if let line = successor, line.number == entry.line { line } else { main }
    }

    /// Waits between two attempts. The wait ends early when the network returns or the hub is closed. Where another
    /// user is needed, it then waits for a sign-in, or a change in the database, and at most a minute.
    private func wait(for pause: Duration, untilSignIn: Bool) async {
        let end = SuspendingClock.now + pause
        // A program that only subscribes looks for no changes in the database.
        var signals = [partition.core.operationsStore.changeSignal]
        if untilSignIn, let session = try? partition.unfollowedSession { signals.append(session.changeSignal) }
        let counts = signals.map(\.count)
        var wasConnected = pacing.connectivity.isConnected
        while !isClosed, !entries.isEmpty, .now < end {
            let count = changeSignal.count
            let isConnected = pacing.connectivity.isConnected
            if isConnected, !wasConnected { return }
            wasConnected = isConnected
            await changeSignal.wait(past: count, for: end - .now)
        }
        guard untilSignIn, !isClosed, !entries.isEmpty else { return }
        await withTaskGroup { group in
            for (signal, count) in zip(signals, counts) {
                group.addTask { await signal.wait(past: count, for: .seconds(60)) }
            }
            await group.next()
            group.cancelAll()
        }
    }

    // MARK: What comes

    /// Takes what a connection brings. A connection that was given up may still bring messages, perhaps for another
    /// user: the hub drops them.
    func take(_ messages: [SubscriptionLine.Message], line number: Int) async {
        // What takes long to be stored came no later for that.
        let now = partition.core.now()
        for message in messages { await take(message, line: number, at: now) }
    }

    private func take(_ message: SubscriptionLine.Message, line number: Int, at now: Date) async {
        guard !isClosed else { return }
        guard let line = [main, successor].compactMap(\.self).first(where: { $0.number == number }) else { return }
        // A subscription that was handed over goes on there while others are yet to be.
        if line === main || message.id.flatMap(entry) != nil {
            await take(message, on: line)
        } else {
            takeNext(message, on: line)
        }
        line.heard = max(line.heard, now)
        // Many pongs may come at once: to look at all subscriptions once a second is enough.
        guard case .alive = message, abs(now.timeIntervalSince(line.aliveNoted)) >= 1 else { return }
        line.aliveNoted = now
        for entry in entries.values { noteComplete(entry, atMostEach: 60) }
    }

    private func take(_ message: SubscriptionLine.Message, on line: Line) async {
        switch message {
        case .opened:
            line.isOpen = true
            start(entries.values)
            if entries.isEmpty { lingerUnused() }
        case .started(let id):
            guard let entry = entry(id), !entry.hasStarted else { return }
            (entry.hasStarted, entry.failures) = (true, 0)
            catchUp(entry, attempt: 1)
        case .event(let id, let response):
            guard let entry = entry(id) else { return }
            await take(response, of: entry)
        case .failed(let id, let response, let mayRecover):
            await fail(id, mayRecover: mayRecover) { entry in
                let errors = (try? ParsedResponse.parse(response, along: entry.operation.layout))?.errors ?? []
                return LarderError(.serverErrors, "The server has ended the subscription", errors: errors)
            }
        case .broken(let id, let error): await fail(id, mayRecover: true) { _ in LarderError(error) }
        case .completed(let id):
            if let entry = entry(id), entry.next?.isDraining == true { return switchOver(entry, isWhole: true) }
            await storeAll(before: id)
            guard let entry = entry(id) else { return }
            end(entry, because: nil)
        case .alive: break
        case .expiring(let time): replace(line, after: time)
        }
    }

    /// An id that no subscription of this hub had.
    func newID() -> String {
        lastID += 1
        return String(lastID)
    }

    func entry(_ id: String) -> Entry? { entries.values.first { $0.id == id } }

    private func fail(_ id: String, mayRecover: Bool, because cause: (Entry) -> LarderError) async {
        // Its readers are told of the events before it.
        await storeAll(before: id)
        guard let entry = entry(id) else { return }
        if entry.next?.isDraining == true { return switchOver(entry, isWhole: false) }
        let error = cause(entry)
        guard mayRecover else { return end(entry, because: error) }
        entry.failures += 1
        let number = main?.number
        let pause = pacing.backoff.pause(after: entry.failures, fraction: Double.random(in: 0.5...1))
        interrupt(entry, error)
        entry.task = Task {
            guard await CancellableTimer.wait(until: .now + pause) else { return }
            self.startAgain(entry, line: number)
        }
    }

    private func startAgain(_ entry: Entry, line number: Int?) {
        if number == main?.number, !Task.isCancelled { start([entry]) }
    }

    private func end(_ entry: Entry, because error: LarderError?) {
        guard let key = entries.first(where: { $0.value === entry })?.key else { return }
        entry.id = nil
        entry.change { $0 = .ended(error, staleSince: $0.staleSince) }
        remove(entry, key)
    }

    /// Whether the subscription has begun on the connection that is open, and is asked for still.
    func isCurrent(_ entry: Entry, _ round: Int) -> Bool { entry.id != nil && entry.round == round && !isClosed }
}

extension SubscriptionHub.Entry {
    /// Notes that the subscription does not run at the server any more, and is to be started again. What it held back
    /// was let go of.
    func interrupt(_ now: Date, _ error: LarderError?) {
        task?.cancel()
        (id, hasStarted) = (nil, false)
        round += 1
        change { state in
            state.phase = .connecting
            state.noteGap(now)
            state.error = error ?? state.error
        }
    }

    /// Changes the state, and tells the readers.
    func change(_ body: (inout SubscriptionState) -> Void) {
        body(&state)
        for reader in readers { reader.set(state) }
    }
}

extension SubscriptionState {
    mutating func noteGap(_ now: Date) {
        staleSince = staleSince ?? now
        gapCount += 1
    }

    static func ended(_ error: LarderError?, staleSince: Date? = nil) -> SubscriptionState {
        var state = SubscriptionState()
        (state.phase, state.error, state.staleSince) = (.ended, error, staleSince)
        return state
    }
}

extension SubscriptionHub {
    /// What closes a gap.
    enum CatchUp: Hashable {
        case query(GraphQLOperation)
        case sync(Synchronization)
    }
}

extension SubscriptionLine.Message {
    /// Of the subscription that it is about.
    fileprivate var id: String? {
        switch self {
        case .started(let id), .event(let id, _), .failed(let id, _, _), .broken(let id, _), .completed(let id): id
        case .opened, .alive, .expiring: nil
        }
    }
}

extension SubscriptionOptions {
    fileprivate var closingGaps: SubscriptionHub.CatchUp? {
        sync.map(SubscriptionHub.CatchUp.sync) ?? catchUp.map(SubscriptionHub.CatchUp.query)
    }
}
