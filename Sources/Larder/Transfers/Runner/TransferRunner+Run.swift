import Foundation
import LarderOperations
import ServiceLifecycle

extension TransferRunner: Service {
    /// Carries transfers out until the task is cancelled or the service is to shut down. Transfers under way are left
    /// where they are, and go on with the next runner.
    ///
    /// - Throws: `.parked` once another partition is the current one, or the store is closed; `.notRunnable` where the
    ///   lock cannot be made; `operations.…` where the database cannot be read or written. Nothing is lost; run again
    ///   when that is over.
    package func run() async throws {
        try await lifecycle.run { try await work(untilEmpty: false) }
    }

    /// Carries out what can be, and returns when nothing is left that could be now or after a pause: all are done,
    /// cancelled, failed or paused. While there is no network, the credentials are not taken, or another runner works,
    /// it waits: cancel its task to end that. A runner without `Options.background` leaves what an executor outside of
    /// the program may have.
    ///
    /// What cancelled and failed ones have left behind is cleared away as well. It is not waited for beyond one try
    /// each, and not for longer than `Options.timeout` after the last transfer: what then is left at the storage, or in
    /// the store's folder, is for the next runner. Cancelled ones of which something is left are `.cancelling` still.
    ///
    /// - Throws: As `run`.
    package func drain() async throws {
        try await lifecycle.drain { try await work(untilEmpty: true) }
    }

    /// How many that are done or cancelled are remembered.
    static let kept = 1000
    /// After so many ended transfers the runner forgets the ones that are not to be kept.
    private static let endsBetweenPrunes = 100
    /// How many transfers are cleared away side by side, beside the ones that are carried out.
    private static let mostClearing = 2

    private func work(untilEmpty: Bool) async throws {
        defer { progress.withLock { $0 = Progress() } }
        let table = try core.operationsStore.database().transfers
        try await lifecycle.alone(options.connectivity) { [self] owner in
            try await core.settingDamagedAside {
                try await recover(table)
                try await table.prune(keeping: Self.kept, in: core.name)
            }
            try await table.noteServed(in: core.name, having: Set(storages.keys))
            try core.transfers.noteOthers(core)
            let context = try context(table)
            core.transfers.setHold { self.hold(on: $0, context.connections) }
            defer { core.transfers.setHold(nil) }
            await withDiscardingTaskGroup { group in
                group.addTask { await context.sweep() }
                while let ids = await lifecycle.next({ try await look(context, untilEmpty) }) {
                    for id in ids { group.addTask { await self.carry(id, context, owner) } }
                }
                group.cancelAll()
            }
            // Transfers that were under way go on with the next runner; a parked partition's are left to its own.
            if !core.isParked { try await recover(table) }
            if !lifecycle.hasFailed { try await table.prune(keeping: Self.kept, in: core.name) }
        }
    }

    private func context(_ table: TransferTable) throws -> TransferContext {
        guard let storage = storages[nil] ?? storages.values.first else {
            throw LarderError(.notRunnable, "The runner of transfers has no storage; name one where it is made")
        }
        return TransferContext(
            core: core, table: table, storage: storage, options: options,
            connections: Connections(limit: options.connectionsPerHost) { [options] in
                options.pause(after: $0, asked: $1)
            }, pacer: Pacer(bandwidth: options.bandwidth)
        ) { step, transfer in
            self.options.reached(step)
            if step == .partNoted { self.noteArrival(of: transfer) }
        }
    }

    private func recover(_ table: TransferTable) async throws(OperationsError) {
        try await table.recover(
            in: core.name, now: core.now(), puttingLasts: options.idle.seconds,
            completingLasts: options.completionTimeout.seconds)
    }

    /// Takes one transfer as far as it comes.
    private func carry(_ id: UUID, _ context: TransferContext, _ owner: String) async {
        // A task of its own, so that it can be ended by itself when a caller pauses or cancels the transfer.
        let task = Task {
            do {
                try await carryOut(id, context, owner: owner)
                let ended = progress.withLock { progress in
                    progress.ended += 1
                    return progress.ended
                }
                if ended.isMultiple(of: Self.endsBetweenPrunes) {
                    try await context.table.prune(keeping: Self.kept, in: core.name)
                }
            } catch { await end(id, context.table, because: error) }
        }
        progress.withLock { $0.tasks[id] = task }
        await withTaskCancellationHandler {
            await task.value
        } onCancel: {
            task.cancel()
        }
        progress.withLock { progress in
            progress.busy.remove(id)
            progress.clearing.remove(id)
            progress.tasks[id] = nil
            progress.begun[id] = nil
        }
        core.transfers.noteChanges(of: [id])
    }

    /// Ends the runner, unless a damaged row was the cause: then the row is set aside, and this transfer is pending
    /// again where the row is another's.
    private func end(_ id: UUID, _ table: TransferTable, because error: any Error) async {
        do {
            guard try await core.hasSetAside(after: error) else { return lifecycle.end(because: error) }
            if let found = try table.find(id), found.state == .running { try await table.release(found.attempt) }
        } catch { lifecycle.end(because: error) }
    }

