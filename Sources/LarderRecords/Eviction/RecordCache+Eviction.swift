import LarderLMDB

extension RecordCache {
    /// Removes objects, and fields of the root of all queries, that came too long ago, and what is garbage then. While the
    /// tables take more bytes than they may, it collects garbage, and removes the objects and fields that came and were
    /// read longest ago, approximately; a field also where all objects that it names are gone.
    ///
    /// What `roots` names stays, and what optimistic layers touch. What goes is a miss until it comes again; what nothing
    /// else leads to is garbage afterwards, and is collected where there is a bound to be kept. Reads and writes go on
    /// meanwhile; what they bring stays.
    ///
    /// - Parameters:
    ///   - isRehearsal: Whether it is only counted what would go.
    ///   - sliceTime: For how long it reads, or keeps other writes waiting, at a time; roughly.
    ///   - progress: Called after each slice.
    /// - Returns: What went, until the task was cancelled. The bound may not be kept where too much is needed: then all
    ///   else is gone.
    /// - Throws: `.damaged`; what `roots` throws, as the cause of `.storage`; as `collectGarbage`.
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
        func remove(
            _ share: Share?, before earliest: UInt32, sparingUsed: Bool = true
        ) async throws(RecordError) -> Eviction {
            let eviction = Eviction(keeping: roots, under: layers, now: now, sparesUsed: sparingUsed)
            try await run(eviction, share, earliest, isRehearsal, sliceTime, progress)
            report.objects += eviction.report.objects
            report.fields += eviction.report.fields
            report.bytes += eviction.report.bytes
            return eviction
        }
        func collect() async throws(RecordError) {
            let garbage = try await collectGarbage(
                keeping: roots, isRehearsal: isRehearsal, sliceTime: sliceTime, progress: { _ in progress() })
            report.garbage.add(garbage)
        }
        /// How many bytes are to be freed.
        func bytesBeyond() throws(RecordError) -> Int {
            let usage = try usage()
            report.bytesInUse = usage.bytes
            let bytes = usage.bytes - (isRehearsal ? report.garbage.bytes : 0)
            return rule.maximumBytes.map { max(0, bytes - max(0, $0)) } ?? 0
        }
        if earliest > 0, !isRehearsal {
            let old = try await remove(nil, before: earliest)
            // Keys of what is gone would stay otherwise.
            if old.report.objects + old.report.fields > 0, !Task.isCancelled { try await collect() }
        }
        if try bytesBeyond() > 0, !Task.isCancelled { try await collect() }
        var (sparesUsed, round) = (true, 0)
        for _ in 0..<Self.maximumRounds {
            let excess = try bytesBeyond()
            guard excess > 0 || isRehearsal && earliest > 0, !Task.isCancelled else { break }
            let share = Share(excess: excess, of: try usage().freeable, round: round)
            let eviction = try await remove(
                share, before: isRehearsal ? earliest : 0, sparingUsed: sparesUsed)
            if isRehearsal { break }
            round += 1
            if eviction.report.objects + eviction.report.fields > 0 {
                try await collect()
            } else if !eviction.isOutdated {
                // What was used lately goes last.
                guard sparesUsed else { break }
                (sparesUsed, round) = (false, 0)
            }
        }
        if !isRehearsal, report.objects > 0 { generations.current.used.forget() }
        report.bytesInUse = try bytesInUse()
        return report
    }

    /// Other processes may write, and compact, as fast as an eviction goes on.
    private static var maximumRounds: Int { 32 }

    /// The bytes of the pages that the tables take, but for the log of changes, which has its own bound.
    package func bytesInUse() throws(RecordError) -> Int { try usage().bytes }

    /// Those bytes, and how many of them are of tables that an eviction makes smaller.
    private func usage() throws(RecordError) -> (bytes: Int, freeable: Int) {
        let statistics = try inspect.statistics()
        var usage = (bytes: 0, freeable: 0)
        for table in statistics.tables where table.name != "changes" {
            let bytes = (table.branchPages + table.leafPages + table.overflowPages) * statistics.pageSize
            usage.bytes += bytes
            if ["records", "fields", "keys", "received"].contains(table.name) { usage.freeable += bytes }
        }
        return usage
    }

    /// The bytes of the tables that no eviction makes smaller.
    package func bytesOfOwnTables() throws(RecordError) -> Int {
        let usage = try usage()
        return usage.bytes - usage.freeable
    }

    private func run(
        _ eviction: Eviction, _ share: Share?, _ earliest: UInt32, _ isRehearsal: Bool, _ sliceTime: Duration,
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
        eviction.setLimit(share?.bytes(of: eviction.surveyedBytes) ?? 0, earliest)
        guard !eviction.isNothing, !eviction.isOutdated else { return }
        place = .records(0)
        var size = SliceSize(for: sliceTime, atMost: Eviction.candidateLimit)
        while !place.isEnd, !eviction.isOutdated {
            guard !Task.isCancelled else { return }
            var next = place
            let found = try translated {
                try eviction.find(from: &next, isRehearsal: isRehearsal, sliceTime, generations)
            }
            place = next
            await Task.yield()
            var rest = found[...]
            while !isRehearsal, !rest.isEmpty, !Task.isCancelled {
                eviction.propose(rest.prefix(size.count))
                let start = SuspendingClock.now
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

/// How much of the objects and fields a round removes.
private struct Share {
    let excess: Int
    /// The bytes of the pages of the tables that get smaller.
    let freeable: Int
    let round: Int

    init(excess: Int, of freeable: Int, round: Int) {
        (self.excess, self.freeable, self.round) = (excess, freeable, round)
    }

    /// An object takes more of the pages than its own bytes, with its parts and its key, and pages of which a part stays
    /// give nothing back: each round removes twice as much beyond what should be enough, and the ninth all that may go.
    func bytes(of whole: Int) -> Int {
        guard excess > 0 else { return 0 }
        let expected = Double(whole) * Double(excess) / Double(max(freeable, 1))
        return min(whole, Int(min(expected, Double(whole)).rounded(.up)) + whole >> max(0, 8 - round) + 1)
    }
}

extension Eviction.Place {
    var isEnd: Bool { if case .end = self { true } else { false } }
}
