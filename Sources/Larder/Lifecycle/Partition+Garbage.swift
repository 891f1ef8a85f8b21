public import LarderRecords

extension Partition {
    /// Removes the objects that nothing needs: no field of the root of all queries leads to them, no pin, no watcher of
    /// this process and no named watcher, and no queued mutation. Objects that refer to each other in a circle go like
    /// others.
    ///
    /// Other reads and writes go on meanwhile. What the cache is told meanwhile stays. The file keeps its size, and the
    /// room in it is used again; `larder compact` gives it back.
    ///
    /// - Parameters:
    ///   - isRehearsal: Whether it is only counted what would go.
    ///   - progress: Called some hundred times a second.
    /// - Throws: `.cancelled`, after what was removed by then; `records.damaged`; `records.busy` where a collection is
    ///   under way in this process, or other writes change too much at once; `.operation`, `.variables` or `.syntax`
    ///   where a pin or a named watcher does not fit the schema: what it keeps is not known then.
    /// - Complexity: O(n) in the cache's size; a quarter of a byte of memory for each object that the cache has ever
    ///   had.
    public func collectGarbage(
        isRehearsal: Bool = false, progress: @Sendable (GarbageProgress) -> Void = { _ in }
    ) async throws(LarderError) -> GarbageReport {
        try await collectGarbage(isRehearsal: isRehearsal, sliceTime: .milliseconds(4), progress: progress)
    }

    /// - Parameter sliceTime: For how long it reads, or keeps other writes waiting, at a time.
    package func collectGarbage(
        isRehearsal: Bool = false, sliceTime: Duration, progress: @Sendable (GarbageProgress) -> Void = { _ in }
    ) async throws(LarderError) -> GarbageReport {
        try await core.requireAwake()
        let report = try await noting { (needed) async throws(RecordError) in
            try await core.cache.collectGarbage(
                keeping: needed, isRehearsal: isRehearsal, sliceTime: sliceTime, progress: progress)
        }
        guard report.isFinished else {
            throw LarderError(.cancelled, "The task was cancelled before all garbage was collected")
        }
        return report
    }
}
