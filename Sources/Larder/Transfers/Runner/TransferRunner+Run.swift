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
        try await lifecycle.run { try await work(untilEmpty: false) }
    }

    /// Carries out what can be, and returns when nothing is left that could be now or after a pause: all are done,
    /// cancelled, failed or paused. While there is no network, the credentials are not taken, or another runner works,
    /// it waits: cancel its task to end that.
    ///
    /// - Throws: As `run`.
    public func drain() async throws {
        try await lifecycle.drain { try await work(untilEmpty: true) }
    }

    /// How many that are done or cancelled are remembered.
    static let kept = 1000

    private func work(untilEmpty: Bool) async throws {
        defer { progress.withLock { $0 = Progress() } }
        let table = try core.intent.database().transfers
        try await lifecycle.alone(options.connectivity) { owner in
            try await table.recover(in: core.name)
            let carrier = TransferCarrier(runner: self, table: table, owner: owner)
            await withDiscardingTaskGroup { group in
                group.addTask { await carrier.clearLeftovers() }
                while let ids = await lifecycle.next({ try await look(table, untilEmpty) }) {
                    for id in ids { group.addTask { await self.carry(id, carrier) } }
                }
                group.cancelAll()
            }
            // What was under way goes on with the next runner; a parked partition's is left to its own.
            if !core.isParked { try await table.recover(in: core.name) }
            if !lifecycle.hasFailed { try await table.prune(keeping: Self.kept, in: core.name) }
        }
    }

    /// Takes one transfer as far as it comes.
    private func carry(_ id: UUID, _ carrier: TransferCarrier) async {
        // A task of its own, so that it can be ended by itself when somebody pauses or cancels the transfer.
        let task = Task {
            do { try await carrier.carry(id) } catch { lifecycle.end(because: error) }
        }
        progress.withLock { $0.tasks[id] = task }
        await withTaskCancellationHandler { await task.value } onCancel: { task.cancel() }
        progress.withLock { progress in
            progress.busy.remove(id)
            progress.tasks[id] = nil
            progress.begun.remove(id)
        }
        core.transfers.noteChanges(of: [id])
    }

    /// What to take up now.
    private func look(_ table: TransferTable, _ untilEmpty: Bool) async throws -> RunnerLifecycle.Look<[UUID]> {
        let now = core.now()
        try endStopped(table)
        if let left = refusal {
            lifecycle.set(.waitingForSignIn)
            return .wait(left)
        }
        guard options.connectivity.isConnected else {
            lifecycle.set(.offline)
            return .wait(nil)
        }
        lifecycle.set(.running)
        let busy = progress.withLock { $0.busy }
        let runnable = try table.runnable(in: core.name, now: now, limit: options.maximumTransfers + busy.count)
        if runnable.mustExpire {
            core.layers.remove(try await table.expire(in: core.name, now: now))
            core.intent.bell.ring()
            try core.transfers.noteOthers(core)
            return .wait(.zero)
        }
        // What cannot be cleared away must not keep all others waiting.
        let cleared = max(1, options.maximumTransfers / 4)
        let clearing = runnable.cancelled.count { busy.contains($0) }
        let cancelled = runnable.cancelled.filter { !busy.contains($0) }.shuffled().prefix(max(0, cleared - clearing))
        let taken = take(cancelled + runnable.ids)
        if !taken.isEmpty { return .begin(taken) }
        if busy.isEmpty, untilEmpty, runnable.isEmpty { return .end }
        return .wait(until: runnable.lookAgain, now: now)
    }

    /// Ends what somebody has paused or cancelled, in whatever process.
    private func endStopped(_ table: TransferTable) throws {
        let begun = progress.withLock { progress in progress.tasks.filter { progress.begun.contains($0.key) } }
        for (id, task) in begun where try table.find(id)?.state != .running { task.cancel() }
    }

    /// Those that are not under way, up to as many as may be, which are from now on.
    private func take(_ ids: [UUID]) -> [UUID] {
        progress.withLock { progress in
            var taken: [UUID] = []
            for id in ids where progress.busy.count < options.maximumTransfers {
                if progress.busy.insert(id).inserted { taken.append(id) }
            }
            return taken
        }
    }

    /// How long nothing is begun because the credentials were not taken; nil where that is not so.
    private var refusal: Duration? {
        guard let time = progress.withLock({ $0.refusedUntil }) else { return nil }
        let left = ContinuousClock.now.duration(to: time)
        return left > .zero ? left : nil
    }
}
