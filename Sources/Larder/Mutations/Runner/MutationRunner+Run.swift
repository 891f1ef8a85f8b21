import Foundation
import LarderOperations
import ServiceLifecycle

extension MutationRunner: Service {
    /// Sends until the task is cancelled or the service is to shut down. Mutations that are in flight then are waited
    /// for, each as long as its exchange, and a question about it, may take.
    ///
    /// - Throws: `.noTransport`; `.operation`, `.syntax`, `.variables` where the probe is no query of the schema;
    ///   `.parked` once another partition is the current one, or the store is closed;
    ///   `.notRunnable` where the lock cannot be made; `operations.…` and `records.…` where the queue or the cache
    ///   cannot be read or written: the disk is full, or another program keeps the file locked past the deadline.
    ///   Nothing is lost; run again when that is over.
    package func run() async throws {
        try await lifecycle.run { try await toItsEnd { try await self.work(untilEmpty: false) } }
    }

    /// Sends what can be sent, and returns when nothing is left that could be sent now or after a pause: the queue is
    /// empty but for mutations that were set aside and mutations that wait for them. The runner waits while no user is
    /// signed in, there is no network, or another runner works: cancel its task to end that.
    ///
    /// - Throws: As `run`.
    package func drain() async throws {
        try await lifecycle.drain { try await toItsEnd { try await self.work(untilEmpty: true) } }
    }

    /// Does work that ends when the runner is stopped, and not where it stands because the calling task is cancelled:
    /// the answer of an exchange that is broken off would be lost.
    private func toItsEnd(_ work: @escaping @Sendable () async throws -> Void) async throws {
        try await Task(operation: work).value
    }

    private func work(untilEmpty: Bool) async throws {
        defer { progress.withLock { $0 = Progress() } }
        guard let transport else { throw LarderError(.noTransport, "The partition has no transport to send with") }
        _ = try core.operations.bound(query: options.probe)
        // The threads are the runner's own: they may wait for the disk, and need not change for each step.
        let queue = try core.operationsStore.database().mutations.blocking
        try await lifecycle.alone(options.connectivity) { [self] owner in
            let attempts = AttemptRunner(
                core: core, queue: queue, transport: transport, owner: owner, options: options, executor: executor)
            await withTaskExecutorPreference(executor) {
                await withDiscardingTaskGroup { group in
                    group.addTask {
                        do { try await attempts.storeAnswers() } catch {
                            // The answers are in the queue; no lane is to wait for room among them any more.
                            attempts.answers.close()
                            self.lifecycle.end(because: error)
                        }
                    }
                    do { try await core.settingDamagedAside { try await recover(attempts) } } catch {
                        lifecycle.end(because: error)
                    }
                    await send(attempts, queue, untilEmpty)
                    attempts.answers.close()
                }
            }
        }
    }

    /// Sends whatever can be sent, each lane in its order, until the runner is to stop. A failure then ends no lane
    /// that has something in flight: the runner waits for the lane, so that its answer is not lost as well.
    private func send(_ attempts: AttemptRunner, _ queue: MutationQueue, _ untilEmpty: Bool) async {
        await withDiscardingTaskGroup { group in
            while let heads = await lifecycle.next({ try await look(queue, untilEmpty) }) {
                for head in heads {
                    group.addTask {
                        defer { self.free(head.lane) }
                        do { try await self.send(head, attempts) } catch {
                            await self.end(head.lane, queue, because: error)
                        }
                    }
                }
            }
        }
    }

    /// Ends the runner, unless a damaged row was what went wrong. That is set aside, and the others go on where nothing
    /// of its lane is in flight: how an attempt ended that could not be noted is for the next runner to find out.
    private func end(_ lane: String, _ queue: MutationQueue, because error: any Error) async {
        do {
            let inFlight = MutationFilter(partition: core.name, states: [.inFlight], lane: lane)
            guard try await core.hasSetAside(after: error), try queue.list(inFlight).isEmpty else {
                return lifecycle.end(because: error)
            }
        } catch { lifecycle.end(because: error) }
    }

    /// What to begin now.
    private func look(
        _ queue: MutationQueue, _ untilEmpty: Bool
    ) async throws -> RunnerLifecycle.Look<[Runnable.Head]> {
        let now = core.now()
        if progress.withLock({ $0.isSignedOut }) {
            guard try lifecycle.hasNewSession() else {
                lifecycle.set(.waitingForSignIn)
                return .rest
            }
            resume()
        }
        let runnable = try runnable(queue, now)
        // Asked afterwards: what was queued without a network is not sent.
        guard options.connectivity.isConnected else {
            lifecycle.set(.offline)
            return .rest
        }
        lifecycle.set(progress.withLock(\.isServerMissing) ? .unusableServer : .running)
        try measure(queue, now)
        if runnable.mustExpire {
            core.layers.remove(try await queue.expire(in: core.name, now: now))
            core.operationsStore.changeSignal.notify()
            return .wait(.zero)
        }
        let pauseEnd = progress.withLock { $0.pause.end(at: now) }
        if pauseEnd == nil, !runnable.heads.isEmpty, let transport, mustSearch() {
            _ = await findsServer(transport)
            return .wait(.zero)
        }
        let heads = pauseEnd == nil ? take(runnable.heads) : []
        if !heads.isEmpty { return .begin(heads) }
        if progress.withLock(\.busyLanes.isEmpty) {
            core.layers.tidy()
            try await pruneIfDue(queue)
            if try !queue.hasMoving(in: core.name) {
                if untilEmpty { return .end }
                if runnable.lookAgain == nil { return .rest }
            }
        }
        return .wait(until: [runnable.lookAgain, pauseEnd].compactMap(\.self).min(), now: now)
    }

