import LarderFiles

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
    func committed(_ commit: Commit) {
        known.withLock { known in
            guard known?.generation == commit.generation, known?.position.epoch == commit.position.epoch else { return }
            // The log holds no more than this either: the next look says that everything may have changed.
            guard known?.own.count ?? 0 < Int(RecordChanges.logLength) else { return }
            known?.own.insert(commit.position.number)
        }
    }

    /// The commits of others since the last look, the oldest first; none at the first look, which opening makes.
    ///
    /// One look at a time: the writer's thread makes the later ones.
    func look(_ cache: RecordCache) throws(RecordError) -> [Commit] {
        let position = try cache.position
        let generation = cache.generations.current.identity
        guard let known = known.withLock({ $0 }) else {
            known.withLock { $0 = Known(generation: generation, position: position) }
            return []
        }
        guard known.position != position || known.generation != generation else { return [] }
        var commits: [Commit] = []
        // What is committed after `position` was read is told at the next look, if need be once more.
        var end = position
        if known.generation == generation, case .changes(let changes) = try cache.changes(since: known.position) {
            for (number, set) in changes where !known.own.contains(number) {
                var set = set
                set.createdKeys = KeyList(try cache.keys(of: set))
                let position = ChangePosition(epoch: position.epoch, number: number)
                commits.append(Commit(generation: generation, changes: set, position: position))
            }
            end.number = changes.last?.number ?? known.position.number
        } else {
            commits.append(Commit(generation: generation, changes: .everything, position: position))
        }
        self.known.withLock { $0 = Known(generation: generation, position: end) }
        return commits
    }
}

extension RecordCache {
    /// The keys of entities that a commit may have brought into being: the log does not hold them, but each of them is
    /// a record that changed as a whole and is there now.
    fileprivate func keys(of changes: ChangeSet) throws(RecordError) -> [String] {
        try translated {
            try generations.withSnapshot { (generation, transaction) throws in
                var keys: [String] = []
                for change in changes.fields where change.field == RecordField.any {
                    guard let record = try generation.record(change.record, transaction), record.isEntity else {
                        continue
                    }
                    // Safe: the key is copied while the snapshot is borrowed in which it lies.
                    unsafe keys.append(String(decoding: try record.key, as: UTF8.self))
                }
                return keys
            }
        }
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
            for commit in try self.observers.others.look(self) { self.observers.tell(commit) }
            self.layerTelling.tell()
        }
    }
}
