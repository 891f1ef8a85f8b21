import LarderGraphQL
import LarderLMDB

/// What an eviction lets go of.
package struct EvictionRule: Sendable, Hashable {
    /// The bytes that the tables' pages may take.
    package var maximumBytes: Int?
    /// What came longer ago goes.
    package var maximumAge: Duration?

    package init(maximumBytes: Int? = nil, maximumAge: Duration? = nil) {
        (self.maximumBytes, self.maximumAge) = (maximumBytes, maximumAge)
    }
}

/// What an eviction did, or would do.
public struct EvictionReport: Sendable, Hashable {
    /// Objects with a cache key that are gone; reading one is a miss until it comes again.
    public package(set) var objects = 0
    /// Fields of the root of all queries that are gone.
    public package(set) var fields = 0
    /// The bytes of what is gone, without what LMDB adds.
    public package(set) var bytes = 0
    /// The bytes of the pages that the tables use afterwards, those of the log of changes apart; garbage that is left
    /// counts.
    public package(set) var bytesInUse = 0
    /// What was collected on the way, or would be.
    package var garbage = GarbageReport()

    package init() {}
}

/// One round of an eviction: a survey of what may go and of when it came, a limit, and short writes that remove what
/// came before it.
///
/// What a watcher, a pin or a queued mutation needs stays: what its own answer is made of, and not what that leads to.
/// What came or was used meanwhile stays as well.
///
/// `@unchecked Sendable`: turns guard it. One task calls all of it but `remove`, and awaits each write; only that write
/// calls `remove`, on the writer's thread, and the write queue begins no step of a write that its caller has given up.
///
/// Safe: stored bytes are counted before the call that lends them returns.
final class Eviction: @unchecked Sendable {
    enum Candidate {
        case object(RecordID)
        case rootField(FieldID, bytes: Int)
    }

    private let roots: any CollectionRoots
    private let layers: LayerStack
    private let now: ReceivedTime
    /// Whether what was used lately stays.
    private let sparesUsed: Bool
    private var layerSet: LayerSet?
    private var numbering: UInt64?
    private var root: RecordID?
    private var kept = RecordSet()
    /// Of the root.
    private var keptFields: Set<FieldID> = []
    /// Bytes by the upper bits of when they came, as `ReceivedTime.standing` has it.
    private var survey: [UInt32: Int] = [:]
    /// Of the objects that stay.
    private var keptBytes = 0
    /// What a rehearsal has found to go.
    private var gone = RecordSet()
    /// What came before goes, in seconds of `ReceivedTime`.
    private var limit: UInt32 = 0
    /// What came before is too old, whether it was used or not.
    private var earliest: UInt32 = 0
    /// How many bytes may go of what came in the `width` seconds from the limit on.
    private var budget = 0
    /// Whether some of what came then goes.
    private var isShared = false
    private var candidates: [Candidate] = []
    private(set) var handled = 0
    private var removed = EvictionReport()
    private(set) var report = EvictionReport()
    private(set) var isOutdated = false

    /// Times are told apart by so many bits less.
    private static let shift: UInt32 = 4
    static let candidateLimit = 500

    init(keeping roots: any CollectionRoots, under layers: LayerStack, now: ReceivedTime, sparesUsed: Bool) {
        (self.roots, self.layers, self.now, self.sparesUsed) = (roots, layers, now, sparesUsed)
    }

    // MARK: What stays

    func begin(in generations: Generations) throws {
        let needed = try roots.needed(fromStart: true)
        let set = layers.current
        let keys = try set.map { try $0.touchedKeys(0..<$0.layers.count) } ?? []
        layerSet = set
        try generations.withSnapshot { generation, transaction in
            numbering = generation.identity
            root = try generation.tables.record(of: CacheKey.queryRoot.text, transaction)
            try keep(needed, keys, generation, transaction)
        }
    }

