import LarderLMDB

/// How old the parts of an answer are, taken in while it is read.
///
/// Safe: the block lies in a page of the snapshot, which outlives the reader that has this and does not change.
@safe struct AgeReading {
    private let now: ReceivedTime
    /// 0 where the time of a part is not known.
    private var oldest = UInt32.max
    /// Whether a part is older than it may be.
    private(set) var isExpired = false
    /// Blocks all of whose records came at one time, which has been taken in: most records of an answer came with it.
    private var taken = TakenBlocks()
    /// The block that was looked into last.
    private var last = Block()
    /// Blocks that were found before, each at its number modulo their count; none before a second one is looked for.
    /// Objects that were stored together are read in another order, which comes back to the same blocks.
    private var blocks: [Block] = []

    /// Safe: its bytes are those of a page of the snapshot.
    @safe private struct Block {
        /// How many are kept at first, and at most.
        static let kept = 64
        static let mostKept = 4_096
        var number = UInt64.max
        var bytes = unsafe UnsafeRawBufferPointer(start: nil, count: 0)
    }

    init(now: ReceivedTime) { self.now = now }

    /// When the oldest part came; nil as `age`.
    var received: ReceivedTime? { oldest == .max || oldest == 0 ? nil : ReceivedTime(seconds: oldest) }

    /// Nil where nothing was read, or where the time of a part is not known.
    var age: Duration? {
        guard oldest != .max else { return nil }
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
        if blocks.isEmpty {
            if last.number != .max { blocks = Array(repeating: Block(), count: Block.kept) }
        } else {
            let kept = blocks[place(of: number)]
            if kept.number == number {
                last = kept
                return
            }
            if kept.number != .max, blocks.count < Block.mostKept { keepMore() }
        }
        last = unsafe Block(number: number)
        if let table = tables.received {
            let found = unsafe try ReceivedBlock.withKey(number) { key throws in
                unsafe try transaction.get(key, in: table)?.withUnsafeBytes { unsafe $0 }
            }
            if let found = unsafe found { unsafe last.bytes = unsafe found }
        }
        if !blocks.isEmpty { blocks[place(of: number)] = last }
    }

    private func place(of number: UInt64) -> Int { Int(number % UInt64(blocks.count)) }

    private mutating func keepMore() {
        let kept = blocks
        blocks = Array(repeating: Block(), count: 4 * kept.count)
        for block in kept where block.number != .max { blocks[place(of: block.number)] = block }
    }

    /// Whether the time of a record that may have any age has been taken in with another's. Never true of the root of all
    /// queries, whose slot differs from those of records that came as a whole.
    @inline(__always)
    mutating func has(_ id: RecordID, maxAge: UInt32) -> Bool {
        maxAge == ReceivedTime.anyAge && taken.contains(ReceivedBlock.number(of: id))
    }

    /// Takes in a record that came as a whole and stands in the block that was looked into last.
    mutating func add(_ slot: ReceivedSlot, maxAge: UInt32) {
        add(slot.time, maxAge: maxAge)
        if unsafe ReceivedBlock.isUniform(last.bytes) { taken.insert(last.number) }
    }

    /// Takes in a part.
    ///
    /// - Parameter maxAge: In seconds.
    @inline(__always)
    mutating func add(_ time: ReceivedTime, maxAge: UInt32) {
        guard let age = time.age(at: now) else {
            oldest = 0
            isExpired = isExpired || maxAge != ReceivedTime.anyAge
            return
        }
        oldest = min(oldest, time.seconds)
        if age >= maxAge { isExpired = true }
    }
}

/// Numbers of blocks. It forgets some where they lie far apart.
private struct TakenBlocks {
    /// Those of the 64 numbers that begin with `start`, a bit for each.
    private struct Window {
        var start = UInt64.max
        var bits: UInt64 = 0
    }

    /// The first that was needed; answers that came at once need no other.
    private var first = Window()
    /// The others, each at its start modulo 64; none before they are needed.
    private var others: [Window] = []

    @inline(__always)
    mutating func contains(_ number: UInt64) -> Bool {
        let start = number >> 6
        if start == first.start { return first.bits >> (number & 63) & 1 == 1 }
        guard !others.isEmpty else { return false }
        let window = others[Int(start & 63)]
        return window.start == start && window.bits >> (number & 63) & 1 == 1
    }

    mutating func insert(_ number: UInt64) {
        let start = number >> 6
        if first.start == .max { first.start = start }
        if start == first.start {
            first.bits |= 1 << (number & 63)
            return
        }
        if others.isEmpty { others = Array(repeating: Window(), count: 64) }
        let place = Int(start & 63)
        if others[place].start != start { others[place] = Window(start: start) }
        others[place].bits |= 1 << (number & 63)
    }
}

extension ResponseReader {
    /// Takes in how old the fields of a record are that are read. Apart from what recurses, to keep its stack frames small.
    mutating func addAge<Snapshot: RecordSnapshot & ~Copyable>(
        of id: RecordID, _ record: RecordView, _ planned: CaseOp, _ reads: CaseReads, _ transaction: borrowing Snapshot
    ) throws {
        guard id < OverlayNumbers.firstRecord, plan.generation.keepsUse else { return }
        let tables = plan.generation.tables
        if id != queryRoot {
            let slot = try ages.slot(of: id, tables, transaction)
            // An object that the server has not sent yet, or not since it went, and that a layer has.
            if slot == .none, transaction.overlay?.record(id) != nil { return }
            guard slot.hasRows else { return ages.add(slot, maxAge: planned.maxAge) }
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