    /// What to take up now.
    private func look(_ context: TransferContext, _ untilEmpty: Bool) async throws -> RunnerLifecycle.Look<[UUID]> {
        let (now, table) = (core.now(), context.table)
        try endStopped(table)
        try await endStrays(table)
        var refusals = refusals
        if !refusals.isEmpty, try lifecycle.hasNewSession() {
            resume()
            refusals = [:]
        }
        let holds = Progress.Holds(count: context.connections.holds, refused: Set(refusals.keys))
        if progress.withLock({ progress in
            defer { progress.holds = holds }
            return progress.holds != holds
        }) {
            // The transfers that wait for a host, or a storage, have another reason now.
            core.transfers.notifyAll()
        }
        let refusalEnd = refusals.values.min()
        if let refusalEnd, refusals.count == storages.count {
            lifecycle.set(.waitingForSignIn)
            return .wait(refusalEnd)
        }
        guard options.connectivity.isConnected else {
            lifecycle.set(.offline)
            let isIdle = progress.withLock { $0.busy.isEmpty }
            return isIdle && !hasStrays ? .rest : .wait(nil)
        }
        lifecycle.set(.running)
        // First: what ends meanwhile may be pending again.
        let (busy, clearing) = progress.withLock { ($0.busy, $0.clearing) }
        let runnable = try table.runnable(
            in: core.name, now: now, limit: options.maximumTransfers + busy.count, storages: Set(storages.keys),
            resting: holds.refused, leavingHandedOver: options.background == nil
        ) {
            isHeld($0, ObjectLocation(bucket: $2, key: $3, region: $4, storage: $1), context.connections)
        }
        if runnable.mustNoteStorages {
            try await table.noteUnserved(in: core.name, having: Set(storages.keys), now: now)
            try core.transfers.noteOthers(core)
            core.transfers.notifyAll()
        }
        if runnable.mustExpire {
            core.layers.remove(try await table.expire(in: core.name, now: now))
            core.operationsStore.changeSignal.notify()
            try core.transfers.noteOthers(core)
            return .wait(.zero)
        }
        let taken = take(runnable)
        if !taken.isEmpty { return .begin(taken) }
        let isResting = runnable.isEmpty && refusals.isEmpty && busy == clearing
        if untilEmpty, isOver(runnable, isResting: isResting) { return .end }
        let ends = [runnable.lookAgain, refusalEnd.map { now.addingTimeInterval($0.seconds) }]
        let end = ends.compactMap(\.self).min()
        let hasNothing = runnable.isEmpty && runnable.remains.isEmpty && busy.isEmpty
        if hasNothing, end == nil, !untilEmpty, !hasStrays { return .rest }
        return .wait(until: end, now: now)
    }

    /// Whether transfers outside of this program could not be ended yet.
    private var hasStrays: Bool { options.background != nil && progress.withLock { $0.strayVersion == nil } }

    /// Whether nothing is to be begun of an object now: its host is left alone, or an upload of the same key that was
    /// paused or cancelled is still under way.
    private func isHeld(
        _ kind: TransferDraft.Kind, _ location: ObjectLocation, _ connections: Connections
    ) -> Bool {
        kind == .upload && isUploading(to: location) || hold(on: location, connections) != nil
    }

    /// Why nothing is begun at the place of an object; nil where that is not so.
    private func hold(on location: ObjectLocation, _ connections: Connections) -> TransferBook.Hold? {
        if refusals.keys.contains(location.storage) { return .refused }
        return storages[location.storage].flatMap { connections.left(of: $0.host(of: location)) }.map { .host($0) }
    }

    /// Whether no transfer is left to carry out, and each one that is to be cleared away was tried, or the time for
    /// that is over.
    private func isOver(_ runnable: RunnableTransfers, isResting: Bool) -> Bool {
        progress.withLock { progress in
            guard isResting else {
                progress.restSince = nil
                return false
            }
            let since = progress.restSince ?? .now
            progress.restSince = since
            return since.duration(to: .now) > options.timeout
                || progress.clearing.isEmpty && runnable.remains.allSatisfy(progress.wasTried)
        }
    }

    /// Ends the tasks of transfers that a caller has paused or cancelled, in whatever process.
    private func endStopped(_ table: TransferTable) throws {
        let begun = progress.withLock { progress in progress.tasks.filter { progress.begun.keys.contains($0.key) } }
        for (id, task) in begun where try table.find(id)?.state != .running { task.cancel() }
    }

    /// Transfers that are not under way, up to as many as may be; they count as under way from now on. A transfer that
    /// cannot be cleared away keeps no other waiting.
    private func take(_ runnable: RunnableTransfers) -> [UUID] {
        progress.withLock { progress in
            var taken: [UUID] = []
            for id in runnable.ids where progress.busy.count - progress.clearing.count < options.maximumTransfers {
                if progress.busy.insert(id).inserted { taken.append(id) }
            }
            for id in runnable.remains where progress.clearing.count < Self.mostClearing && progress.mayClear(id) {
                guard progress.busy.insert(id).inserted else { continue }
                progress.clearing.insert(id)
                taken.append(id)
            }
            return taken
        }
    }

    /// The storages that are left alone because they did not take the credentials, with how long.
    private var refusals: [String?: Duration] {
        let now = SuspendingClock.now
        return progress.withLock { $0.refusals.compactMapValues { $0.until > now ? now.duration(to: $0.until) : nil } }
    }
}