    private func keep(
        _ needed: [Dependencies], _ keys: [[UInt8]], _ generation: Generation,
        _ transaction: borrowing some RecordSnapshot & ~Copyable
    ) throws {
        for dependencies in needed {
            if dependencies.generation == numbering {
                for record in dependencies.records where record < OverlayNumbers.firstRecord && record != root {
                    kept.insert(record)
                }
                if let root { keptFields.formUnion(dependencies.fieldSet(of: root)?.fields ?? []) }
            }
            for key in dependencies.absentKeys {
                if let id = try generation.tables.record(of: key, transaction) { kept.insert(id) }
            }
        }
        for key in keys {
            if let id = try generation.tables.record(of: key, transaction), id != root { kept.insert(id) }
        }
    }

    // MARK: Survey

    /// Where a walk through what may go has come.
    enum Place {
        case records(RecordID)
        case rootFields(FieldID)
        case end
    }

    /// Walks on for the time of a slice, and hands over all that may go.
    private func walk(
        from place: Place, until deadline: SuspendingClock.Instant, _ generation: Generation,
        _ transaction: borrowing ReadTransaction, _ body: (Candidate, _ seconds: UInt32, _ bytes: Int) throws -> Bool
    ) throws -> Place {
        let tables = generation.tables
        switch place {
        case .end: return .end
        case .records(let start):
            var cursor = try transaction.cursor(in: tables.records)
            var entry = try cursor.seek(atLeast: start)
            var (number, slots, seen) = (UInt64.max, ReceivedBlock.empty, 0)
            while let found = entry {
                let id = found.integerKey
                seen += 1
                if seen % 64 == 0, .now >= deadline { return .records(id) }
                let record = unsafe try RecordView(unsafe found.value.withUnsafeBytes { unsafe $0 })
                if !record.isEntity || record.isTombstone || id == root {
                    // A part goes with its object, and the fields of the root have a walk of their own.
                } else if kept.contains(id) {
                    keptBytes += found.value.byteCount
                } else {
                    if number != ReceivedBlock.number(of: id) {
                        number = ReceivedBlock.number(of: id)
                        slots = try tables.receivedSlots(number, transaction)
                    }
                    let time = slots[ReceivedBlock.index(of: id)].time.standing(at: now)
                    if isSpared(id, time, generation) {
                        keptBytes += found.value.byteCount
                    } else if try !body(.object(id), time, found.value.byteCount) {
                        return .records(id + 1)
                    }
                }
                entry = try cursor.next()
            }
            return .rootFields(0)
        case .rootFields(let start):
            guard let root, let record = try generation.record(root, transaction) else { return .end }
            var fields: [(FieldID, Int)] = []
            if record.isSplit {
                try generation.forEachSplitField(of: root, transaction) { field, payload in
                    unsafe fields.append((field, payload.bytes.count))
                }
            } else {
                // Their payloads are not told apart.
                for index in 0..<record.count { fields.append((record.field(index), RecordFormat.entrySize)) }
            }
            // A watcher that waits for a field which never came waits for any field, and needs none that is there.
            for (field, bytes) in fields where field >= start && !keptFields.contains(field) {
                let row = try tables.receivedPairs(SplitFieldKey(record: root, field: field), transaction)
                let candidate = Candidate.rootField(field, bytes: bytes)
                let time = ReceivedTime(seconds: row.first?.0 ?? 0).standing(at: now)
                guard try body(candidate, time, bytes) else { return .rootFields(field + 1) }
            }
            return .end
        }
    }

    /// Whether an object stays because it was used lately.
    private func isSpared(_ id: RecordID, _ seconds: UInt32, _ generation: Generation) -> Bool {
        sparesUsed && seconds >= earliest && generation.used.contains(id)
    }

    /// Takes in what may go, and when it came.
    func look(from place: Place, _ time: Duration, _ generations: Generations) throws -> Place {
        try generations.withSnapshot { generation, transaction in
            guard generation.identity == numbering else {
                isOutdated = true
                return .end
            }
            return try walk(from: place, until: .now + time, generation, transaction) { _, seconds, bytes in
                survey[seconds >> Self.shift, default: 0] += bytes
                return true
            }
        }
    }

    /// The bytes of all objects and fields of the root, those included that stay.
    var surveyedBytes: Int { survey.values.reduce(keptBytes, +) }

