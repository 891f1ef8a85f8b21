import LarderFiles
import LarderLMDB

extension CacheFolder {
    /// A step that was just done; a test may kill the program there.
    package enum KillPoint: String, Sendable, CaseIterable {
        /// The next generation is whole, and has its name.
        case named
        /// The old one says that it is superseded, or is gone.
        case superseded
    }

    /// Makes the cache one of the current format, by the next generation: transformed where there is a way from its
    /// format, otherwise empty. An empty one takes the place of a damaged cache.
    ///
    /// Programs that have the cache open go on with the new generation at their next transaction; with a damaged one
    /// that they have open, until they close it.
    ///
    /// - Throws: `.futureFormat`, `.busy`, `.full`, `.notWritable`.
    package func migrate(
        deadline: SuspendingClock.Instant, reached: (KillPoint) throws -> Void = { _ in }
    ) throws(RecordError) {
        try translated {
            try replace(deadline, reached) { number, old, format in
                guard case .older(let from) = format, let old, let path = FormatStep.path(from: from, in: steps) else {
                    return try empty(number)
                }
                let draft = try GenerationDraft(number, in: folder) { try old.copy(to: $0, compacting: true) }
                for step in path { try draft.fill(step.rewrite) }
                try draft.fill { transaction, tables in try restamp(&transaction, tables) }
                return draft
            }
        }
    }

    /// Empties the cache, as its next generation, whatever is wrong with it.
    ///
    /// Programs that have it open go on with the new generation at their next transaction. Programs that have a damaged
    /// file open do so once they open the store again.
    package func rebuild(deadline: SuspendingClock.Instant) throws(RecordError) {
        try translated { try replace(deadline, { _ in }) { number, _, _ in try empty(number) } }
    }

    /// Makes what was staged under a token the cache's next generation, unless it is that already.
    ///
    /// A process that was killed may have done it before. Where the cache was compacted since then, it is brought back
    /// once more, which loses what was fetched meanwhile.
    package func adoptStaged(
        _ token: String, deadline: SuspendingClock.Instant, reached: (KillPoint) throws -> Void = { _ in }
    ) throws(RecordError) {
        let staged = stagedPath(token)
        try translated {
            guard try files.exists(staged) else { return }
            // A folder without a file was adopted, and its removal was cut off.
            if try files.status(of: staged + "/data.mdb") != nil, try !isCurrent(staged) {
                try replace(deadline, reached) { number, _, _ in
                    try GenerationDraft(number, in: folder) { try link(staged, into: $0) }
                }
            }
            try files.removeTree(staged)
        }
    }

    private func empty(_ number: Int) throws -> GenerationDraft {
        let draft = try GenerationDraft(number, in: folder)
        try draft.fill { transaction, tables in try folder.store(.fresh(), &transaction, tables) }
        return draft
    }

    /// Gives a copy counters of the current format, by which nothing that was noted before tells anything any more.
    func restamp(_ transaction: inout WriteTransaction, _ tables: Tables) throws {
        var bytes = try GenerationMark.stored(transaction, tables.meta)
        guard bytes.count == GenerationState.size else { throw RecordError.damagedState }
        // Safe: the array has the length of the counters, and numbers are copied into it while they are lent.
        unsafe withUnsafeBytes(of: GenerationState.format.littleEndian) {
            unsafe bytes.replaceSubrange(0..<4, with: $0)
        }
        unsafe withUnsafeBytes(of: UInt32(0)) { unsafe bytes.replaceSubrange(4..<8, with: $0) }
        let sum = unsafe bytes.withUnsafeBytes { unsafe checksum(UnsafeRawBufferPointer(rebasing: $0[..<56])) }
        unsafe withUnsafeBytes(of: sum.littleEndian) { unsafe bytes.replaceSubrange(56..<60, with: $0) }
        var state = unsafe try bytes.withUnsafeBytes { bytes throws(RecordError) in unsafe try GenerationState(bytes) }
        state.startAnew()
        try transaction.clear(tables.changes)
        try state.store(&transaction, tables)
    }

    // MARK: The next generation

    private typealias Making = (Int, Environment?, CacheFormat.State) throws -> GenerationDraft

