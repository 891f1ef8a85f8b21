import LarderFiles
import LarderLMDB

/// One compaction of a generation: copies a snapshot into a draft while others read and write, follows what they commit,
/// and at last, with the writer's lock, takes in the rest and gives the draft the generation's place.
///
/// A lock in the generation's folder keeps other compactions away meanwhile, in all processes. A process that empties or
/// replaces the generation needs no such lock: it removes the draft, and this compaction finds out.
///
/// `@unchecked Sendable`: its functions are called one after the other, by the task that compacts.
final class Compaction: @unchecked Sendable {
    /// After so many rounds, or when one takes less than this, the writers wait for the rest.
    private static let maximumRounds = 16
    private static let shortRound = Duration.milliseconds(2)

    private let old: Generation
    private let folder: GenerationFolder
    private let reached: (RecordCache.KillPoint) throws -> Void
    private var lock: LockFile?
    private var draft: GenerationDraft?
    private var contents: GenerationCopy?
    /// What the draft holds.
    private var snapshot: HeldSnapshot?
    /// The counters that the draft has.
    private var counters: GenerationState?
    /// The bytes of the data file when it began.
    private(set) var bytesBefore: Int64 = 0

    /// - Parameter reached: Called at each step; what it throws ends the work there.
    init(
        of old: Generation, in folder: GenerationFolder,
        _ reached: @escaping @Sendable (RecordCache.KillPoint) throws -> Void
    ) {
        (self.old, self.folder, self.reached) = (old, folder, reached)
    }

    deinit { abandon() }

    /// Removes what an unfinished compaction has written, and gives its lock back.
    func abandon() {
        draft?.abandon()
        (draft, contents, snapshot) = (nil, nil, nil)
        lock?.close()
        lock = nil
    }

    // MARK: Beginning

    /// Keeps other compactions away. Blocks its thread.
    ///
    /// - Returns: False where the generation is gone.
    func begin(until deadline: SuspendingClock.Instant) throws -> Bool {
        do {
            let file = try LockFile(
                path: old.environment.folder + "/compact.lock", mustWrite: true, in: folder.options.files)
            lock = file
            guard try file.lock(.exclusive, until: deadline) else {
                throw RecordError(
                    .busy, "The record cache is being compacted by \(file.note()); try again once it has finished")
            }
            file.setNote("pid \(processID), \(folder.options.label.filter { !$0.isNewline })")
            return true
        } catch {
            abandon()
            guard isOvertaken(error, until: deadline) else { throw error }
            return false
        }
    }

    /// What a crash has left, which loses its name; nil where the generation is superseded. To be called between writes:
    /// whoever makes a generation without the lock of compactions has the writer's lock.
    func leftovers(until deadline: SuspendingClock.Instant) throws -> [String]? {
        guard let transaction = try beginWrite(until: deadline) else { return nil }
        guard try !GenerationState.stored(transaction, old.tables).isSuperseded else { return nil }
        return folder.leftovers(above: old.number)
    }

    // MARK: While others write

    /// Copies a snapshot, and follows what is committed meanwhile, until little is left. Blocks its thread.
    ///
    /// - Parameters:
    ///   - leftovers: What a crash has left, to be removed first.
    ///   - deadline: Until which to wait, after a failure, for a writer that may have caused it.
    /// - Returns: False where another process, or another caller, was quicker.
    func copy(removing leftovers: [String], until deadline: SuspendingClock.Instant) throws -> Bool {
        do {
            // The writer need not wait for large files to be removed.
            folder.removeAll(leftovers)
            var snapshot = HeldSnapshot(try old.environment.beginRead())
            let state = try snapshot.read { transaction in
                bytesBefore = try transaction.statistics().fileSize
                return try GenerationState.stored(transaction, old.tables)
            }
            guard !state.isSuperseded else { return false }
            counters = state.forNextGeneration
            let first = try GenerationDraft(old.number + 1, in: folder)
            draft = first
            var contents = GenerationCopy(of: old, as: state.forNextGeneration)
            try snapshot.read { transaction in try contents.run(from: transaction, into: first, folder) }
            try reached(.copied)
            let packed = try first.packed()
            draft = packed
            try reached(.packed)
            for _ in 0..<Self.maximumRounds {
                let start = SuspendingClock.now
                let next = HeldSnapshot(try old.environment.beginRead())
                let count = try snapshot.read { earlier in
                    try next.read { later in try contents.follow(from: earlier, to: later, into: packed) }
                }
                snapshot = next
                if count > 0 { try packed.synchronize() }
                try reached(.followed)
                if start.duration(to: .now) < Self.shortRound { break }
            }
            (self.contents, self.snapshot) = (contents, snapshot)
            return true
        } catch {
            abandon()
            guard isOvertaken(error, until: deadline) else { throw error }
            return false
        }
    }

    /// Whether an error comes of another that superseded the generation meanwhile: the generation is closed then, or the
    /// draft was removed by the writer that is about to say so. A draft that loses its files while it is worked on may
    /// look damaged, foreign, or missing.
    private func isOvertaken(_ error: any Error, until deadline: SuspendingClock.Instant) -> Bool {
        if let error = error as? LMDBError, error.code == .closed { return true }
        do {
            guard let transaction = try beginWrite(until: deadline) else { return true }
            return try GenerationState.stored(transaction, old.tables).isSuperseded
        } catch {
            // The first error says more.
            return false
        }
    }

    /// Nil where the generation is closed.
    private func beginWrite(until deadline: SuspendingClock.Instant) throws(LMDBError) -> WriteTransaction? {
        do throws(LMDBError) { return try old.environment.beginWrite(deadline: deadline) } catch {
            guard error.code == .closed else { throw error }
            return nil
        }
    }

    // MARK: While writers wait

    /// Takes in what was committed since, and makes the draft the generation that follows. Its last commit says so.
    ///
    /// - Returns: False where another process, or another caller, was quicker.
    func finish(until deadline: SuspendingClock.Instant) throws -> Bool {
        guard let draft, var contents, let snapshot else { return false }
        guard let transaction = try beginWrite(until: deadline) else { return false }
        var state = try GenerationState.stored(transaction, old.tables)
        guard !state.isSuperseded else { return false }
        _ = try snapshot.read { earlier in try contents.follow(from: earlier, to: transaction, into: draft) }
        if old.mayHaveLostCommits.load(ordering: .relaxed) { state.startEpoch() }
        // A draft that is right as it is stays packed.
        if counters != state.forNextGeneration {
            try draft.fill { target, tables in try state.forNextGeneration.store(&target, tables) }
        }
        try reached(.written)
        guard try draft.place() else {
            throw RecordError(
                .storage, "Another process removed the new generation of the record cache before it was named")
        }
        self.draft = nil
        try reached(.named)
        try old.supersede(transaction, state, in: folder, deadline)
        return true
    }
}

extension GenerationState {
    /// The same, without the log of changes.
    fileprivate var forNextGeneration: GenerationState {
        var next = self
        next.firstChange = next.lastChange + 1
        return next
    }
}

/// A snapshot that is kept beyond a call, on whatever thread; used by one at a time.
private final class HeldSnapshot {
    private let transaction: ReadTransaction

    init(_ transaction: consuming ReadTransaction) { self.transaction = transaction }

    func read<Result>(_ body: (borrowing ReadTransaction) throws -> Result) throws -> Result { try body(transaction) }
}
