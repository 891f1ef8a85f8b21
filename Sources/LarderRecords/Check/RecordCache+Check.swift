import LarderLMDB

extension RecordCache {
    /// Looks whether everything is as it must be; see `CheckReport.Level`.
    ///
    /// Writers wait meanwhile, as the pages must not change; a read-only cache cannot make them wait, and another
    /// process that writes to it can be mistaken for damage. No bytes, however damaged, are more than a problem in the
    /// report.
    ///
    /// - Throws: What keeps it from looking: `.busy`, `.closed`.
    /// - Complexity: O(n) in the cache's size; memory for the number of every record.
    package func check(
        _ level: CheckReport.Level = .everything, deadline: ContinuousClock.Instant? = nil
    ) throws(RecordError) -> CheckReport {
        try translated {
            guard level == .everything, !options.isReadOnly else {
                return try generations.withSnapshot { generation, transaction in
                    try generation.check(level, transaction)
                }
            }
            let deadline = deadline ?? .now + options.lockTimeout
            return try generations.retrying(to: "check it", until: deadline) { generation in
                let transaction = try generation.environment.beginWrite(deadline: deadline)
                return try check(generation, level, transaction)
            }
        }
    }

    /// Nil if the generation is superseded.
    private func check(
        _ generation: Generation, _ level: CheckReport.Level, _ transaction: borrowing WriteTransaction
    ) throws(LMDBError) -> CheckReport? {
        // Counters that cannot be read are the check's to report.
        if let state = try? GenerationState.read(transaction, generation.tables), state.isSuperseded { return nil }
        return try generation.check(level, transaction)
    }
}

extension Generation {
    func check(
        _ level: CheckReport.Level, _ transaction: borrowing some RecordSnapshot & ~Copyable
    ) throws(LMDBError) -> CheckReport {
        var check = GenerationCheck(self, level)
        if level == .everything {
            do {
                let summary = try PageWalk.run(
                    path: environment.folder + "/data.mdb", files: environment.options.files)
                check.report.counts.pages = summary.branchPages + summary.leafPages + summary.overflowPages
            } catch {
                // A disk that fails says nothing of the file.
                guard CacheFolder.damage(error) != nil else { throw error }
                check.report.add(.page(error.page), error.message)
                // LMDB would follow what is damaged.
                return check.report
            }
        }
        try check.run(transaction)
        return check.report
    }
}
