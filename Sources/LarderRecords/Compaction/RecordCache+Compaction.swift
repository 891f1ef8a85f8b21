import LarderLMDB

extension RecordCache {
    /// Writes the cache anew, without what is free, and goes on with that.
    ///
    /// Answers, watchers and noted positions stay right: records and fields keep their numbers, and nothing is
    /// published. The log of changes starts anew: a position before the last one reads as everything. Reads go on
    /// meanwhile; writes wait. Other processes notice at their next transaction.
    ///
    /// - Complexity: O(n) in the cache's size; takes as much disk again until it is done.
    @discardableResult
    package func compact(deadline: ContinuousClock.Instant? = nil) async throws(RecordError) -> CompactionReport {
        try await compact(deadline: deadline) { _ in }
    }

    /// - Parameter reached: Called at each step; what it throws ends the work there. For tests.
    func compact(
        deadline: ContinuousClock.Instant? = nil, reached: @escaping @Sendable (RecordCache.KillPoint) throws -> Void
    ) async throws(RecordError) -> CompactionReport {
        let deadline = deadline ?? .now + options.lockTimeout
        return try await writer.betweenWrites(until: deadline) { [cache = self] in
            let (bytesBefore, _) = try cache.supersede(deadline, reached) { (old, draft, transaction, state) throws in
                var next = state
                next.firstChange = next.lastChange + 1
                var copy = GenerationCopy(of: old, as: next)
                try copy.run(from: transaction, into: draft, cache.generations.folder)
                return next
            }
            return try cache.generations.withSnapshot { generation, transaction in
                CompactionReport(
                    bytesBefore: bytesBefore, bytesAfter: try transaction.statistics().fileSize,
                    generation: generation.number)
            }
        }
    }

    /// Empties the cache: what was in it is gone as soon as nothing reads it any more, disk space included.
    ///
    /// Observers hear of it as a change of everything. Numbers start anew and so does the epoch: dependencies and
    /// positions from before tell nothing any more. What is known of mutations stays: their optimistic layers must not
    /// come back, and their answers must not be written once more.
    @discardableResult
    package func clear(deadline: ContinuousClock.Instant? = nil) async throws(RecordError) -> Commit {
        try await clear(deadline: deadline) { _ in }
    }

    func clear(
        deadline: ContinuousClock.Instant? = nil, reached: @escaping @Sendable (RecordCache.KillPoint) throws -> Void
    ) async throws(RecordError) -> Commit {
        let deadline = deadline ?? .now + options.lockTimeout
        return try await writer.betweenWrites(until: deadline) { [cache = self] in
            let (_, state) = try cache.supersede(deadline, reached) { (old, draft, transaction, _) throws in
                let fresh = GenerationState.fresh()
                let folder = cache.generations.folder
                try draft.fill { transaction, tables in try folder.store(fresh, &transaction, tables) }
                var copy = GenerationCopy(of: old, as: fresh)
                try copy.copyApplied(from: transaction, into: draft)
                return fresh
            }
            let commit = Commit(generation: state.numbering, changes: .everything, position: state.position)
            cache.observers.publish(commit)
            return commit
        }
    }

    private typealias Build = (
        Generation, GenerationDraft, borrowing WriteTransaction, GenerationState
    ) throws -> GenerationState

    /// Makes the next generation under the writer's lock of this one, and goes on with it.
    ///
    /// - Returns: The size of the old one in bytes, and the counters of the new one.
    private func supersede(
        _ deadline: ContinuousClock.Instant, _ reached: (RecordCache.KillPoint) throws -> Void, _ build: Build
    ) throws -> (bytesBefore: Int64, new: GenerationState) {
        try generations.retrying(to: "compact or clear it", until: deadline) { old in
            guard let result = try supersede(old, deadline, reached, build) else { return nil }
            try reached(.superseded)
            try generations.reopen(after: old)
            try reached(.switched)
            return result
        }
    }

    /// Nil if another process was quicker.
    private func supersede(
        _ old: Generation, _ deadline: ContinuousClock.Instant, _ reached: (RecordCache.KillPoint) throws -> Void,
        _ build: Build
    ) throws -> (bytesBefore: Int64, new: GenerationState)? {
        var transaction = try old.environment.beginWrite(deadline: deadline)
        var state = try GenerationState.stored(transaction, old.tables)
        guard !state.isSuperseded else { return nil }
        let bytesBefore = try transaction.fileSize()
        if old.mayHaveLostCommits.load(ordering: .relaxed) { state.startEpoch() }
        generations.folder.removeLeftovers(above: old.number)
        let draft = try GenerationDraft(old.number + 1, in: generations.folder)
        let next: GenerationState
        do {
            next = try build(old, draft, transaction, state)
            try reached(.written)
        } catch {
            draft.abandon()
            throw error
        }
        guard try draft.finish(packs: true) else {
            throw RecordError(
                .storage, "Another process removed the new generation of the record cache before it was named")
        }
        try reached(.named)
        do {
            state.isSuperseded = true
            try state.store(&transaction, old.tables)
        } catch {
            generations.folder.removeLeftovers(above: old.number)
            throw error
        }
        do {
            // As soon as this is read, by whomever, the old generation is closed.
            try transaction.commit(synchronizing: true)
        } catch {
            removeLeftovers(above: old, deadline)
            throw error
        }
        return (bytesBefore, next)
    }

    /// Removes the generation that was to supersede this one, unless the commit that failed has done it after all. What
    /// cannot be removed now goes with the next compaction.
    private func removeLeftovers(above old: Generation, _ deadline: ContinuousClock.Instant) {
        // Under the writer's lock, or it could be another process's by now.
        try? old.environment.write(deadline: deadline) { transaction in
            guard try !GenerationState.stored(transaction, old.tables).isSuperseded else { return }
            generations.folder.removeLeftovers(above: old.number)
        }
    }
}

/// What a compaction did.
package struct CompactionReport: Sendable, Hashable {
    /// The bytes of the data file.
    package let bytesBefore: Int64
    package let bytesAfter: Int64
    /// The number of the generation that is current now.
    package let generation: Int
}

extension RecordCache {
    /// A step that was just done; a test may kill the program there. The old generation is left then, or
    /// the new one, whole.
    package enum KillPoint: String, Sendable, CaseIterable {
        /// The new generation is written, under a name of no meaning. The old one is current.
        case written
        /// It has its number. The old one is current, and the new one will be made once more.
        case named
        /// The old one says that it is superseded, durably. The new one is current.
        case superseded
        /// This process goes on with the new one, and the old one is removed.
        case switched
    }
}
