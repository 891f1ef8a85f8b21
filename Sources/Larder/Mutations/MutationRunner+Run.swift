internal import Foundation
internal import LarderOperations
public import ServiceLifecycle

extension MutationRunner: Service {
    /// Sends until the task is cancelled or the service is to shut down. Mutations that are in flight then are waited
    /// for, each as long as its exchange may take.
    ///
    /// - Throws: `.noTransport`; `.parked` once another partition is the current one, or the store is closed; `.notRunnable` where the lock cannot be made;
    ///   `operations.…` and `records.…` where the queue or the cache cannot be read or written: the disk is full, or
    ///   another program keeps the file locked past the deadline. Nothing is lost; run again when that is over.
    public func run() async throws {
        do {
            try await withTaskCancellationOrGracefulShutdownHandler {
                try await work(untilEmpty: false)
            } onCancelOrGracefulShutdown: {
                self.stop()
            }
        } catch { throw LarderError(translating: error) }
    }

    /// Sends what can be sent, and returns when nothing is left that could be sent now or after a pause: the queue is
    /// empty but for what was set aside and what waits for it. While nobody is signed in, there is no network, or another
    /// runner works, it waits: cancel its task to end that.
    ///
    /// - Throws: As `run`.
    public func drain() async throws {
        do {
            try await withTaskCancellationHandler { try await work(untilEmpty: true) } onCancel: { self.stop() }
        } catch { throw LarderError(translating: error) }
    }

    private func stop() {
        progress.withLock { $0.isStopping = true }
        core.intent.bell.ring()
    }

    private func work(untilEmpty: Bool) async throws {
        let isFirst = progress.withLock { progress in
            defer { progress.isWorking = true }
            return !progress.isWorking
        }
        guard isFirst else {
            throw LarderError(.notRunnable, "this runner works already; wait for it, or make another")
        }
        defer { progress.withLock { $0 = Progress() } }
        guard let transport else { throw LarderError(.noTransport, "the partition has no transport to send with") }
        // The threads are the runner's own: they may wait for the disk, and need not change for each step.
        let queue = try core.intent.database().mutations.blocking
        let lock = try RunnerLock(folder: core.folder, partition: core.name)
        let observation = options.connectivity.observe { [bell = core.intent.bell] _ in bell.ring() }
        defer { observation.stop() }
        guard try await acquire(lock) else { return }
        defer { lock.release() }
        let attempts = AttemptRunner(runner: self, queue: queue, transport: transport, owner: lock.owner)
        await withTaskExecutorPreference(executor) {
            await withDiscardingTaskGroup { group in
                group.addTask {
                    do { try await attempts.storeAnswers() } catch {
                        // They are in the queue; nobody is to wait for room among them any more.
                        attempts.answers.close()
                        self.end(because: error)
                    }
                }
                do { try await attempts.recover() } catch { end(because: error) }
                await send(attempts, queue, untilEmpty)
                attempts.answers.close()
            }
        }
        if let failure = progress.withLock({ $0.failure }) { throw failure }
    }

    /// Sends whatever can be sent, each lane in its order, until the runner is to stop.
    private func send(_ attempts: AttemptRunner, _ queue: MutationQueue, _ untilEmpty: Bool) async {
        await withDiscardingTaskGroup { group in
            while let heads = await next(queue, untilEmpty) {
                for head in heads {
                    group.addTask {
                        defer { self.free(head.lane) }
                        do { try await attempts.carryOut(head) } catch { self.end(because: error) }
                    }
                }
            }
        }
    }

    private func acquire(_ lock: RunnerLock) async throws -> Bool {
        while !isStopping {
            try core.requireCurrent()
            if try lock.tryAcquire() { return true }
            set(.standingBy)
            await core.intent.bell.wait(past: core.intent.bell.count, for: Self.standbyPause)
        }
        return false
    }

    /// As `look`. What goes wrong ends the work, as it does in an attempt.
    private func next(_ queue: MutationQueue, _ untilEmpty: Bool) async -> [Runnable.Head]? {
        do { return try await look(queue, untilEmpty) } catch {
            end(because: error)
            return nil
        }
    }

    /// Begins nothing more; what other lanes have in flight is waited for, so that their answers are not lost as well.
    private func end(because error: any Error) {
        progress.withLock { progress in
            progress.failure = progress.failure ?? error
            progress.isStopping = true
        }
        core.intent.bell.ring()
    }

    /// What to begin now; waits until there is something. Nil when the work is to end.
    private func look(_ queue: MutationQueue, _ untilEmpty: Bool) async throws -> [Runnable.Head]? {
        while !isStopping {
            try core.requireCurrent()
            let count = core.intent.bell.count
            let now = core.now()
            var pause = Self.lookPause
            if isSignedOut {
                set(.waitingForSignIn)
            } else if !options.connectivity.isConnected {
                set(.offline)
            } else {
                set(.running)
                let runnable = try runnable(queue, now)
                if runnable.mustExpire {
                    core.layers.remove(try await queue.expire(in: core.name, now: now))
                    core.intent.bell.ring()
                    continue
                }
                let heads = take(runnable.heads)
                if !heads.isEmpty { return heads }
                if progress.withLock(\.busyLanes.isEmpty) {
                    core.layers.tidy()
                    try await pruneIfDue(queue)
                    if untilEmpty, try !queue.hasMoving(in: core.name) { return nil }
                }
                if let again = runnable.lookAgain {
                    pause = min(pause, max(.milliseconds(1), .seconds(again.timeIntervalSince(now))))
                }
            }
            // Other processes queue as well, and ring no bell here.
            await core.intent.bell.wait(past: count, for: pause)
        }
        return nil
    }

    /// The heads of lanes, those first that come after the ones that were taken last; enough of them for all lanes that
    /// may be busy.
    private func runnable(_ queue: MutationQueue, _ now: Date) throws -> Runnable {
        let (last, busy) = progress.withLock { ($0.lastLane, $0.busyLanes.count) }
        // A lane that is busy may be between two attempts, and its head among those that are found.
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
            // What has come back since the runner looked whether somebody is signed in is among the heads.
            guard !progress.isSignedOut else { return [] }
            var taken: [Runnable.Head] = []
            for head in heads where progress.busyLanes.count < options.maximumLanes {
                if progress.busyLanes.insert(head.lane).inserted { taken.append(head) }
            }
            if let last = taken.last { progress.lastLane = last.lane }
            return taken
        }
    }

    private func free(_ lane: String) {
        _ = progress.withLock { $0.busyLanes.remove(lane) }
        core.intent.bell.ring()
    }

    /// Whether another mutation is to be begun where one has been answered.
    var goesOn: Bool {
        progress.withLock { !$0.isStopping && !$0.isSignedOut } && options.connectivity.isConnected
    }

    private var isStopping: Bool { progress.withLock { $0.isStopping } }
    private var isSignedOut: Bool { progress.withLock { $0.isSignedOut } }

    private func set(_ state: State) { progress.withLock { $0.state = state } }

    var resumptions: Int { progress.withLock { $0.resumptions } }

    /// Takes note that the server did not know the user of a request, unless somebody has signed in since it was made.
    func signedOut(after resumptions: Int) {
        progress.withLock { progress in
            if progress.resumptions == resumptions { progress.isSignedOut = true }
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
    private static let standbyPause = Duration.milliseconds(250)
    private static let lookPause = Duration.milliseconds(250)
}
