import LarderLMDB

/// How old the parts of an answer are, taken in while it is read.
///
/// Safe: the block lies in a page of the snapshot, which outlives the reader that has this and does not change.
@safe struct AgeReading {
    private let now: ReceivedTime
    private var oldest = UInt32.max
    private var isUnknown = false
    /// Whether a part is older than it may be.
    private(set) var isExpired = false
    /// What was taken in last of what may have any age: most records of an answer came at one time.
    private var lastAdded = ReceivedSlot.none
    /// The block that was looked into last.
    private var last = Block()
    /// Blocks that were found before, each at its number modulo `Block.kept`; none before a second one is looked for.
    /// Objects that were stored together are read in another order, which comes back to the same blocks.
    private var blocks: [Block] = []

    /// Safe: its bytes are those of a page of the snapshot.
    @safe private struct Block {
        static let kept = 64
        var number = UInt64.max
        var bytes = unsafe UnsafeRawBufferPointer(start: nil, count: 0)
    }

    init(now: ReceivedTime) { self.now = now }

    /// Nil where nothing was read, or where the time of a part is not known.
    var age: Duration? {
        guard !isUnknown, oldest != .max else { return nil }
        return ReceivedTime(seconds: oldest).age(at: now).map { .seconds(Int64($0)) }
    }

    @inline(__always)
    mutating func slot(
        of id: RecordID, _ tables: Tables, _ transaction: borrowing some RecordSnapshot & ~Copyable
    ) throws -> ReceivedSlot {
        let wanted = ReceivedBlock.number(of: id)
        if last.number != wanted { try look(for: wanted, tables, transaction) }
        return unsafe ReceivedBlock.slot(ReceivedBlock.index(of: id), in: last.bytes)
    }

    private mutating func look(
        for number: UInt64, _ tables: Tables, _ transaction: borrowing some RecordSnapshot & ~Copyable
    ) throws {
        let place = Int(number % UInt64(Block.kept))
        if blocks.isEmpty {
            if last.number != .max { blocks = Array(repeating: Block(), count: Block.kept) }
        } else if blocks[place].number == number {
            last = blocks[place]
            return
        }
        last = unsafe Block(number: number)
        if let table = tables.received {
            let found = unsafe try ReceivedBlock.withKey(number) { key throws in
                unsafe try transaction.get(key, in: table)?.withUnsafeBytes { unsafe $0 }
            }
            if let found = unsafe found { unsafe last.bytes = unsafe found }
        }
        if !blocks.isEmpty { blocks[place] = last }
    }

    /// Takes in a record that came as a whole and stands in the block that was looked into last.
    ///
    /// - Returns: Whether it did; false for the first of each block.
    @inline(__always)
    mutating func addNext(_ id: RecordID, maxAge: UInt32) -> Bool {
        guard last.number == ReceivedBlock.number(of: id) else { return false }
        let slot = unsafe ReceivedBlock.slot(ReceivedBlock.index(of: id), in: last.bytes)
        if slot == lastAdded, maxAge == ReceivedTime.anyAge { return slot != .none }
        guard slot != .none, !slot.hasRows else { return false }
        add(slot.time, maxAge: maxAge)
        if maxAge == ReceivedTime.anyAge { lastAdded = slot }
        return true
    }

    /// Takes in a part.
    ///
    /// - Parameter maxAge: In seconds.
    @inline(__always)
    mutating func add(_ time: ReceivedTime, maxAge: UInt32) {
        guard let age = time.age(at: now) else {
            isUnknown = true
            isExpired = isExpired || maxAge != ReceivedTime.anyAge
            return
        }
        oldest = min(oldest, time.seconds)
        if age >= maxAge { isExpired = true }
    }
}

extension ResponseReader {
    /// Takes in how old the fields of a record are that are read. Apart from what recurses, to keep its stack frames small.
    mutating func addAge<Snapshot: RecordSnapshot & ~Copyable>(
        of id: RecordID, _ record: RecordView, _ planned: CaseOp, _ reads: CaseReads, _ transaction: borrowing Snapshot
    ) throws {
        if id != queryRoot, ages.addNext(id, maxAge: planned.maxAge) { return }
        guard id < OverlayNumbers.firstRecord, plan.generation.keepsUse else { return }
        let tables = plan.generation.tables
        if id != queryRoot {
            let slot = try ages.slot(of: id, tables, transaction)
            // An object that the server has not sent yet, or not since it went, and that a layer has.
            if slot == .none, transaction.overlay?.record(id) != nil { return }
            guard slot.hasRows else { return ages.add(slot.time, maxAge: planned.maxAge) }
            guard record.isSplit else { return try addLeftAges(of: id, slot, reads, transaction) }
        }
        try addOwnAges(of: id, record, reads, transaction)
    }

    /// Of a record of which the last answer left some fields out.
    private mutating func addLeftAges<Snapshot: RecordSnapshot & ~Copyable>(
        of id: RecordID, _ slot: ReceivedSlot, _ reads: CaseReads, _ transaction: borrowing Snapshot
    ) throws {
        let tables = plan.generation.tables
        var left = try tables.receivedPairs(SplitFieldKey(record: id, field: 0), transaction)[...]
        for index in Int(reads.start)..<Int(reads.start + reads.count) {
            let read = plan.reads[index]
            guard read.id != FieldRead.typename else { continue }
            while let first = left.first, first.0 < read.id { left = left.dropFirst() }
            let own = left.first.flatMap { $0.0 == read.id ? ReceivedTime(seconds: $0.1) : nil }
            ages.add(own ?? slot.time, maxAge: layout.fields[Int(read.field)].maxAge)
        }
    }

    /// Of a record each of whose fields has a time of its own.
    private mutating func addOwnAges<Snapshot: RecordSnapshot & ~Copyable>(
        of id: RecordID, _ record: RecordView, _ reads: CaseReads, _ transaction: borrowing Snapshot
    ) throws {
        for index in Int(reads.start)..<Int(reads.start + reads.count) {
            let read = plan.reads[index]
            guard read.id != FieldRead.typename, read.id != 0, read.id < OverlayNumbers.firstField else { continue }
            let key = SplitFieldKey(record: id, field: read.id)
            let maxAge = layout.fields[Int(read.field)].maxAge
            if let (seconds, answerMaxAge) = try plan.generation.tables.receivedPairs(key, transaction).first {
                ages.add(ReceivedTime(seconds: seconds), maxAge: min(maxAge, answerMaxAge))
                continue
            }
            guard transaction.overlay == nil else { continue }
            let isThere =
                record.isSplit
                ? try plan.generation.splitField(key, transaction) != nil : record.value(of: read.id) != nil
            if isThere { ages.add(.unknown, maxAge: maxAge) }
        }
    }
}
