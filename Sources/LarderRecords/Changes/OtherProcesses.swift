internal import LarderLMDB
internal import Synchronization

/// What this process knows of the commits of others: the position up to which its observers have been told everything.
final class OtherProcesses: Sendable {
    private struct Known {
        /// The generation's identity, which is new whenever the cache was cleared or compacted.
        var generation: UInt64
        var position: ChangePosition
        /// Numbers after the position that this process committed, and told its observers of, itself.
        var own: Set<UInt64> = []
    }

    /// Nil until somebody asks for the first time; until then nothing is kept.
    private let known = Mutex<Known?>(nil)

    /// Takes note of a commit of this process.
    func committed(_ commit: Commit) {
        known.withLock { known in
            guard known?.generation == commit.generation, known?.position.epoch == commit.position.epoch else { return }
            // The log holds no more than this either: the next look says that everything may have changed.
            guard known?.own.count ?? 0 < Int(RecordChanges.logLength) else { return }
            known?.own.insert(commit.position.number)
        }
    }

    /// The commits of others since the last look, the oldest first; none at the first look.
    func look(
        _ generation: Generation, _ transaction: borrowing some Transaction & ~Copyable
    ) throws -> [Commit] {
        guard let state = try GenerationState.read(transaction, generation.tables) else { throw RecordError.damagedState }
        let position = ChangePosition(epoch: state.epoch, number: state.lastChange)
        let known = known.withLock { known in
            defer { known = Known(generation: generation.identity, position: position) }
            return known
        }
        guard let known, known.position != position || known.generation != generation.identity else { return [] }
        guard known.generation == generation.identity, known.position.epoch == state.epoch,
            known.position.number < state.lastChange, known.position.number + 1 >= state.firstChange
        else { return [everything(generation, position)] }
        var commits: [Commit] = []
        for number in (known.position.number + 1)...state.lastChange where !known.own.contains(number) {
            guard let stored = try transaction.get(number, in: generation.tables.changes) else {
                return [everything(generation, position)]
            }
            var changes = try stored.withUnsafeBytes { bytes throws(RecordError) in try ChangeSet(encoded: bytes) }
            changes.createdKeys = try keys(of: changes, generation, transaction)
            commits.append(
                Commit(
                    generation: generation.identity, changes: changes,
                    position: ChangePosition(epoch: state.epoch, number: number)))
        }
        return commits
    }

    private func everything(_ generation: Generation, _ position: ChangePosition) -> Commit {
        var changes = ChangeSet()
        changes.isEverything = true
        return Commit(generation: generation.identity, changes: changes, position: position)
    }

    /// The keys of entities that may have come into being: the log does not hold them, but each of them is a record that
    /// changed as a whole and is there now.
    private func keys(
        of changes: ChangeSet, _ generation: Generation, _ transaction: borrowing some Transaction & ~Copyable
    ) throws -> [String] {
        var keys: [String] = []
        for change in changes.fields where change.field == RecordField.any {
            guard let record = try generation.record(change.record, transaction), record.isEntity else { continue }
            keys.append(String(decoding: try record.key, as: UTF8.self))
        }
        return keys
    }
}

extension RecordCache {
    /// Tells the observers of everything that other processes have committed since this was called last.
    ///
    /// The first call only notes where the cache is, so it comes before the first read of what is watched. Observers are
    /// called on the writer's thread, in order with this process's own commits. Where the log does not reach back far
    /// enough, or the cache was cleared or rebuilt, they are told once that everything may be different.
    ///
    /// - Complexity: one lookup where nothing happened, otherwise O(n) in the changes.
    package func noticeOtherProcesses() async throws(RecordError) {
        let result = await withCheckedContinuation { continuation in
            writer.notice(for: self) { continuation.resume(returning: $0) }
        }
        try result.get()
    }
}
