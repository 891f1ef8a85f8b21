internal import Foundation
internal import LarderOperations
public import ServiceLifecycle

extension TransferRunner: Service {
    /// Carries transfers out until the task is cancelled or the service is to shut down. What is under way then is left
    /// where it is, and goes on with the next runner.
    ///
    /// - Throws: `.parked` once another partition is the current one, or the store is closed; `.notRunnable` where the
    ///   lock cannot be made; `operations.…` where the database cannot be read or written. Nothing is lost; run again
    ///   when that is over.
    public func run() async throws {
        do {
            try await withTaskCancellationOrGracefulShutdownHandler {
                try await work(untilEmpty: false)
            } onCancelOrGracefulShutdown: {
                self.stop()
            }
        } catch { throw LarderError(translating: error) }
    }

    /// Carries out what can be, and returns when nothing is left that could be now or after a pause: all are done,
    /// cancelled, failed or paused. While there is no network, the credentials are not taken, or another runner works,
    /// it waits: cancel its task to end that.
    ///
    /// - Throws: As `run`.
    public func drain() async throws {
        do {
            try await withTaskCancellationHandler { try await work(untilEmpty: true) } onCancel: { self.stop() }
        } catch { throw LarderError(translating: error) }
    }

    static let lockSuffix = ".transfers"
    private static let standbyPause = Duration.milliseconds(100)
    private static let lookPause = Duration.milliseconds(250)
    /// How many that are done or cancelled are remembered.
    static let kept = 1000

    private func stop() {
        progress.withLock { $0.isStopping = true }
        core.transfers.bell.ring()
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
        let table = try core.intent.database().transfers
        let lock = try RunnerLock(folder: core.folder, partition: core.name, suffix: Self.lockSuffix)
        let observation = options.connectivity.observe { [bell = core.transfers.bell] _ in bell.ring() }
        defer { observation.stop() }
        guard try await acquire(lock) else { return }
        defer { lock.release() }
        try await table.recover(in: core.name)
        let carrier = TransferCarrier(runner: self, table: table, owner: lock.owner)
        await withDiscardingTaskGroup { group in
            group.addTask { await carrier.clearLeftovers() }
            while let ids = await next(table, untilEmpty) {
                for id in ids { group.addTask { await self.carry(id, carrier) } }
            }
            for task in self.progress.withLock({ $0.busy.values.compactMap(\.self) }) { task.cancel() }
            group.cancelAll()
        }
        // What was under way goes on with the next runner; a parked partition's is left to its own.
        if !core.isParked { try await table.recover(in: core.name) }
        if let failure = progress.withLock({ $0.failure }) { throw failure }
        try await table.prune(keeping: Self.kept, in: core.name)
    }

    private func acquire(_ lock: RunnerLock) async throws -> Bool {
        while !isStopping {
            try core.requireCurrent()
            if try lock.tryAcquire() { return true }
            set(.standingBy)
            await core.transfers.bell.wait(past: core.transfers.bell.count, for: Self.standbyPause)
        }
        return false
    }

    /// Takes one transfer as far as it comes.
    private func carry(_ id: UUID, _ carrier: TransferCarrier) async {
        // A task of its own, so that it can be ended by itself when somebody pauses or cancels the transfer.
        let task = Task {
            do { try await carrier.carry(id) } catch { end(because: error) }
        }
        let isStopping = progress.withLock { progress in
            progress.busy[id] = .some(task)
            return progress.isStopping
        }
        if isStopping { task.cancel() }
        await withTaskCancellationHandler { await task.value } onCancel: { task.cancel() }
        progress.withLock { progress in
            progress.busy.removeValue(forKey: id)
            progress.begun.remove(id)
        }
        core.transfers.noteChanges(of: [id])
    }

    /// Begins nothing more.
    private func end(because error: any Error) {
        progress.withLock { progress in
            progress.failure = progress.failure ?? error
            progress.isStopping = true
        }
        core.transfers.bell.ring()
    }

    /// What to take up now; waits until there is something. Nil when the work is to end.
    private func next(_ table: TransferTable, _ untilEmpty: Bool) async -> [UUID]? {
        do { return try await look(table, untilEmpty) } catch {
            end(because: error)
            return nil
        }
    }

    private func look(_ table: TransferTable, _ untilEmpty: Bool) async throws -> [UUID]? {
        while !isStopping {
            try core.requireCurrent()
            let count = core.transfers.bell.count
            let now = core.now()
            var pause = Self.lookPause
            try endStopped(table)
            if let left = refusal {
                set(.waitingForSignIn)
                pause = min(pause, left)
            } else if !options.connectivity.isConnected {
                set(.offline)
            } else {
                set(.running)
                let busy = progress.withLock { Set($0.busy.keys) }
                let runnable = try table.runnable(in: core.name, now: now, limit: options.maximumTransfers + busy.count)
                if runnable.mustExpire {
                    core.layers.remove(try await table.expire(in: core.name, now: now))
                    core.intent.bell.ring()
                    core.transfers.noteOthers(core)
                    continue
                }
                let taken = take(runnable.cancelled + runnable.ids)
                if !taken.isEmpty { return taken }
                if busy.isEmpty, untilEmpty, runnable.isEmpty { return nil }
                if let again = runnable.lookAgain {
                    pause = min(pause, max(.milliseconds(1), .seconds(again.timeIntervalSince(now))))
                }
            }
            // Other processes queue as well, and ring no bell here.
            await core.transfers.bell.wait(past: count, for: pause)
        }
        return nil
    }

    /// Ends what somebody has paused or cancelled, in whatever process.
    private func endStopped(_ table: TransferTable) throws {
        let begun = progress.withLock { progress in progress.begun.map { ($0, progress.busy[$0] ?? nil) } }
        for (id, task) in begun where try table.find(id)?.state != .running { task?.cancel() }
    }

    /// Those that are not under way, up to as many as may be, which are from now on.
    private func take(_ ids: [UUID]) -> [UUID] {
        progress.withLock { progress in
            var taken: [UUID] = []
            for id in ids where progress.busy.count < options.maximumTransfers && progress.busy[id] == nil {
                progress.busy[id] = .some(nil)
                taken.append(id)
            }
            return taken
        }
    }

    private var isStopping: Bool { progress.withLock { $0.isStopping } }

    /// How long nothing is begun because the credentials were not taken; nil where that is not so.
    private var refusal: Duration? {
        guard let time = progress.withLock({ $0.refusedUntil }) else { return nil }
        let left = ContinuousClock.now.duration(to: time)
        return left > .zero ? left : nil
    }

    private func set(_ state: State) { progress.withLock { $0.state = state } }
}