    private func replace(
        _ deadline: SuspendingClock.Instant, _ reached: (KillPoint) throws -> Void, _ make: Making
    ) throws {
        let notice = FolderNotice(folder.options.watchedFolder)
        try makeNext(deadline, reached, make)
        notice.tell()
    }

    private func makeNext(
        _ deadline: SuspendingClock.Instant, _ reached: (KillPoint) throws -> Void, _ make: Making
    ) throws {
        // Other processes may supersede a generation, or make the first, meanwhile.
        var retries = Retries(until: deadline)
        repeat {
            let found = try format()
            switch found.state {
            case .newer(let format):
                throw futureFormat(format)
            case .current, .older:
                if try supersede(found, deadline, reached, make) { return }
            case .absent:
                guard try make(found.generation + 1, nil, found.state).place() else { continue }
                try reached(.named)
                try reached(.superseded)
                return
            case .damaged:
                folder.removeLeftovers(above: found.generation)
                guard try make(found.generation + 1, nil, found.state).place() else { continue }
                try reached(.named)
                // Nothing can be written into it: it loses its name, and with that the next is the current one.
                folder.remove(found.generation)
                try files.synchronizeFolder(path)
                try reached(.superseded)
                return
            }
        } while retries.goOn()
        throw RecordError(.busy, "The record cache at \(path) was superseded again and again")
    }

    private func futureFormat(_ format: UInt32) -> RecordError {
        RecordError(
            .futureFormat,
            "The cache at \(path) has format \(format), and this program knows those to \(CacheFormat.current); "
                + "use a newer program")
    }

    /// False where another process was quicker.
    private func supersede(
        _ found: CacheFormat, _ deadline: SuspendingClock.Instant, _ reached: (KillPoint) throws -> Void,
        _ make: Making
    ) throws -> Bool {
        let number = found.generation
        var options = folder.options.environment
        options.mustExist = true
        let old = try Environment(folder: folder.path(of: number), tables: GenerationMark.tables, options: options)
        defer { try? old.close() }
        var transaction = try old.beginWrite(deadline: deadline)
        var mark = try GenerationMark(transaction, old)
        guard !mark.isSuperseded else { return false }
        // What lies behind the beginning of a later format's counters is not known.
        guard mark.format <= CacheFormat.current else { throw futureFormat(mark.format) }
        folder.removeLeftovers(above: number)
        guard try make(number + 1, old, found.state).place() else {
            throw RecordError(
                .storage, "Another process removed the new generation of the record cache before it was named")
        }
        try reached(.named)
        mark.supersede()
        do {
            try mark.store(&transaction, old)
        } catch {
            folder.removeLeftovers(above: number)
            throw error
        }
        do {
            // As soon as this is read, by whomever, the old generation is closed.
            try transaction.commit(synchronizing: true)
        } catch {
            // Under the writer's lock, or it could be another process's by now.
            try? old.write(deadline: deadline) { transaction in
                guard try !GenerationMark(transaction, old).isSuperseded else { return }
                folder.removeLeftovers(above: number)
            }
            throw error
        }
        try reached(.superseded)
        try folder.removeSuperseded(below: number + 1)
        return true
    }

    // MARK: Staged data files

    /// Whether the current generation is the staged one: its file has both names.
    private func isCurrent(_ staged: String) throws -> Bool {
        let found = try format()
        guard found.state != .absent else { return false }
        let current = try files.status(of: folder.path(of: found.generation) + "/data.mdb")
        guard let current, let other = try files.status(of: staged + "/data.mdb") else { return false }
        return current.isSameFile(as: other)
    }

    /// Gives a file a second name, so that the first is there until the other is a generation's.
    private func link(_ staged: String, into draft: String) throws {
        for name in try files.names(in: staged) where !name.hasSuffix("lock.mdb") {
            if name.hasSuffix(".lock") { continue }
            try files.link("\(staged)/\(name)", "\(draft)/\(name)")
        }
    }
}

extension GenerationState {
    /// Makes everything that was noted of this generation so far tell nothing any more: numbers and positions.
    mutating func startAnew() {
        isSuperseded = false
        startEpoch()
        numbering = .random(in: .min ... .max)
    }
}
