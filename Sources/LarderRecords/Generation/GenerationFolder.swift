import LarderFiles
import LarderLMDB

/// The folder of one partition's record cache: a folder for each generation, named by its number.
///
/// The current generation is the lowest that is not superseded. One of a higher number is what an interrupted
/// compaction left; one of a lower number waits to be removed. A folder gets its number as its name only when it is
/// whole, and loses that name before anything in it goes.
struct GenerationFolder: Sendable {
    let path: String
    let stamp: String
    let options: RecordCache.Options

    private static let stampKey = Array("stamp".utf8)

    private var files: FileSystem { options.files }

    func path(of number: Int) -> String { "\(path)/\(number)" }

    /// The generations that have their names, ascending; none where the folder is missing.
    func numbers() throws(FileError) -> [Int] {
        // The next must have a number as well.
        try files.names(in: path).compactMap(Int32.init).filter { $0 > 0 && $0 < .max }.map(Int.init).sorted()
    }

    /// Opens the current generation; makes the first unless the cache is read-only.
    ///
    /// - Parameter superseded: The number of a generation that is known not to be current, and may still be open.
    func openCurrent(above superseded: Int = 0) throws -> Generation {
        // Another process may supersede and remove a generation while it is being opened here, or take an unfinished
        // one that is being made here for a leftover.
        var failure: (any Error)?
        for _ in 0..<8 {
            let numbers = try numbers().filter { $0 > superseded }
            do {
                for number in numbers {
                    if number != numbers.last, try lacksFile(number) || isSuperseded(number) { continue }
                    let generation = try open(number)
                    guard try generation.isSuperseded() else {
                        if !options.isReadOnly { try removeSuperseded(below: number) }
                        return generation
                    }
                    try generation.environment.close()
                }
                guard !options.isReadOnly else {
                    throw RecordError(.missing, "There is no record cache at \(path); write to it first")
                }
                try makeEmpty((numbers.last ?? superseded) + 1)
            } catch let error as LMDBError where error.code == .missing {
                failure = error
            } catch let error as FileError where error.code == .missing {
                failure = error
            }
        }
        // A folder loses its name before its file goes: this one lost the file otherwise.
        if let number = try numbers().first(where: { $0 > superseded }), try lacksFile(number) {
            throw RecordError(
                .damaged, "The record cache at \(path(of: number)) has no data file; remove the folder and fetch again")
        }
        throw failure ?? RecordError(.missing, "There is no current record cache at \(path)")
    }

    /// Whether a generation has its name and not its file. Below another one it was being removed when the power went:
    /// not all file systems keep changes of names in their order.
    private func lacksFile(_ number: Int) throws -> Bool {
        try files.exists(path(of: number)) && !files.exists(path(of: number) + "/data.mdb")
    }

    /// Whether a generation of whatever format says so; false where it cannot be told. Once one was replaced by the
    /// next format's, it can be opened for nothing else.
    private func isSuperseded(_ number: Int) -> Bool {
        let mark = try? mark(number)
        return mark?.isSuperseded ?? false
    }

    /// The mark of a generation of whatever format.
    func mark(_ number: Int) throws -> GenerationMark {
        var options = options.environment
        options.isReadOnly = true
        options.mustExist = true
        let environment = try Environment(folder: path(of: number), tables: GenerationMark.tables, options: options)
        defer { try? environment.close() }
        let transaction = try environment.beginRead()
        return try GenerationMark(transaction, environment)
    }

    func open(_ number: Int) throws -> Generation {
        var options = options.environment
        // What is gone must not come back empty.
        options.mustExist = true
        let environment = try Environment(
            folder: path(of: number), tables: Tables.definitions, options: options, openedBy: self.options.openedBy)
        do {
            return try open(environment, number)
        } catch {
            // The next opener must find out as well.
            if environment.wasVerified { environment.distrust() }
            throw error
        }
    }

    private func open(_ environment: Environment, _ number: Int) throws -> Generation {
        guard let tables = Tables(environment) else {
            throw RecordError(
                .damaged, "The record cache at \(path(of: number)) lacks tables; remove it and fetch again")
        }
        let reading = try environment.beginRead()
        let state = try GenerationState.stored(reading, tables)
        try checkStamp(reading, tables)
        let generation = Generation(
            number: number, identity: state.numbering, environment: environment, tables: tables,
            maximumAnswerSize: options.maximumAnswerSize, keepsUse: options.keepsUse, now: options.now)
        if !options.comparesChecksums {
            if environment.wasVerified { environment.distrust() }
        } else if environment.wasVerified || options.verifiesAlways {
            // Whatever the pages' walk does not see must not be read as if it were so.
            let report = try generation.checkChecksums()
            if let problem = report.problems.first {
                let others = report.problemCount > 1 ? ", and \(report.problemCount - 1) more" : ""
                throw RecordError(
                    .damaged, "The record cache at \(path) is damaged (\(problem)\(others)); remove it and fetch again")
            }
        }
        generation.mayHaveLostCommits.store(environment.mayHaveLostCommits, ordering: .relaxed)
        // A close before the next commit must not look clean: the next opener then has to start the epoch.
        if environment.mayHaveLostCommits { environment.withholdStamp(true) }
        return generation
    }

