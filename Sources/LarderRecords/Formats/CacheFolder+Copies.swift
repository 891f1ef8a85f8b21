import LarderFiles
import LarderLMDB

extension CacheFolder {
    /// Writes a snapshot of the current generation, without free pages, as `data.mdb` into a folder, which is made.
    /// Durable on return. Other programs go on reading and writing meanwhile.
    ///
    /// - Throws: `.missing` where there is none, `.damaged`, `.otherPartition`, `.full`, `.notWritable`; `.busy` where
    ///   it is superseded again and again.
    package func copy(to target: String) throws(RecordError) {
        try translated {
            var retries = Retries(until: .now + folder.options.lockTimeout)
            repeat {
                let found = try format()
                switch found.state {
                case .absent: throw RecordError(.missing, "There is no record cache at \(path)")
                case .damaged(let reason): throw RecordError(.damaged, reason)
                case .current, .older, .newer: break
                }
                do {
                    if try copy(found.generation, to: target) { return }
                } catch let error as LMDBError where error.code == .missing {}
                // Superseded meanwhile: what was copied may lack what others were told is stored.
                try? files.removeTree(target)
            } while retries.goOn()
            throw RecordError(.busy, "The record cache at \(path) was superseded again and again while it was copied")
        }
    }

    /// False where the copy is of a superseded generation.
    private func copy(_ number: Int, to target: String) throws -> Bool {
        var options = folder.options.environment
        options.isReadOnly = true
        options.mustExist = true
        let source = try Environment(
            folder: folder.path(of: number), tables: GenerationMark.tables, options: options)
        defer { try? source.close() }
        try source.copy(to: target, compacting: true)
        // The last commit of a superseded generation says so: the copy was taken before it, or has it.
        let transaction = try source.beginRead()
        let mark = try GenerationMark(transaction, source)
        // Other formats may keep it otherwise.
        if mark.format == CacheFormat.current, let meta = source.table("meta") {
            try folder.checkStamp(transaction, meta: meta)
        }
        return !mark.isSuperseded
    }

    /// Where a cache lies that is to be the next generation.
    func stagedPath(_ token: String) -> String { "\(path)/restored-\(token)" }

    /// The tokens of caches that were staged and have not become generations.
    package func stagedTokens() throws(RecordError) -> [String] {
        let names = try translated { try files.names(in: path) }
        return names.filter { $0.hasPrefix("restored-") }.map { String($0.dropFirst("restored-".count)) }
    }

    package func removeStaged(_ token: String) { try? files.removeTree(stagedPath(token)) }

    /// Gets a copy of a cache ready to be the next generation. No reader sees it before `adoptStaged`.
    ///
    /// - Parameters:
    ///   - token: Names it.
    ///   - fill: Writes the data file at the path that it is given.
    /// - Throws: `.damaged` where it is no sound cache of this partition, `.futureFormat`, `.full`.
    package func stage(_ token: String, _ fill: (String) throws -> Void) throws {
        let staged = stagedPath(token)
        do {
            try files.makeFolder(staged)
            try fill(staged + "/data.mdb")
            try translated { try prepare(staged) }
        } catch {
            removeStaged(token)
            throw error
        }
    }

    private func prepare(_ staged: String) throws {
        var options = folder.options.environment
        options.mustExist = true
        options.verification = .always
        options.durability = .full
        let format = try readFormat(staged, options)
        guard format <= CacheFormat.current else {
            throw RecordError(.futureFormat, "The copy has format \(format); use a newer program")
        }
        if format < CacheFormat.current, FormatStep.path(from: format, in: steps) == nil {
            // Nothing of it can be used, as if the cache had been rebuilt where it lay.
            for name in try files.names(in: staged) { try files.removeTree("\(staged)/\(name)") }
            options.mustExist = false
        }
        let environment = try Environment(folder: staged, tables: Tables.definitions, options: options)
        defer { try? environment.close() }
        guard let tables = Tables(environment) else { throw RecordError.damagedState }
        let generation = Generation(
            number: 1, identity: 0, environment: environment, tables: tables,
            maximumAnswerSize: folder.options.maximumAnswerSize, now: folder.options.now)
        try environment.write(deadline: .now + folder.options.lockTimeout) { transaction in
            guard !options.mustExist else {
                for step in FormatStep.path(from: format, in: steps) ?? [] { try step.rewrite(&transaction, tables) }
                return try restamp(&transaction, tables)
            }
            try folder.store(.fresh(), &transaction, tables)
        }
        do {
            let reading = try environment.beginRead()
            try folder.checkStamp(reading, tables)
            if let problem = try generation.check(.checksums, reading).problems.first {
                throw RecordError(.damaged, "The copy is damaged: \(problem)")
            }
        }
        try environment.close()
        try files.synchronizeFolder(staged)
        try files.synchronizeFolder(path)
    }

    private func readFormat(_ staged: String, _ options: Environment.Options) throws -> UInt32 {
        var options = options
        options.isReadOnly = true
        let environment = try Environment(folder: staged, tables: GenerationMark.tables, options: options)
        defer { try? environment.close() }
        let transaction = try environment.beginRead()
        return try GenerationMark(transaction, environment).format
    }
}
