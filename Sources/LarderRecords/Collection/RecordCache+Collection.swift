import LarderLMDB

extension RecordCache {
    /// Removes the objects that are not needed: those to which neither the root of all queries leads, nor what
    /// optimistic layers touch, nor what `roots` names. Objects that refer to each other in a circle go like others.
    ///
    /// Reads and writes go on meanwhile, in all processes. What is removed becomes a miss, and watchers that depend on
    /// it hear of it. A snapshot that was taken before still has it.
    ///
    /// - Parameters:
    ///   - isRehearsal: Whether it is only counted what would go.
    ///   - sliceTime: For how long it reads, or keeps other writes waiting, at a time; roughly.
    ///   - progress: Called after each slice.
    /// - Throws: `.damaged` where a record that stays is damaged: what it leads to is not known. Then nothing more is
    ///   removed. `.busy` where other writes changed too much, again and again, to be followed. What `roots` throws, as
    ///   the cause of `.storage`.
    /// - Complexity: O(n) in the cache's size. It takes an eighth of a byte of memory, twice, for each record that the
    ///   cache has ever had, and what the contents of the layers take.
    package func collectGarbage(
        keeping roots: any CollectionRoots, isRehearsal: Bool = false,
        sliceTime: Duration = .milliseconds(4), progress: @Sendable (GarbageProgress) -> Void = { _ in }
    ) async throws(RecordError) -> GarbageReport {
        let collection = GarbageCollection(keeping: roots, under: layers, sliceTime: sliceTime)
        while try await !run(collection, isRehearsal, sliceTime, progress) {
            guard collection.report.restarts < Self.maximumRestarts else {
                throw RecordError(
                    .busy,
                    "Other writes changed too much at once, again and again, for garbage to be told from what is "
                        + "needed; try again when less is written")
            }
            collection.startOver()
        }
        return collection.report
    }

    private static var maximumRestarts: Int { 16 }

    /// - Returns: False if it has to begin again.
    private func run(
        _ collection: GarbageCollection, _ isRehearsal: Bool, _ sliceTime: Duration,
        _ progress: (GarbageProgress) -> Void
    ) async throws(RecordError) -> Bool {
        // Else each of its writes would begin an epoch, which no change that was taken in belongs to.
        if !isRehearsal { try await beginEpochIfDue() }
        guard try await mark(collection, progress) else { return false }
        var sweep = Sweep(sliceTime: sliceTime)
        var size = SliceSize(for: sliceTime, atMost: GarbageCollection.candidateLimit)
        var found = try sweep.next(collection.marked, generations)
        while let candidates = found {
            if Task.isCancelled { return true }
            await Task.yield()
            // Looked for while what was found is removed, which takes the disk's time.
            let (current, marked) = (sweep, collection.marked)
            async let following = current.following(marked, generations)
            var rest = candidates[...]
            while !isRehearsal, !rest.isEmpty {
                if Task.isCancelled { return true }
                collection.propose(rest.prefix(size.count))
                let start = SuspendingClock.now
                let commit = try await write([.collect(collection)], deadline: nil)
                size.took(.now - start)
                collection.committed(commit)
                switch collection.outcome {
                case .outdated: return false
                case .behind: guard try await mark(collection, progress) else { return false }
                case .done: rest = rest.dropFirst(max(collection.handled, 1))
                }
                progress(collection.progress)
            }
            (sweep, found) = try await following.get()
        }
        if isRehearsal { collection.rehearsed(sweep.counted) }
        collection.finish(kept: sweep.kept)
        return true
    }

    private func beginEpochIfDue() async throws(RecordError) {
        let deadline = SuspendingClock.now + options.lockTimeout
        try await writer.betweenWrites(until: deadline) { [writer] in try writer.beginEpochIfDue(until: deadline) }
    }

    /// Marks until everything that is known to be needed is marked, or the task is cancelled.
    private func mark(
        _ collection: GarbageCollection, _ progress: (GarbageProgress) -> Void
    ) async throws(RecordError) -> Bool {
        while !Task.isCancelled {
            let outcome = try translated { try collection.mark(in: generations) }
            progress(collection.progress)
            switch outcome {
            case .done: return true
            case .behind: await Task.yield()
            case .outdated: return false
            }
        }
        return true
    }
}

/// Goes through the objects of a cache, and then through its keys, and finds what may go.
///
/// Keys come last: a damaged or killed collection must not leave an object that refers to a key that is gone.
///
/// Safe: a record is looked into while the snapshot is borrowed in which it lies; of a key a copy is kept.
private struct Sweep {
    let sliceTime: Duration
    private var nextRecord: RecordID? = 0
    private var nextKey: [UInt8]? = [0]
    /// Records that stay.
    private(set) var kept = 0
    /// What was found to go.
    private(set) var counted = GarbageReport()