    func checkStamp(_ transaction: borrowing ReadTransaction, _ tables: Tables) throws {
        try checkStamp(transaction, meta: tables.meta)
    }

    func checkStamp(_ transaction: borrowing ReadTransaction, meta: Table) throws {
        // Safe: the stamp lies in the transaction, which is borrowed here, and is copied before its closure returns.
        guard let stored = try transaction.get(Self.stampKey.rawSpan, in: meta),
            unsafe stored.withUnsafeBytes({ unsafe SealedText.isSound($0, seed: 0) })
        else { throw RecordError.damagedState }
        let owner = unsafe stored.withUnsafeBytes { bytes in
            unsafe SealedText.text(bytes).map { unsafe String(decoding: $0, as: UTF8.self) } ?? ""
        }
        guard owner.utf8.elementsEqual(stamp.utf8) else {
            throw RecordError(
                .otherPartition,
                "The record cache at \(path) belongs to the partition \(owner), not to \(stamp); put its folder back")
        }
    }

    // MARK: Making and removing

    /// Makes an empty generation, unless another process made it meanwhile.
    private func makeEmpty(_ number: Int) throws {
        do {
            let draft = try GenerationDraft(number, in: self)
            try draft.fill { transaction, tables in
                try store(.fresh(), &transaction, tables)
            }
            guard try draft.finish() else { return }
        } catch {
            // Another process that made the next generation removes this draft as a leftover, also under this one's hands.
            guard try numbers().contains(where: { $0 >= number }) else { throw error }
            return
        }
        // Where others have come further meanwhile, theirs is the current one.
        if try numbers().contains(where: { $0 > number }) { remove(number) }
    }

    /// Writes the counters and the stamp of a generation that is being made.
    func store(_ state: GenerationState, _ transaction: inout WriteTransaction, _ tables: Tables) throws {
        try state.store(&transaction, tables)
        let value = SealedText.encoded(Array(stamp.utf8), seed: 0)
        try transaction.put(Self.stampKey.rawSpan, value.rawSpan, in: tables.meta)
    }

    /// Removes the generations below the current one, durably: the commit that superseded one may have failed to reach
    /// the disk, and the generation would be the current one again. Other processes may have them open, and keep them
    /// until they look again.
    func removeSuperseded(below number: Int) throws {
        let old = try numbers().filter { $0 < number }
        guard !old.isEmpty else { return }
        for old in old { remove(old) }
        try files.synchronizeFolder(path)
    }

    /// Takes a generation its name, at once, and then removes it. What cannot be removed now is a leftover, and goes
    /// with the next compaction.
    func remove(_ number: Int) {
        let doomed = "\(path)/\(number).removed-\(FileSystem.uniqueSuffix())"
        guard (try? files.rename(path(of: number), doomed)) != nil else { return }
        try? files.removeTree(doomed)
    }

    /// Removes what a crash left of generations that were being made or removed, and the draft of a compaction that is
    /// under way, which finds then that another was quicker.
    ///
    /// Only for the writer of the current generation: no other process makes one meanwhile. What cannot be removed
    /// takes disk and does no other harm.
    func removeLeftovers(above number: Int) { removeAll(leftovers(above: number)) }

    /// The same in two steps, of which only this one is for the writer alone: takes generations their names, and answers
    /// which folders are to be removed.
    func leftovers(above number: Int) -> [String] {
        for next in (try? numbers()) ?? [] where next > number {
            try? files.rename(path(of: next), "\(path)/\(next).removed-\(FileSystem.uniqueSuffix())")
        }
        let names = (try? files.names(in: path)) ?? []
        return names.filter { $0.contains(".draft-") || $0.contains(".removed-") }
    }

    func removeAll(_ leftovers: [String]) {
        for name in leftovers { try? files.removeTree("\(path)/\(name)") }
    }
}

extension Generation {
    func isSuperseded() throws -> Bool {
        let transaction = try environment.beginRead()
        return try GenerationState.read(transaction, tables)?.isSuperseded ?? false
    }
}
