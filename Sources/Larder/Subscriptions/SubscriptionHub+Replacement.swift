import Foundation
import LarderRecords

/// How one connection takes the place of another without a gap: before a token ends, before the server's own limit, and
/// where the server is silent.
///
/// All subscriptions begin on the other connection first, and what comes there is held back. Then each is ended on the
/// old one, and what comes until the server has confirmed that is stored as ever; what was held back comes after it, so
/// that nothing is missing. An event that came on both is stored twice.
extension SubscriptionHub {
    /// One connection, from its opening to its end.
    final class Line {
        let number: Int
        let commands: AsyncStream<[SubscriptionLine.Command]>.Continuation
        /// Whether the server has taken it up, so that something can be asked on it.
        var isOpen = false
        var carrying: Task<TransportError?, Never>?
        /// Ends the connection where a subscription is not acknowledged in time; nil while no start is waited for.
        var startWatch: Task<Void, Never>?
        /// Why it was given up here.
        var ownEnd: TransportError?
        /// When it was heard of last.
        var heard: Date
        /// When the subscriptions were told last that the server is alive.
        var aliveNoted = Date.distantPast
        /// When another is to take its place, as its server said before it was in use.
        var expiry: ContinuousClock.Instant?
        let began = SuspendingClock.now

        init(_ number: Int, _ commands: AsyncStream<[SubscriptionLine.Command]>.Continuation, heard: Date) {
            self.number = number
            self.commands = commands
            self.heard = heard
        }

        func ask(_ commands: [SubscriptionLine.Command]) {
            if !commands.isEmpty { self.commands.yield(commands) }
        }

        /// Ends it: at once while it is being opened.
        func breakOff() {
            if isOpen { commands.finish() } else { carrying?.cancel() }
        }

        /// Waits for its end. Cancelling the task ends it.
        ///
        /// - Returns: Why it ended; nil where nothing was asked on it any more.
        func end(isolation: isolated (any Actor)? = #isolation) async -> TransportError? {
            guard let carrying else { return ownEnd }
            let failure = await withTaskCancellationHandler {
                await carrying.value
            } onCancel: {
                carrying.cancel()
            }
            // Only the hub itself cancels it.
            return failure?.code == .cancelled ? ownEnd : failure ?? ownEnd
        }
    }

    /// A subscription on the connection that is to take the place of the one that is open.
    struct Next {
        let id: String
        var hasStarted = false
        /// What came there.
        var held: [[UInt8]] = []
        var heldBytes = 0
        var hasOverflown = false
        /// Whether the old connection was asked to end the subscription.
        var isDraining = false
    }

    func openLine() -> Line {
        lineCount += 1
        let number = lineCount
        let (commands, continuation) = AsyncStream.makeStream(of: [SubscriptionLine.Command].self)
        let line = Line(number, continuation, heard: partition.core.now())
        let wire = SubscriptionLine(commands: commands) { [weak self] messages in
            await self?.take(messages, line: number)
        }
        line.carrying = Task { [transport, pacing] in
            do throws(TransportError) {
                try await transport.carry(wire, openedWithin: pacing.opening)
                return nil as TransportError?
            } catch { return error }
        }
        return line
    }

    // MARK: When

    /// Lets another connection take the place of one after a time. Where that is to happen earlier already, it stays so.
    func replace(_ line: Line, after time: Duration) {
        // A server that lets each connection end at once would have them opened without a pause.
        let pause = replacementCount == 0 ? .zero : pacing.backoff.pause(after: replacementCount, fraction: 1)
        let due = ContinuousClock.now + max(time, pause)
        if let replacement, replacement.at <= due { return }
        replacement?.task.cancel()
        let number = line.number
        let task = Task {
            guard await CancellableTimer.waitThroughSleep(until: due) else { return }
            self.beginReplacing(number)
        }
        replacement = (task, due)
    }

    private func beginReplacing(_ number: Int) {
        replacement = nil
        guard let line = main, line.number == number, line.isOpen, successor == nil, !isClosed, !entries.isEmpty,
            !partition.core.operationsStore.suspension.isAsked
        else { return }
        guard pacing.connectivity.isConnected else { return replaceLater() }
        let next = openLine()
        successor = next
        let (nextNumber, deadline) = (next.number, SuspendingClock.now + pacing.opening + pacing.starting)
        Task {
            let timer = Task {
                guard await CancellableTimer.wait(until: deadline) else { return }
                self.abandon(nextNumber)
            }
            defer { timer.cancel() }
            _ = await next.end()
            self.successorEnded(nextNumber)
        }
    }

    private func replaceLater() {
        replacementCount += 1
        if let main { replace(main, after: .zero) }
    }

    /// Gives up a connection that was to take the place of another: not all has begun on it in time.
    private func abandon(_ number: Int) {
        if let line = successor, line.number == number, !isHandingOver { line.breakOff() }
    }

    private func successorEnded(_ number: Int) {
        guard successor?.number == number else { return }
        successor = nil
        for entry in entries.values {
            // It was handed over, or has been asked to end where it ran until now.
            let isLost = entry.line == number || entry.next?.isDraining == true
            dropNext(of: entry)
            if isLost { interrupt(entry, nil) }
        }
        // Begins on the old connection again what was ended there.
        start(entries.values)
        replaceLater()
    }

    // MARK: The other connection

