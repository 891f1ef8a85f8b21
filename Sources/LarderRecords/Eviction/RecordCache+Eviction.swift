import LarderLMDB

extension RecordCache {
    /// Removes objects, and fields of the root of all queries, that came too long ago. While the tables take more bytes
    /// than they may, it also removes the objects and fields that came and were read longest ago, approximately.
    ///
    /// What `roots` names stays, and what optimistic layers touch. What goes is a miss until it comes again; what nothing
    /// else leads to is garbage afterwards. Reads and writes go on meanwhile; what they bring stays.
    ///
    /// - Parameters:
    ///   - isRehearsal: Whether it is only counted what would go.
    ///   - sliceTime: For how long it reads, or keeps other writes waiting, at a time; roughly.
    ///   - progress: Called after each slice.
    /// - Returns: What went, until the task was cancelled. The bound may not be kept where too much is needed.
    /// - Throws: `.damaged`; what `roots` throws, as the cause of `.storage`.
    /// - Complexity: O(n) in the cache's size, as often as it takes to keep the bound; O(1) where it is kept and there is
    ///   no maximum age.
    package func evict(
        _ rule: EvictionRule, keeping roots: any CollectionRoots, isRehearsal: Bool = false,
        sliceTime: Duration = .milliseconds(4), progress: @Sendable () -> Void = {}
    ) async throws(RecordError) -> EvictionReport {
        var report = EvictionReport()
        let now = ReceivedTime(milliseconds: options.now())
        let maxAge = rule.maximumAge.map { UInt32(clamping: $0.components.seconds) }
        // An age that is not known is more than any maximum.
        let earliest = maxAge.map { now.seconds > $0 ? now.seconds - $0 : 1 } ?? 0
        for round in 0..<Self.maximumRounds {
            report.bytesInUse = try bytesInUse()
            let excess = rule.maximumBytes.map { max(0, report.bytesInUse - max(0, $0)) } ?? 0
            guard excess > 0 || round == 0 && earliest > 0, !Task.isCancelled else { break }
            let eviction = Eviction(keeping: roots, under: layers, now: now)
            // An object takes more of the pages than its own bytes, and takes its parts along: half at a time.
            let share = isRehearsal || round + 1 == Self.maximumRounds ? excess : (excess + 1) / 2
            try await run(eviction, share, earliest, isRehearsal, sliceTime, progress)
            report.objects += eviction.report.objects
            report.fields += eviction.report.fields
            report.bytes += eviction.report.bytes
            guard !isRehearsal, eviction.report.objects + eviction.report.fields > 0 else { break }
        }
        if !isRehearsal, report.objects > 0 { generations.current.used.forget() }
        report.bytesInUse = try bytesInUse()
        return report
    }

    /// Pages of which a part is still needed give nothing back: more has to go.
    private static var maximumRounds: Int { 8 }

    /// The bytes of the pages that the tables take.
    package func bytesInUse() throws(RecordError) -> Int {
        let statistics = try inspect.statistics()
        let pages = statistics.tables.reduce(0) { $0 + $1.branchPages + $1.leafPages + $1.overflowPages }
        return pages * statistics.pageSize
    }

    private func run(
        _ eviction: Eviction, _ excess: Int, _ earliest: UInt32, _ isRehearsal: Bool, _ sliceTime: Duration,
        _ progress: () -> Void
    ) async throws(RecordError) {
        try translated { try eviction.begin(in: generations) }
        var place = Eviction.Place.records(0)
        while !place.isEnd {
            guard !Task.isCancelled else { return }
            let start = place
            place = try translated { try eviction.look(from: start, sliceTime, generations) }
            progress()
            await Task.yield()
        }
        eviction.setLimit(excess, earliest)
        guard !eviction.isNothing, !eviction.isOutdated else { return }
        place = .records(0)
        var size = SliceSize(for: sliceTime, atMost: Eviction.candidateLimit)
        while !place.isEnd, !eviction.isOutdated {
            guard !Task.isCancelled else { return }
            var next = place
            let found = try translated { try eviction.find(from: &next, sliceTime, generations) }
            place = next
            await Task.yield()
            var rest = found[...]
            while !isRehearsal, !rest.isEmpty, !Task.isCancelled {
                eviction.propose(rest.prefix(size.count))
                let start = ContinuousClock.now
                _ = try await write([.evict(eviction, within: sliceTime)], deadline: nil)
                size.took(.now - start)
                progress()
                guard !eviction.isOutdated else { return }
                eviction.committed()
                rest = rest.dropFirst(max(eviction.handled, 1))
            }
        }
        if isRehearsal { eviction.rehearse() }
    }
}

extension Eviction.Place {
    var isEnd: Bool { if case .end = self { true } else { false } }
}