    /// Notes how many mutations wait, and since when, where that is measured.
    private func measure(_ queue: MutationQueue, _ now: Date) throws(OperationsError) {
        guard let instruments = core.instruments, instruments.measures else { return }
        let unsent = Set([MutationState.pending, .inFlight])
        let oldest = try queue.list(MutationFilter(partition: core.name, states: unsent), limit: 1).first
        let depth = try queue.counts(in: core.name).filter { unsent.contains($0.key) }.values.reduce(0, +)
        instruments.noteQueue(depth: depth, age: .seconds(max(0, now.timeIntervalSince(oldest?.created ?? now))))
    }

    /// The heads of lanes, beginning with the lanes after the ones that were taken last; enough of them for all lanes
    /// that may be busy.
    private func runnable(_ queue: MutationQueue, _ now: Date) throws -> Runnable {
        let (last, busy) = progress.withLock { ($0.lastLane, $0.busyLanes.count) }
        // A busy lane may be between two attempts, and its head among the heads that are found.
        let limit = options.maximumLanes + busy
        var found = try queue.runnable(in: core.name, now: now, after: last, limit: limit)
        guard last != nil, found.heads.count < limit else { return found }
        let others = try queue.runnable(in: core.name, now: now, limit: limit)
        let known = Set(found.heads.map(\.id))
        found.heads += others.heads.filter { !known.contains($0.id) }
        found.lookAgain = [found.lookAgain, others.lookAgain].compactMap(\.self).min()
        return found
    }

    /// The heads of lanes that are free, up to as many lanes as may be busy, which are busy from now on.
    private func take(_ heads: [Runnable.Head]) -> [Runnable.Head] {
        progress.withLock { progress in
            // Mutations that have come back since the runner looked whether a user is signed in are among the heads.
            guard !progress.isSignedOut, !progress.isServerInDoubt else { return [] }
            var taken: [Runnable.Head] = []
            // A server that asked to be left alone is tried with one.
            let limit = progress.pause.count > 0 ? 1 : options.maximumLanes
            for head in heads where progress.busyLanes.count < limit {
                if progress.busyLanes.insert(head.lane).inserted { taken.append(head) }
            }
            if let last = taken.last { progress.lastLane = last.lane }
            return taken
        }
    }

    private func free(_ lane: String) {
        _ = progress.withLock { $0.busyLanes.remove(lane) }
        core.operationsStore.changeSignal.notify()
    }

    /// Whether another mutation is to be begun where one has been answered.
    var goesOn: Bool {
        !lifecycle.isStopping && progress.withLock { !$0.isSignedOut && !$0.isServerInDoubt && $0.pause.count == 0 }
            && options.connectivity.isConnected
    }

    /// Whether it was asked to stop, and nothing went wrong: mutations that have begun need not be sent any more.
    var isCancelled: Bool { lifecycle.isStopping && !lifecycle.hasFailed }

    /// Whether lanes that were busy for long are to be given up: as many are as may be, and others may wait for their
    /// turns; or what is done while none is busy is due.
    var wantsLanes: Bool {
        progress.withLock { $0.busyLanes.count >= options.maximumLanes || $0.nextPruning <= .now }
    }

    /// What was known of the server when an exchange was begun.
    struct Turn {
        var resumptions: Int
        var pause: Int
        var failedSearches: Int
    }

    var turn: Turn {
        progress.withLock { progress in
            Turn(
                resumptions: progress.resumptions, pause: progress.pause.turn,
                failedSearches: progress.failedSearches)
        }
    }

    /// Takes note of what an exchange says for all others: that the server does not know the user, unless a user has
    /// signed in since it was begun; and that the server asks to be left alone, or has taken something up.
    func note(_ end: AttemptEnd, sentIn turn: Turn) {
        guard !end.isUnsent else { return }
        let now = core.now()
        progress.withLock { progress in
            if end.verdict.isSignedOut, progress.resumptions == turn.resumptions { progress.isSignedOut = true }
            if end.verdict.isServerInDoubt { progress.isServerInDoubt = true }
            switch end.verdict.effect {
            case _ where end.verdict.isThrottled:
                progress.pause.begin(at: now, inTurn: turn.pause) { count in
                    options.backoff.pause(after: count, asked: end.retryAfter, fraction: options.random())
                }
            case .rejected where end.verdict.mayWait: break
            case .took, .conflict, .rejected, .none(.notSignedIn), .unknown(.final):
                progress.pause.end(inTurn: turn.pause)
            case .none, .unknown: break
            }
        }
    }

    private func pruneIfDue(_ queue: MutationQueue) async throws {
        let isDue = progress.withLock { progress in
            guard progress.nextPruning <= .now else { return false }
            progress.nextPruning = .now + Self.pruningPause
            return true
        }
        if isDue { try await core.prune(queue) }
    }

    static let pruningPause = Duration.seconds(3600)
}