    /// Sets the limit.
    ///
    /// - Parameters:
    ///   - bytes: How many are to go, whatever their age.
    ///   - earliest: What came before goes all the same.
    func setLimit(_ bytes: Int, _ earliest: UInt32) {
        (limit, self.earliest) = (earliest, earliest)
        var rest = bytes
        for (time, count) in survey.sorted(by: { $0.key < $1.key }) {
            guard rest > 0 else { break }
            guard time << Self.shift >= earliest else {
                rest -= count
                continue
            }
            limit = time << Self.shift
            (budget, isShared) = (rest, true)
            if count <= rest { (limit, budget, isShared) = ((time + 1) << Self.shift, 0, false) }
            rest -= count
        }
    }

    var isNothing: Bool { limit == 0 && budget <= 0 }

    private func goes(_ seconds: UInt32, _ bytes: Int) -> Bool {
        if seconds < limit { return true }
        guard budget > 0, seconds >> Self.shift == limit >> Self.shift else { return false }
        budget -= bytes
        return true
    }

    /// What goes, in one slice; `place` is where to go on.
    ///
    /// A field of the root goes with the objects that it names, where all of them go: else their keys would have to stay.
    func find(
        from place: inout Place, isRehearsal: Bool, _ time: Duration, _ generations: Generations
    ) throws -> [Candidate] {
        var found: [Candidate] = []
        place = try generations.withSnapshot { generation, transaction in
            guard generation.identity == numbering else {
                isOutdated = true
                return .end
            }
            return try walk(from: place, until: .now + time, generation, transaction) { candidate, seconds, bytes in
                let isDue =
                    switch candidate {
                    case .object: goes(seconds, bytes)
                    case .rootField(let field, _):
                        try !isSpared(field, seconds, generation, transaction) && goes(seconds, bytes)
                            || namesNothing(field, generation, transaction)
                    }
                guard isDue else { return true }
                if isRehearsal {
                    if case .object(let id) = candidate { gone.insert(id) }
                    removed.bytes += try wholeBytes(of: candidate, generation, transaction)
                }
                found.append(candidate)
                count(candidate)
                return found.count < Self.candidateLimit
            }
        }
        return found
    }

    private func count(_ candidate: Candidate) {
        switch candidate {
        case .object: removed.objects += 1
        case .rootField: removed.fields += 1
        }
    }

    /// The bytes of a candidate with its parts and their fields.
    private func wholeBytes(
        of candidate: Candidate, _ generation: Generation, _ transaction: borrowing ReadTransaction
    ) throws -> Int {
        var changes = RecordChanges(try GenerationState.stored(transaction, generation.tables))
        switch candidate {
        case .object(let id):
            _ = try changes.removeEntity(id, leavingTombstone: false, generation, transaction)
            return changes.removedBytes
        case .rootField(let field, let bytes):
            guard let root, let record = try generation.record(root, transaction),
                let (word, payload) = try generation.value(of: field, in: record, root, transaction)
            else { return 0 }
            try changes.removeParts(payload.parts(in: word), generation, transaction)
            return bytes + changes.removedBytes
        }
    }

    /// What `find` found is only counted.
    func rehearse() {
        report = removed
    }

    // MARK: Removing

    func propose(_ candidates: ArraySlice<Candidate>) { self.candidates = Array(candidates) }

    /// Removes those of the candidates that nothing needs by now. On the writer's thread; may be called again where the
    /// transaction has to be made again.
    func remove(
        from generation: Generation, _ transaction: borrowing WriteTransaction, _ changes: inout RecordChanges,
        within time: Duration
    ) throws {
        (handled, removed, isOutdated) = (0, EvictionReport(), generation.identity != numbering)
        guard !isOutdated else { return }
        let set = layers.current
        let first = set.map { set in layerSet.map { set.begins(with: $0) ? $0.layers.count : 0 } ?? 0 } ?? 0
        try keep(
            roots.newlyWatched(), set.map { try $0.touchedKeys(first..<max(first, $0.layers.count)) } ?? [], generation,
            transaction)
        layerSet = set
        let deadline = SuspendingClock.now + time
        let before = changes.removedBytes
        var fields: Set<FieldID> = []
        for candidate in candidates {
            switch candidate {
            case .object(let id):
                // What came or was used since it was found stays.
                guard !kept.contains(id), try came(id, generation, transaction) else { break }
                guard try changes.removeEntity(id, leavingTombstone: false, generation, transaction) else { break }
                count(candidate)
            case .rootField(let field, _):
                guard !keptFields.contains(field),
                    try came(field, generation, transaction) || namesNothing(field, generation, transaction)
                else { break }
                fields.insert(field)
                count(candidate)
            }
            handled += 1
            if .now >= deadline { break }
        }
        if let root, !fields.isEmpty { try changes.removeFields(fields, of: root, generation, transaction) }
        removed.bytes = changes.removedBytes - before
    }

