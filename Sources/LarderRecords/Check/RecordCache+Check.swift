import LarderFiles
import LarderLMDB

extension RecordCache {
    /// Looks whether everything is as it must be; see `CheckReport.Level`.
    ///
    /// Looks at one snapshot: reads and writes go on meanwhile, in all processes. The file grows by what they write,
    /// because no page that the snapshot sees is used again until the check ends. No bytes, however damaged, are more
    /// than a problem in the report.
    ///
    /// - Parameter deadline: Until which to look for a moment between two commits, in which the snapshot is taken.
    /// - Throws: What keeps it from looking: `.busy`, `.closed`.
    /// - Complexity: O(n) in the cache's size; memory: a few bits for the number of every record.
    package func check(
        _ level: CheckReport.Level = .everything, deadline: SuspendingClock.Instant? = nil
    ) throws(RecordError) -> CheckReport {
        try translated {
            guard level == .everything else {
                return try generations.withSnapshot { generation, transaction in
                    try generation.check(level, transaction)
                }
            }
            let deadline = deadline ?? .now + options.lockTimeout
            return try generations.retrying(to: "check it", until: deadline) { generation in
                try generation.checkEverything(until: deadline)
            }
        }
    }
}

extension Generation {
    /// Checks one snapshot, its pages included. Nil if the generation is superseded.
    fileprivate func checkEverything(until deadline: SuspendingClock.Instant) throws -> CheckReport? {
        enum Finding {
            case report(CheckReport)
            case superseded
        }
        let finding = try poll(until: deadline) { () throws -> Finding? in
            let transaction = try environment.beginRead()
            // Counters that cannot be read are the check's to report.
            if let state = try? GenerationState.read(transaction, tables), state.isSuperseded { return .superseded }
            var check = GenerationCheck(self, .everything)
            do throws(LMDBError) {
                guard let summary = try environment.walk(transaction) else { return nil }
                check.report.counts.pages = summary.branchPages + summary.leafPages + summary.overflowPages
            } catch {
                // A disk that fails says nothing of the file.
                guard CacheFolder.damage(error) != nil else { throw error }
                check.report.add(.page(error.page), error.message)
                // LMDB would follow what is damaged.
                return .report(check.report)
            }
            try check.run(transaction)
            return .report(check.report)
        }
        switch finding {
        case .report(let report): return report
        case .superseded: return nil
        case nil:
            throw RecordError(
                .busy, "Others write to the record cache without a pause; check it when less is written, or wait longer"
            )
        }
    }

    /// Checks what a snapshot holds, without its pages.
    func check(
        _ level: CheckReport.Level, _ transaction: borrowing some RecordSnapshot & ~Copyable
    ) throws(LMDBError) -> CheckReport {
        var check = GenerationCheck(self, level)
        try check.run(transaction)
        return check.report
    }
}