    init(sliceTime: Duration) { self.sliceTime = sliceTime }

    /// What the next slice finds, and the sweep after it.
    func following(
        _ marked: RecordSet, _ generations: Generations
    ) -> Result<(Sweep, [GarbageCollection.Candidate]?), RecordError> {
        var sweep = self
        return Result { () throws(RecordError) in
            let found = try sweep.next(marked, generations)
            return (sweep, found)
        }
    }

    /// What was found in one slice, which may be nothing; nil at the end.
    ///
    /// - Parameter marked: What stays. What is marked later is found as well, and told apart when it is to be removed.
    mutating func next(
        _ marked: RecordSet, _ generations: Generations
    ) throws(RecordError) -> [GarbageCollection.Candidate]? {
        guard nextRecord != nil || nextKey != nil else { return nil }
        return try translated {
            try generations.withSnapshot { generation, transaction in
                let deadline = SuspendingClock.now + sliceTime
                if let start = nextRecord {
                    return try objects(from: start, marked, generation, transaction, deadline)
                }
                guard let start = nextKey else { return [] }
                return try keys(from: start, marked, generation, transaction, deadline)
            }
        }
    }

    private mutating func objects(
        from start: RecordID, _ marked: RecordSet, _ generation: Generation,
        _ transaction: borrowing ReadTransaction, _ deadline: SuspendingClock.Instant
    ) throws -> [GarbageCollection.Candidate] {
        var found: [GarbageCollection.Candidate] = []
        nextRecord = nil
        var (seen, room) = (0, Room())
        var cursor = try transaction.cursor(in: generation.tables.records)
        var entry = try cursor.seek(atLeast: start)
        while let current = entry {
            let id = current.integerKey
            seen += 1
            if room.isTaken || seen % 64 == 0 && .now >= deadline {
                nextRecord = id
                break
            }
            if !marked.contains(id) {
                let record = unsafe try RecordView(unsafe current.value.withUnsafeBytes { unsafe $0 })
                // A part goes with the object that holds it.
                if record.isEntity { found.append(.object(id)) }
                try count(record, id, generation, transaction)
                room.take()
            } else {
                kept += 1
                room.pass()
            }
            entry = try cursor.next()
        }
        return found
    }

    private mutating func count(
        _ record: RecordView, _ id: RecordID, _ generation: Generation, _ transaction: borrowing ReadTransaction
    ) throws {
        counted.objects += record.isEntity ? 1 : 0
        counted.parts += record.isEntity ? 0 : 1
        unsafe counted.bytes += record.bytes.count
        guard record.isSplit else { return }
        try generation.forEachSplitField(of: id, transaction) { _, payload in
            unsafe counted.bytes += payload.bytes.count
        }
    }

    private mutating func keys(
        from start: [UInt8], _ marked: RecordSet, _ generation: Generation,
        _ transaction: borrowing ReadTransaction, _ deadline: SuspendingClock.Instant
    ) throws -> [GarbageCollection.Candidate] {
        var found: [GarbageCollection.Candidate] = []
        nextKey = nil
        var (seen, room) = (0, Room())
        var cursor = try transaction.cursor(in: generation.tables.keys)
        var entry = try cursor.seek(atLeast: start.rawSpan)
        while let current = entry {
            let key = unsafe current.key.withUnsafeBytes(Array.init)
            seen += 1
            if room.isTaken || seen % 64 == 0 && .now >= deadline {
                nextKey = key
                break
            }
            // What is no number at all is damage, which stays to be found.
            if let id = unsafe current.value.withUnsafeBytes(StoredNumber.number), !marked.contains(id) {
                found.append(.key(key, id))
                counted.keys += 1
                counted.bytes += key.count + current.value.byteCount
                room.take()
            } else {
                room.pass()
            }
            entry = try cursor.next()
        }
        return found
    }
}

/// How much one write takes on. What lies far apart is on pages of its own, all of which the write changes, and which
/// take new room in the file.
private struct Room {
    private var count = 0
    private var spread = 0
    private var passed = 0
    /// Two that have more than this between them are not on one page.
    private static let farthest = 64

    var isTaken: Bool {
        count >= GarbageCollection.candidateLimit || spread >= 2 * GarbageCollection.candidateLimit
    }

    /// Takes in one that goes.
    mutating func take() {
        count += 1
        spread += 1 + min(passed, Self.farthest)
        passed = 0
    }

    /// Takes in one that stays.
    mutating func pass() { passed += 1 }
}
