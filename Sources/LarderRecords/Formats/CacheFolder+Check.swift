extension CacheFolder {
    /// Checks everything, for reading only: see `RecordCache.check`. Only of a cache in the current format.
    package func check() throws(RecordError) -> CheckReport {
        var options = folder.options
        options.isReadOnly = true
        let cache = try RecordCache(folder: path, stamp: folder.stamp, options: options)
        defer { try? cache.close() }
        return try cache.check()
    }

    /// What is wrong with a cache, in one line; nil where nothing is, or where nothing can be said in this format.
    package func finding(_ format: CacheFormat) throws(RecordError) -> String? {
        switch format.state {
        case .damaged(let reason): return reason
        case .absent, .older, .newer: return nil
        case .current: break
        }
        do throws(RecordError) {
            let report = try check()
            guard let problem = report.problems.first else { return nil }
            return report.problemCount > 1 ? "\(problem), and \(report.problemCount - 1) more" : "\(problem)"
        } catch {
            guard let reason = Self.damage(error) else { throw error }
            return reason
        }
    }
}