    func takeNext(_ message: SubscriptionLine.Message, on line: Line) {
        switch message {
        case .opened:
            line.isOpen = true
            startNext(entries.values)
            handOverIfReady()
        case .started(let id):
            nextEntry(id)?.next?.hasStarted = true
            handOverIfReady()
        case .event(let id, let response):
            guard let entry = nextEntry(id), let count = entry.next?.held.count else { return }
            guard hasRoom(beside: count, for: response) else {
                entry.next?.hasOverflown = true
                return
            }
            entry.next?.held.append(response)
            entry.next?.heldBytes += response.count
            heldBytes += response.count
        case .failed(let id, _, _), .broken(let id, _), .completed(let id):
            // The old connection goes on for as long as it can, and the server says there what it has to say.
            if nextEntry(id) != nil { line.breakOff() }
        case .alive: break
        case .expiring(let time): line.expiry = .now + time
        }
    }

    private func nextEntry(_ id: String) -> Entry? { entries.values.first { $0.next?.id == id } }

    /// Begins subscriptions on the connection that is to take the other's place, if there is one.
    func startNext(_ entries: some Sequence<Entry>) {
        guard let line = successor, line.isOpen else { return }
        line.ask(
            entries.filter { $0.next == nil }.map { entry in
                let next = Next(id: newID())
                entry.next = next
                return .start(id: next.id, entry.request)
            })
    }

    /// Lets go of what came on the other connection.
    func dropNext(of entry: Entry) {
        heldBytes -= entry.next?.heldBytes ?? 0
        entry.next = nil
    }

    // MARK: Handing over

    private var isHandingOver: Bool { entries.values.contains { $0.next?.isDraining == true } }

    /// Ends all subscriptions on the old connection, once each has begun on the other.
    func handOverIfReady() {
        guard let old = main, let line = successor, line.isOpen, !isHandingOver, !isClosed else { return }
        // Without one on the other line, a subscription was handed over already.
        let waiting = entries.values.filter { $0.next != nil }
        guard waiting.allSatisfy({ $0.next?.hasStarted == true }) else { return }
        guard !waiting.isEmpty else { return finishReplacing() }
        for entry in waiting { entry.next?.isDraining = true }
        old.ask(waiting.compactMap(\.id).map { .stop(id: $0) })
        let (number, deadline) = (line.number, SuspendingClock.now + pacing.draining)
        Task {
            guard await CancellableTimer.wait(until: deadline) else { return }
            self.endDraining(number)
        }
        // What did not run on the old connection is not waited for.
        for entry in waiting where entry.id == nil || !entry.hasStarted { switchOver(entry, isWhole: false) }
    }

    /// Whether a subscription was handed over to a connection, and goes on there.
    private func hasBegun(_ entry: Entry, on line: Line) -> Bool { entry.line == line.number && entry.id != nil }

    private func endDraining(_ number: Int) {
        guard successor?.number == number else { return }
        for entry in entries.values where entry.next?.isDraining == true { switchOver(entry, isWhole: false) }
    }

    /// Lets a subscription go on where it has begun on the other connection.
    ///
    /// - Parameter isWhole: Whether all has come that was under way on the old one.
    func switchOver(_ entry: Entry, isWhole: Bool) {
        guard let next = entry.next else { return }
        dropNext(of: entry)
        let wasRunning = entry.hasStarted && entry.id != nil
        if !wasRunning { entry.task?.cancel() }
        (entry.id, entry.hasStarted, entry.failures) = (next.id, true, 0)
        entry.line = successor?.number
        for response in next.held { append(response, of: entry) }
        if !wasRunning {
            catchUp(entry, attempt: 1)
        } else if !isWhole || next.hasOverflown {
            missedEvent(entry, nil)
        }
        store()
        if entries.values.allSatisfy({ $0.next == nil }) { finishReplacing() } else { handOverIfReady() }
    }

    private func finishReplacing() {
        guard let old = main, let line = successor else { return }
        (main, successor) = (line, nil)
        replacement?.task.cancel()
        replacement = nil
        replacementCount = old.began.duration(to: .now) > .seconds(60) ? 0 : replacementCount + 1
        if let expiry = line.expiry { replace(line, after: expiry - .now) }
        old.commands.finish()
        // One that failed on the way begins again here.
        let failed = entries.values.filter { !hasBegun($0, on: line) }
        for entry in failed { interrupt(entry, nil) }
        start(failed)
        if entries.isEmpty { lingerUnused() }
    }

    /// Lets the connection that is being made ready take the place of one that has ended. What was under way on that is
    /// a gap.
    ///
    /// - Returns: False where there is none.
    func takeOver(from old: Line, _ end: TransportError?) -> Bool {
        replacement?.task.cancel()
        replacement = nil
        guard let line = successor, !isClosed, !entries.isEmpty else { return false }
        for entry in entries.values where !hasBegun(entry, on: line) {
            let next = entry.next
            dropNext(of: entry)
            interrupt(entry, end.map(LarderError.init))
            guard let next else { continue }
            (entry.id, entry.line) = (next.id, line.number)
            guard next.hasStarted else {
                waitForStart(of: entry, on: line)
                continue
            }
            entry.hasStarted = true
            // What came there is stored before what is fetched now.
            for response in next.held { append(response, of: entry) }
            catchUp(entry, attempt: 1)
        }
        (main, successor) = (line, nil)
        start(entries.values)
        if let expiry = line.expiry { replace(line, after: expiry - .now) }
        return true
    }

    /// Has all subscriptions catch up: the server changed something without sending an event.
    func noteMissed() {
        for entry in entries.values where entry.catchUp != nil && entry.hasStarted {
            // What is being fetched may be older than the change.
            if entry.held != nil { entry.hasOverflown = true }
            missedEvent(entry, nil)
        }
    }
}
