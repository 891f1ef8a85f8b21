import LarderFiles
import LarderLMDB

/// What this process knows of the commits of others: the position up to which its observers have been told everything.
final class OtherProcesses: Sendable {
    private struct Known {
        /// The generation's identity, which is new whenever the cache was cleared.
        var generation: UInt64
        var position: ChangePosition
        /// Numbers after the position that this process committed, and told its observers of, itself.
        var own: Set<UInt64> = []
    }

    /// Nil until the cache is open.
    private let known = Locked<Known?>(nil)

    /// Takes note of a commit of this process.
    ///
    /// - Returns: Whether it is the first of its generation that the observers hear of: what they know of the numbers of
    ///   records is of no use any more.
    func committed(_ commit: Commit) -> Bool {
        known.withLock { known in
            guard let last = known, last.generation == commit.generation else {
                known = Known(generation: commit.generation, position: commit.position)
                return true
            }
            guard last.position.epoch == commit.position.epoch else { return false }
            // The log holds no more than this either: the next look says that everything may have changed.
            if last.own.count < Int(RecordChanges.logLength) { known?.own.insert(commit.position.number) }
            return false
        }
    }

    /// The commits of others since the last look, the oldest first; none at the first look, which opening makes.
    ///
    /// One look at a time: the writer's thread makes the later ones.
    func look(_ generations: Generations) throws -> [Commit] {
        let last = known.withLock { $0 }
        let (now, commits) = try generations.withSnapshot { generation, transaction in
            let state = try GenerationState.stored(transaction, generation.tables)
            let now = Known(generation: generation.identity, position: state.position)
            guard let last, last.generation != now.generation || last.position != now.position else {
                return (now, [Commit]())
            }
            // All are this process's own commits: nothing is to be told, also where a compaction has emptied the log.
            guard
                last.generation != now.generation || last.position.epoch != now.position.epoch
                    || UInt64(last.own.count) != now.position.number &- last.position.number
            else { return (now, [Commit]()) }
            guard last.generation == now.generation,
                let changes = try generation.reliableChanges(since: last.position, state, transaction)
            else {
                let everything = Commit(generation: now.generation, changes: .everything, position: now.position)
                return (now, [everything])
            }
            let commits = try changes.filter { !last.own.contains($0.number) }.map { number, set in
                var set = set
                set.createdKeys = KeyList(try generation.createdKeys(of: set, transaction))
                let position = ChangePosition(epoch: now.position.epoch, number: number)
                return Commit(generation: now.generation, changes: set, position: position)
            }
            return (now, commits)
        }
        known.withLock { $0 = now }
        return commits
    }
}

extension Generation {
    /// The keys of entities that a commit may have brought into being: the log does not hold them, but each of them is
    /// a record that changed as a whole and is there now.
    fileprivate func createdKeys(
        of changes: ChangeSet, _ transaction: borrowing ReadTransaction
    ) throws -> [String] {
        var keys: [String] = []
        for change in changes.fields where change.field == RecordField.any {
            guard let record = try record(change.record, transaction), record.isEntity else { continue }
            // Safe: the key is copied while the snapshot is borrowed in which it lies.
            unsafe keys.append(String(decoding: try record.key, as: UTF8.self))
        }
        return keys
    }
}

extension RecordCache {
    /// Tells the observers of everything that other processes have committed since this was called last, or since the
    /// cache was opened.
    ///
    /// Observers are called on the writer's thread, in order with this process's own commits. Where the log does not reach back
    /// far enough, or the cache was cleared or rebuilt, they are told once that everything may be different.
    ///
    /// - Complexity: one lookup where nothing happened, otherwise O(n) in the changes.
    package func noticeOtherProcesses() async throws(RecordError) {
        try await writer.betweenWrites(until: .now + options.lockTimeout) {
            for commit in try self.observers.others.look(self.generations) { self.observers.tell(commit) }
            self.layerTelling.tell()
        }
    }
}