    /// Whether an object came before the end of the limit, still, and was not used since.
    private func came(
        _ id: RecordID, _ generation: Generation, _ transaction: borrowing WriteTransaction
    ) throws -> Bool {
        let slots = try generation.tables.receivedSlots(ReceivedBlock.number(of: id), transaction)
        let time = slots[ReceivedBlock.index(of: id)].time
        return isBeforeEnd(time) && !isSpared(id, time.standing(at: now), generation)
    }

    /// Whether a field of the root did.
    private func came(
        _ field: FieldID, _ generation: Generation, _ transaction: borrowing WriteTransaction
    ) throws -> Bool {
        guard let root else { return false }
        let row = try generation.tables.receivedPairs(SplitFieldKey(record: root, field: field), transaction)
        let time = ReceivedTime(seconds: row.first?.0 ?? 0)
        return try isBeforeEnd(time) && !isSpared(field, time.standing(at: now), generation, transaction)
    }

    private func isBeforeEnd(_ time: ReceivedTime) -> Bool {
        let seconds = time.standing(at: now)
        return seconds < limit || isShared && seconds >> Self.shift == limit >> Self.shift
    }

    /// Whether a field of the root stays for an object that was used lately, which would be garbage without it.
    private func isSpared(
        _ field: FieldID, _ seconds: UInt32, _ generation: Generation,
        _ transaction: borrowing some RecordSnapshot & ~Copyable
    ) throws -> Bool {
        guard sparesUsed, seconds >= earliest else { return false }
        return try objects(namedBy: field, generation, transaction).contains { generation.used.contains($0.id) }
    }

    /// Whether a field of the root names objects none of which is there.
    private func namesNothing(
        _ field: FieldID, _ generation: Generation, _ transaction: borrowing some RecordSnapshot & ~Copyable
    ) throws -> Bool {
        let named = try objects(namedBy: field, generation, transaction)
        return !named.isEmpty && named.allSatisfy { !$0.isThere || gone.contains($0.id) }
    }

    /// The objects that a field of the root names, itself or by its parts.
    private func objects(
        namedBy field: FieldID, _ generation: Generation, _ transaction: borrowing some RecordSnapshot & ~Copyable
    ) throws -> [(id: RecordID, isThere: Bool)] {
        guard let root, let record = try generation.record(root, transaction),
            let (word, payload) = try generation.value(of: field, in: record, root, transaction)
        else { return [] }
        var rest: [RecordID] = []
        try payload.collectRecords(in: word, into: &rest, alsoReferences: true)
        var seen: Set<RecordID> = []
        var found: [(id: RecordID, isThere: Bool)] = []
        while let id = rest.popLast() {
            // A damaged file could make a part hold itself.
            guard seen.insert(id).inserted else { continue }
            guard let target = try generation.record(id, transaction), !target.isEntity else {
                found.append((id, try generation.record(id, transaction) != nil))
                continue
            }
            for index in 0..<target.count {
                try target.payload.collectRecords(in: target.value(index), into: &rest, alsoReferences: true)
            }
            guard target.isSplit else { continue }
            try generation.forEachSplitField(of: id, transaction) { (_, payload) throws in
                try payload.collectRecords(in: payload.word, into: &rest, alsoReferences: true)
            }
        }
        return found
    }

    func committed() {
        report.objects += removed.objects
        report.fields += removed.fields
        report.bytes += removed.bytes
    }
}
