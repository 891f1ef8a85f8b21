import LarderLMDB

/// The names of fields and types that the records of a generation use, by their numbers.
///
/// Safe: a record or key is looked at where it lies in the transaction, which is borrowed, and only numbers of it are
/// kept.
struct UsedNames {
    private var numbers: Set<FieldID> = []
    /// Those that were met since `forgetFresh`.
    private(set) var fresh: [FieldID] = []
    /// Nearly all fields of a record are those of the record before: the number that was met last in each place.
    private var recent = [FieldID](repeating: 0, count: 1 << 12)

    func contains(_ number: UInt64) -> Bool { FieldID(exactly: number).map(numbers.contains) ?? false }

    private mutating func insert(_ number: FieldID) {
        let place = Int(number) & (recent.count - 1)
        guard recent[place] != number else { return }
        recent[place] = number
        if numbers.insert(number).inserted { fresh.append(number) }
    }

    mutating func forgetFresh() { fresh.removeAll() }

    /// Takes in the names that a record uses.
    mutating func insert(_ record: RecordView) {
        insert(record.type)
        if let owner = record.owner { insert(owner.field) }
        for index in 0..<record.count { insert(record.field(index)) }
    }

    mutating func insert(_ key: SplitFieldKey) { insert(key.field) }

    /// - Complexity: O(n) in the fields of all records; reads no payloads.
    mutating func collect(
        _ generation: Generation, _ transaction: borrowing some RecordSnapshot & ~Copyable
    ) throws {
        var records = try transaction.cursor(in: generation.tables.records)
        var entry = try records.first()
        while let found = entry {
            unsafe insert(try RecordView(unsafe found.value.withUnsafeBytes { unsafe $0 }))
            entry = try records.next()
        }
        var fields = try transaction.cursor(in: generation.tables.fields)
        entry = try fields.first()
        while let found = entry {
            if let key = unsafe found.key.withUnsafeBytes({ unsafe SplitFieldKey($0) }) { insert(key) }
            entry = try fields.next()
        }
    }
}
