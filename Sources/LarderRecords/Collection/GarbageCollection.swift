import LarderGraphQL
import LarderLMDB

/// One collection of garbage: marks what is needed, slice by slice, each on a snapshot of its own; then removes what
/// is not, in short writes.
///
/// Others write meanwhile, in all processes. So every slice first takes in what the log says was changed since the
/// slice before, and so does every write that removes something, in its own transaction: by then all that is needed is
/// marked. What was written while the collection goes on stays, whether it is needed or not.
///
/// Every commit removes only what nothing needs. A collection that is killed leaves a smaller cache.
///
/// Safe: it is not guarded, but the task that runs the collection waits while the writer's thread is in `remove`. Keys
/// and stored bytes are copied or counted while the cursors exist by which they were found, and no write is made then.
final class GarbageCollection: @unchecked Sendable {
    /// What came of a slice, or of a write.
    enum Outcome {
        case done
        /// There is more to be marked first.
        case behind
        /// The log does not tell what was changed, or records have other numbers now.
        case outdated
    }

    private let roots: any CollectionRoots
    private let layers: LayerStack
    /// How long a slice may take, roughly.
    private let sliceTime: Duration
    /// How much is removed in one write at most. Each write waits for the disk, whatever it removes; and what changed
    /// more than this is not told one by one.
    static let candidateLimit = ChangeSet.storedLimit * 3 / 4
    /// How many layers are read at a time.
    static let layerLimit = 256

    private var marking = Marking()
    /// Nil before the first slice.
    private var numbering: UInt64?
    /// The last change that was taken in.
    private var position = ChangePosition(epoch: 0, number: 0)
    /// The layers whose objects were taken in.
    private var layerSet: LayerSet?
    /// Looked into in a write transaction that may not have been committed.
    private(set) var uncertain: [RecordField] = []
    private var candidates: [Candidate] = []
    /// How many of the candidates the last write has dealt with, and what it removed.
    private(set) var handled = 0
    private var removed = GarbageReport()
    private(set) var outcome = Outcome.outdated
    private(set) var report = GarbageReport()

    init(keeping roots: any CollectionRoots, under layers: LayerStack, sliceTime: Duration) {
        (self.roots, self.layers, self.sliceTime) = (roots, layers, sliceTime)
    }

    var progress: GarbageProgress {
        GarbageProgress(marked: marking.marked.count, removed: report.objects + report.keys)
    }

    // MARK: Marking

    /// Marks for the time of a slice.
    func mark(in generations: Generations) throws -> Outcome {
        let isFirst = numbering == nil
        // Before the snapshot: what is queued, pinned or watched later is seen at the next slice.
        let needed = try roots.needed(fromStart: isFirst)
        let set = layers.current
        let touched = try set.map { try $0.touchedKeys(newLayers(of: $0)) } ?? []
        layerSet = set
        return try generations.withSnapshot { generation, transaction in
            let state = try GenerationState.stored(transaction, generation.tables)
            if isFirst {
                (numbering, position) = (generation.identity, state.position)
                let root = try generation.tables.record(of: CacheKey.queryRoot.text, transaction)
                if let root { marking.add(root) }
                // No list may lead to what a synchronization brought.
                for type in Set(try generation.tables.allPositions(transaction).values.flatMap(\.types)) {
                    for (_, id) in try generation.entities(ofType: type, transaction) { marking.add(id) }
                }
            }
            guard generation.identity == numbering,
                try takeChanges(since: position, generation, state, transaction)
            else { return .outdated }
            position = state.position
            try add(needed, generation, transaction)
            try add(touched, generation, transaction)
            let isDone = try marking.run(generation, transaction, below: state.nextRecord, until: .now + sliceTime)
            return isDone ? .done : .behind
        }
    }

    /// Forgets what was marked: the log did not tell what was changed since.
    func startOver() {
        marking = Marking()
        (numbering, layerSet) = (nil, nil)
        (uncertain, candidates) = ([], [])
        report.restarts += 1
    }

    private func add(
        _ needed: [Dependencies], _ generation: Generation, _ transaction: borrowing some RecordSnapshot & ~Copyable
    ) throws {
        for field in uncertain { marking.add(field) }
        uncertain = []
        for dependencies in needed {
            if dependencies.generation == numbering {
                for record in dependencies.records { marking.add(record) }
            }
            // An object that was absent may have come since, without having been read.
            for key in dependencies.absentKeys {
                if let id = try generation.tables.record(of: key, transaction) { marking.add(id) }
            }
        }
    }

    private func add(
        _ keys: [[UInt8]], _ generation: Generation, _ transaction: borrowing some RecordSnapshot & ~Copyable
    ) throws {
        for key in keys {
            if let id = try generation.tables.record(of: key, transaction) { marking.add(id) }
        }
    }

    /// Takes in what was changed since a position; false if the log does not tell all of it.
    private func takeChanges(
        since position: ChangePosition, _ generation: Generation, _ state: GenerationState,
        _ transaction: borrowing some RecordSnapshot & ~Copyable
    ) throws -> Bool {
        guard let changes = try generation.changes(since: position, state, transaction) else { return false }
        for (_, set) in changes {
            guard !set.isEverything else { return false }
            for field in set.fields { marking.add(field) }
        }
        return true
    }

