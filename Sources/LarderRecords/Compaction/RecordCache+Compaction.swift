import Dispatch
import LarderFiles
import LarderLMDB

extension RecordCache {
    /// Writes the cache anew, without what is free, and goes on with that.
    ///
    /// Answers, watchers and noted positions stay right: records and fields keep their numbers, and nothing is
    /// published. The log of changes starts anew: a position before the last one reads as everything. Reads and writes
    /// go on meanwhile, in all processes; writes wait at the end, for as long as it takes to copy what the last few
    /// commits have changed. Other processes notice at their next transaction.
    ///
    /// - Parameter deadline: Until which another compaction is waited for; and for as long as that is from now, the
    ///   writers are waited for at the end.
    /// - Throws: `.busy` at a deadline, or where others compact or clear the cache again and again.
    /// - Complexity: O(n) in the cache's size; takes as much disk again until it is done, and for what is written
    ///   meanwhile.
    @discardableResult
    package func compact(deadline: SuspendingClock.Instant? = nil) async throws(RecordError) -> CompactionReport {
        try await compact(deadline: deadline) { _ in }
    }

    /// - Parameter reached: Called at each step; what it throws ends the work there. For tests.
    func compact(
        deadline: SuspendingClock.Instant? = nil, reached: @escaping @Sendable (RecordCache.KillPoint) throws -> Void
    ) async throws(RecordError) -> CompactionReport {
        try checkWritable()
        let deadline = deadline ?? .now + options.lockTimeout
        let patience = max(.zero, SuspendingClock.now.duration(to: deadline))
        var retries = Retries(until: deadline)
        repeat {
            let old = generations.current
            let compaction = Compaction(of: old, in: generations.folder, reached)
            let isDone = try await run(compaction, deadline, patience) { [cache = self] in
                try reached(.superseded)
                try cache.generations.reopen(after: old)
                try reached(.switched)
            }
            let report: CompactionReport? = try translated {
                guard isDone else {
                    try generations.reopen(after: old)
                    return nil
                }
                return try generations.withSnapshot { generation, transaction in
                    CompactionReport(
                        bytesBefore: compaction.bytesBefore, bytesAfter: try transaction.statistics().fileSize,
                        generation: generation.number)
                }
            }
            if let report { return report }
        } while retries.goOn()
        throw RecordError(.busy, "The record cache was superseded again and again while it was compacted")
    }

    /// - Parameters:
    ///   - patience: How long to wait for the writers at the end.
    ///   - goOn: Goes on with the new generation.
    /// - Returns: False where another process, or another caller, was quicker.
    private func run(
        _ compaction: Compaction, _ deadline: SuspendingClock.Instant, _ patience: Duration,
        _ goOn: @escaping @Sendable () throws -> Void
    ) async throws(RecordError) -> Bool {
        guard try await blocking({ try compaction.begin(until: deadline) }),
            let leftovers = try await writer.betweenWrites(
                until: deadline, { try compaction.leftovers(until: deadline) }),
            try await blocking({ try compaction.copy(removing: leftovers, until: .now + patience) })
        else { return false }
        return try await writer.betweenWrites(until: .now + patience) { [folder = options.watchedFolder] in
            defer { compaction.abandon() }
            let notice = FolderNotice(folder)
            guard try compaction.finish(until: .now + patience) else { return false }
            // The old generation is closed only once nothing has a snapshot of it.
            compaction.abandon()
            try goOn()
            notice.tell()
            return true
        }
    }

    /// Runs what takes long on a thread that is none of Swift's.
    private func blocking<Answer: Sendable>(
        _ body: @escaping @Sendable () throws -> Answer
    ) async throws(RecordError) -> Answer {
        let result: Result<Answer, RecordError> = await withCheckedContinuation { continuation in
            DispatchQueue(label: "\(options.label).records.compaction", qos: .utility).async {
                do throws(RecordError) { continuation.resume(returning: .success(try translated(body))) } catch {
                    continuation.resume(returning: .failure(error))
                }
            }
        }
        return try result.get()
    }

