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
    private struct Key: Hashable {
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
        var hasStarted = false
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
        /// Ends the wait for the server's acknowledgement, or the catching up.
        var task: Task<Void, Never>?
        /// The fetch that catches up, be it cancelled: another begins after it, whose answer is the newer one.
        var fetching: Task<Void, Never>?

        init(
            _ request: GraphQLRequest, _ operation: BoundOperation, _ options: SubscriptionOptions,
            _ nulls: NullsInEvents
        ) {
            self.request = request
            self.operation = operation
            self.nulls = nulls
            positionKey = hexadecimal(SHA256.hash(data: Array(request.documentHash.utf8) + request.variables))
            catchUp = options.closingGaps
            headers = options.headers
        }
    }

    let partition: Partition
    nonisolated let transport: any SubscriptionTransport
    private var entries: [Key: Entry] = [:]
    private var supervision: Task<Void, Never>?
    /// Ends the pauses.
    private let changeSignal = ChangeSignal()
    private var isClosed = false

    /// Counts connections; what an older one brings is dropped.
    private var lineNumber = 0
    /// What is asked on the connection; nil where none is open.
    private var commands: AsyncStream<SubscriptionLine.Command>.Continuation?
    /// The connection that is open or being opened.
    private var carrying: Task<TransportError?, Never>?
    /// Why the connection was given up here.
    private var ownEnd: TransportError?
    private var lastID = 0
    /// Events that are to be stored, in their order.
    var unstored: [(entry: Entry, response: [UInt8])] = []
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
            entry = Entry(request, operation, options, nulls)
            entry.state.noteGap(lastComplete(entry) ?? partition.core.now())
            entries[key] = entry
            start(entry)
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
    private func lingerUnused() {
        let (number, end) = (lineNumber, ContinuousClock.now + pacing.lingering)
        Task {
            await CancellableTimer.wait(until: end)
            self.endUnused(line: number)
        }
    }

    private func endUnused(line number: Int) {
        if number == lineNumber, entries.isEmpty { commands?.finish() }
    }

    private func remove(_ entry: Entry, _ key: Key) {
        entries[key] = nil
        noteComplete(entry)
        drop(entry)
        entry.task?.cancel()
        if let id = entry.id { commands?.yield(.stop(id: id)) }
        entry.id = nil
        if entries.isEmpty, commands != nil { lingerUnused() }
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
        lineNumber += 1
        commands?.finish()
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
        if let commands { commands.finish() } else { carrying?.cancel() }
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
            let began = ContinuousClock.now
            // Nothing is awaited between this look and the opening.
            guard !partition.core.operationsStore.suspension.isAsked else { continue }
            let end: TransportError
            if let failure = await carryOneLine() {
                end = failure
            } else {
                guard !entries.isEmpty, !partition.core.operationsStore.suspension.isAsked else { continue }
                end = TransportError(.interrupted, "The transport has ended the connection")
            }
            guard end.code != .unusableRequest else { return endAll(LarderError(end)) }
            // A connection that lasted was a good one.
            failures = ContinuousClock.now - began > .seconds(30) ? 1 : failures + 1
            let pause = pacing.backoff.pause(
                after: failures, asked: end.retryAfter, fraction: Double.random(in: 0...1))
            await wait(for: pause, untilSignIn: end.code == .notSignedIn)
        }
    }

    /// - Returns: Why the connection ended; nil where nothing was asked on it any more.
    private func carryOneLine() async -> TransportError? {
        lineNumber += 1
        ownEnd = nil
        let number = lineNumber
        let (commands, continuation) = AsyncStream.makeStream(of: SubscriptionLine.Command.self)
        let line = SubscriptionLine(commands: commands) { [weak self] message in
            await self?.take(message, line: number, continuation)
        }
        defer {
            continuation.finish()
            if number == lineNumber { self.commands = nil }
        }
        let carrying = Task { [transport, pacing] in
            do throws(TransportError) {
                try await transport.carry(line, openedWithin: pacing.opening)
                return nil as TransportError?
            } catch { return error }
        }
        self.carrying = carrying
        defer { self.carrying = nil }
        let failure = await withTaskCancellationHandler {
            await carrying.value
        } onCancel: {
            carrying.cancel()
        }
        // Only the hub itself cancels it.
        let end = failure?.code == .cancelled ? ownEnd : failure ?? ownEnd
        interrupt(end)
        return end
    }

    /// What was asked on the connection is to be asked anew, and may miss what happens until then.
    private func interrupt(_ error: TransportError?) {
        let now = partition.core.now()
        for entry in entries.values {
            noteComplete(entry)
            drop(entry)
            entry.interrupt(now, error.map(LarderError.init))
        }
    }

    /// Waits between two attempts. The wait ends early when the network returns or the hub is closed. Where another
    /// user is needed, it then waits for a change in the database, such as a sign-in, and at most a minute.
    private func wait(for pause: Duration, untilSignIn: Bool) async {
        let end = ContinuousClock.now + pause
        let signal = partition.core.operationsStore.changeSignal
        let signalCount = signal.count
        let wasConnected = pacing.connectivity.isConnected
        while !isClosed, !entries.isEmpty, .now < end {
            let count = changeSignal.count
            if !wasConnected, pacing.connectivity.isConnected { return }
            await changeSignal.wait(past: count, for: end - .now)
        }
        guard untilSignIn, !isClosed, !entries.isEmpty else { return }
        await signal.wait(past: signalCount, for: .seconds(60))
    }

    // MARK: What comes

    private func take(
        _ message: SubscriptionLine.Message, line number: Int,
        _ commands: AsyncStream<SubscriptionLine.Command>.Continuation
    ) async {
        // A connection that was given up may still bring messages, perhaps for another user: the hub drops them.
        guard number == lineNumber, !isClosed else { return }
        switch message {
        case .opened:
            self.commands = commands
            for entry in entries.values { start(entry) }
            if entries.isEmpty { lingerUnused() }
        case .started(let id):
            guard let entry = entry(id), !entry.hasStarted else { return }
            entry.task?.cancel()
            (entry.hasStarted, entry.failures) = (true, 0)
            catchUp(entry, attempt: 1)
        case .event(let id, let response):
            guard let entry = entry(id) else { return }
            await take(response, of: entry)
        case .failed(let id, let response, let mayRecover):
            // Its readers are told of the events before it.
            await storeAll(before: id)
            guard let entry = entry(id) else { return }
            fail(entry, response, mayRecover: mayRecover)
        case .completed(let id):
            await storeAll(before: id)
            guard let entry = entry(id) else { return }
            end(entry, because: nil)
        }
    }

    func entry(_ id: String) -> Entry? { entries.values.first { $0.id == id } }

    private func start(_ entry: Entry) {
        guard let commands, entry.id == nil else { return }
        lastID += 1
        let (id, number, deadline) = (String(lastID), lineNumber, ContinuousClock.now + pacing.starting)
        entry.id = id
        commands.yield(.start(id: id, entry.request))
        entry.task = Task {
            guard await CancellableTimer.wait(until: deadline) else { return }
            self.giveUp(line: number, waitingFor: id)
        }
    }

    /// A server that does not acknowledge a subscription may be waited for in vain for ever.
    private func giveUp(line number: Int, waitingFor id: String) {
        guard number == lineNumber, let entry = entry(id), !entry.hasStarted else { return }
        ownEnd = TransportError(
            .timedOut, "The server did not acknowledge a subscription within \(pacing.starting)")
        commands?.finish()
    }

    private func fail(_ entry: Entry, _ response: [UInt8], mayRecover: Bool) {
        let errors = (try? ParsedResponse.parse(response, along: entry.operation.layout))?.errors ?? []
        let error = LarderError(.serverErrors, "The server has ended the subscription", errors: errors)
        guard mayRecover else { return end(entry, because: error) }
        entry.failures += 1
        let number = lineNumber
        let pause = pacing.backoff.pause(after: entry.failures, fraction: Double.random(in: 0.5...1))
        noteComplete(entry)
        drop(entry)
        entry.interrupt(partition.core.now(), error)
        entry.task = Task {
            guard await CancellableTimer.wait(until: .now + pause) else { return }
            self.startAgain(entry, line: number)
        }
    }

    private func startAgain(_ entry: Entry, line number: Int) {
        if number == lineNumber, !Task.isCancelled { start(entry) }
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

extension SubscriptionOptions {
    fileprivate var closingGaps: SubscriptionHub.CatchUp? {
        sync.map(SubscriptionHub.CatchUp.sync) ?? catchUp.map(SubscriptionHub.CatchUp.query)
    }
}