    /// The layers which were not there at the last slice.
    private func newLayers(of set: LayerSet) -> Range<Int> {
        if set === layerSet { return set.layers.count..<set.layers.count }
        let known = layerSet.map { set.begins(with: $0) ? $0.layers.count : 0 } ?? 0
        return known..<set.layers.count
    }

    // MARK: Removing

    /// What may go, found in a snapshot and looked at again when it is removed.
    enum Candidate {
        case object(RecordID)
        /// The key of an object that is gone, as it is stored.
        case key([UInt8], RecordID)
    }

    /// Sets what the next write is to remove.
    func propose(_ candidates: ArraySlice<Candidate>) { self.candidates = Array(candidates) }

    /// The records that are needed, as far as is known.
    var marked: RecordSet { marking.marked }

    private func isGarbage(_ id: RecordID) -> Bool { !marking.marked.contains(id) }

    /// Removes those of the candidates that nothing needs. On the writer's thread; may be called again where the
    /// transaction has to be made again, or was not committed.
    func remove(
        from generation: Generation, _ transaction: borrowing WriteTransaction, _ changes: inout RecordChanges
    ) throws {
        (outcome, handled, removed) = (.outdated, 0, GarbageReport())
        guard generation.identity == numbering else { return }
        guard try takeChanges(since: position, generation, changes.state, transaction) else { return }
        outcome = .behind
        try add(roots.newlyWatched(), generation, transaction)
        let set = layers.current
        if let set {
            let new = newLayers(of: set)
            // More are read before the next write, and not while it keeps other writes waiting.
            guard new.count <= Self.layerLimit else { return }
            try add(set.touchedKeys(new), generation, transaction)
        }
        layerSet = set
        let deadline = SuspendingClock.now + sliceTime
        let isMarked = try marking.run(
            generation, transaction, below: changes.state.nextRecord, until: deadline,
            lookedInto: { uncertain.append($0) })
        guard isMarked else { return }
        outcome = .done
        var records = try transaction.cursor(in: generation.tables.records)
        var keys = try transaction.cursor(in: generation.tables.keys)
        for candidate in candidates {
            switch candidate {
            case .object(let id):
                guard isGarbage(id), let stored = try records.value(at: id) else { break }
                let record = unsafe try RecordView(unsafe stored.withUnsafeBytes { unsafe $0 })
                try remove(record, id, generation, transaction, &changes)
            case .key(let key, let id):
                guard isGarbage(id), try records.value(at: id) == nil, let stored = try keys.value(at: key.rawSpan),
                    unsafe stored.withUnsafeBytes(StoredNumber.number) == id
                else { break }
                remove(key, of: id, stored.byteCount, &changes)
            }
            handled += 1
            // Objects take their parts along.
            if .now >= deadline || changes.changes.fields.count >= Self.candidateLimit { break }
        }
    }

    /// Takes note of what the write did, once it is committed.
    func committed(_ commit: Commit) {
        uncertain = []
        guard outcome == .done, !commit.changes.isEmpty else { return }
        // All before it was taken in, and what it changed is gone.
        position = commit.position
        report.objects += removed.objects
        report.parts += removed.parts
        report.keys += removed.keys
        report.bytes += removed.bytes
    }

    /// Takes over what was only counted.
    func rehearsed(_ counted: GarbageReport) {
        (report.objects, report.parts) = (counted.objects, counted.parts)
        (report.keys, report.bytes) = (counted.keys, counted.bytes)
    }

    func finish(kept: Int) {
        report.kept = kept
        report.isFinished = true
    }

    private func remove(
        _ record: RecordView, _ id: RecordID, _ generation: Generation, _ transaction: borrowing WriteTransaction,
        _ changes: inout RecordChanges
    ) throws {
        let (records, bytes) = (changes.removedRecords.count, changes.removedBytes)
        try changes.evict(record, id, generation, transaction)
        removed.objects += 1
        removed.parts += changes.removedRecords.count - records - 1
        removed.bytes += changes.removedBytes - bytes
    }

    private func remove(_ key: [UInt8], of id: RecordID, _ byteCount: Int, _ changes: inout RecordChanges) {
        changes.removedKeys.append(key)
        // Another process may wait for the object by its number, and the object will have another if it comes again.
        changes.changed(id)
        removed.keys += 1
        removed.bytes += key.count + byteCount
    }
}

extension LayerSet {
    /// The keys that some of the layers touch.
    ///
    /// - Throws: Where what is queued cannot be read.
    func touchedKeys(_ range: Range<Int>) throws -> [[UInt8]] {
        var keys: [[UInt8]] = []
        for start in stride(from: range.lowerBound, to: range.upperBound, by: GarbageCollection.layerLimit) {
            let some = (start..<min(start + GarbageCollection.layerLimit, range.upperBound)).map { layers[$0] }
            try fetch(some)
            // A layer that cannot be worked out is not shown, and needs nothing.
            for layer in some { unsafe (try? layer.content)?.forEachKey { unsafe keys.append(Array($0)) } }
        }
        return keys
    }
}