    /// Empties the cache: what was in it is gone as soon as nothing reads it any more, disk space included.
    ///
    /// Observers hear of it as a change of everything. Numbers start anew and so does the epoch: dependencies and
    /// positions from before tell nothing any more. What is known of mutations stays: their optimistic layers must not
    /// come back, and their answers must not be written once more.
    @discardableResult
    package func clear(deadline: SuspendingClock.Instant? = nil) async throws(RecordError) -> Commit {
        try await clear(deadline: deadline) { _ in }
    }

    func clear(
        deadline: SuspendingClock.Instant? = nil, reached: @escaping @Sendable (RecordCache.KillPoint) throws -> Void
    ) async throws(RecordError) -> Commit {
        let deadline = deadline ?? .now + options.lockTimeout
        return try await writer.betweenWrites(until: deadline) { [cache = self] in
            let notice = FolderNotice(cache.options.watchedFolder)
            let state =
                try cache.generations.retrying(to: "clear it", until: deadline) { old in
                    guard let state = try cache.makeEmpty(after: old, deadline, reached) else { return nil }
                    try reached(.superseded)
                    try cache.generations.reopen(after: old)
                    try reached(.switched)
                    return state
                } as GenerationState
            notice.tell()
            let commit = Commit(generation: state.numbering, changes: .everything, position: state.position)
            cache.observers.publish(commit)
            return commit
        }
    }

    /// Makes an empty generation under the writer's lock of the current one, and supersedes that.
    ///
    /// - Returns: The counters of the new one; nil if another process was quicker.
    private func makeEmpty(
        after old: Generation, _ deadline: SuspendingClock.Instant,
        _ reached: (RecordCache.KillPoint) throws -> Void
    ) throws -> GenerationState? {
        let transaction = try old.environment.beginWrite(deadline: deadline)
        let state = try GenerationState.stored(transaction, old.tables)
        guard !state.isSuperseded else { return nil }
        let folder = generations.folder
        folder.removeLeftovers(above: old.number)
        let fresh = GenerationState.fresh()
        var draft = try GenerationDraft(old.number + 1, in: folder)
        do {
            try draft.fill { transaction, tables in try folder.store(fresh, &transaction, tables) }
            var copy = GenerationCopy(of: old, as: fresh)
            try copy.copyApplied(from: transaction, into: draft)
            draft = try draft.packed()
            try reached(.written)
        } catch {
            draft.abandon()
            throw error
        }
        guard try draft.place() else {
            throw RecordError(
                .storage, "Another process removed the new generation of the record cache before it was named")
        }
        try reached(.named)
        try old.supersede(transaction, state, in: folder, deadline)
        return fresh
    }
}

extension Generation {
    /// Makes the last commit of a generation, which says that the next has taken its place; durable on return. Where that
    /// fails, the next is removed.
    func supersede(
        _ transaction: consuming WriteTransaction, _ state: GenerationState, in folder: GenerationFolder,
        _ deadline: SuspendingClock.Instant
    ) throws {
        var state = state
        do {
            state.isSuperseded = true
            try state.store(&transaction, tables)
        } catch {
            folder.removeLeftovers(above: number)
            throw error
        }
        do {
            // As soon as this is read, by whomever, the old generation is closed.
            try transaction.commit(synchronizing: true)
        } catch {
            // Unless the commit that failed has done it after all. Under the writer's lock, or it could be another
            // process's by now. What cannot be removed now goes with the next compaction.
            try? environment.write(deadline: deadline) { transaction in
                guard try !GenerationState.stored(transaction, tables).isSuperseded else { return }
                folder.removeLeftovers(above: number)
            }
            throw error
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
        /// A compaction has copied a snapshot into a draft. The old generation is current, and is written to.
        case copied
        /// The draft was written once more, without what is free in it.
        case packed
        /// The draft has what was committed up to some moment; may come several times.
        case followed
        /// The new generation is written, under a name of no meaning. The old one is current, and its writers wait.
        case written
        /// It has its number. The old one is current, and the new one will be made once more.
        case named
        /// The old one says that it is superseded, durably. The new one is current.
        case superseded
        /// This process goes on with the new one, and the old one is removed.
        case switched

        /// The steps of `clear`.
        package static let ofClearing: [KillPoint] = [.written, .named, .superseded, .switched]
    }
}
