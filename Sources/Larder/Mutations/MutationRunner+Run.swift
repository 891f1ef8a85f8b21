internal import Foundation
internal import LarderOperations
public import ServiceLifecycle

extension MutationRunner: Service {
    /// Sends until the task is cancelled or the service is to shut down. Mutations that are in flight then are waited
    /// for, each as long as its exchange may take.
    ///
    /// - Throws: `.noTransport`; `.parked` once the store is closed; `.notRunnable` where the lock cannot be made;
    ///   `operations.…` where the queue cannot be read or written.
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
    /// empty but for what was set aside and what waits for it.
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
        guard let transport else { throw LarderError(.noTransport, "the partition has no transport to send with") }
        let queue = try core.intent.database().mutations
        let lock = try RunnerLock(folder: core.folder, partition: core.name)
        let observation = options.connectivity.observe { [bell = core.intent.bell] _ in bell.ring() }
        defer {
            observation.stop()
            progress.withLock { $0 = Progress() }
        }
        guard try await acquire(lock) else { return }
        defer { lock.release() }
        let attempts = AttemptRunner(runner: self, queue: queue, transport: transport, owner: lock.owner)
        try await attempts.recover()
        try await withThrowingDiscardingTaskGroup { group in
            while let heads = try await next(queue, untilEmpty) {
                for head in heads {
                    group.addTask {
                        defer { self.free(head.lane) }
                        try await attempts.carryOut(head)
                    }
                }
            }
        }
    }

    private func acquire(_ lock: RunnerLock) async throws -> Bool {
        while !isStopping {
            if try lock.tryAcquire() { return true }
            set(.standingBy)
            await core.intent.bell.wait(past: core.intent.bell.count, for: Self.standbyPause)
        }
        return false
    }

    /// What to begin now; waits until there is something. Nil when the work is to end.
    private func next(_ queue: MutationQueue, _ untilEmpty: Bool) async throws -> [Runnable.Head]? {
        while !isStopping {
            let count = core.intent.bell.count
            let now = core.now()
            var pause = Self.lookPause
            if isSignedOut {
                set(.waitingForSignIn)
            } else if !options.connectivity.isConnected {
                set(.offline)
            } else {
                set(.running)
                let runnable = try queue.runnable(in: core.name, now: now)
                if runnable.mustExpire {
                    try core.layers.remove(try await queue.expire(in: core.name, now: now))
                    core.intent.bell.ring()
                    continue
                }
                let heads = take(runnable.heads)
                if !heads.isEmpty { return heads }
                try core.layers.tidy()
                if untilEmpty, try isEmpty(queue) { return nil }
                if let again = runnable.lookAgain {
                    pause = min(pause, max(.milliseconds(1), .seconds(again.timeIntervalSince(now))))
                }
            }
            // Other processes queue as well, and ring no bell here.
            await core.intent.bell.wait(past: count, for: pause)
        }
        return nil
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
            return taken
        }
    }

    private func free(_ lane: String) {
        _ = progress.withLock { $0.busyLanes.remove(lane) }
        core.intent.bell.ring()
    }

    private func isEmpty(_ queue: MutationQueue) throws -> Bool {
        guard progress.withLock({ $0.busyLanes.isEmpty }) else { return false }
        return try queue.list(MutationFilter(partition: core.name, states: [.pending, .inFlight, .acknowledged]))
            .allSatisfy(\.isStalled)
    }

    private var isStopping: Bool { progress.withLock { $0.isStopping } }
    private var isSignedOut: Bool { progress.withLock { $0.isSignedOut } }

    private func set(_ state: State) { progress.withLock { $0.state = state } }

    func signedOut() { progress.withLock { $0.isSignedOut = true } }

    private static let standbyPause = Duration.milliseconds(250)
    private static let lookPause = Duration.milliseconds(250)
}
