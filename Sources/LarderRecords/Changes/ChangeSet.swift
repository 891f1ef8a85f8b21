/// What one commit changed: exactly the fields whose values are different, each once.
///
/// Safe: the caller of `init(encoded:)` lends it the bytes, and each is read only where there is one.
package struct ChangeSet: Sendable, Hashable {
    /// More pairs than this are stored as whole records, and more records than this as everything.
    static let storedLimit = 4096

    /// Ascending; `RecordField.any` stands for a record that came, went, or became another.
    package internal(set) var fields: [RecordField] = []
    /// True where the changes were too many to be kept one by one.
    package internal(set) var isEverything = false
    /// Keys of entities that came into being. Not part of the stored form.
    package internal(set) var createdKeys = KeyList()

    package init() {}

    /// Where it cannot be said what changed.
    static var everything: ChangeSet {
        var changes = ChangeSet()
        changes.isEverything = true
        return changes
    }

    package var isEmpty: Bool { fields.isEmpty && !isEverything }

    /// Brings the fields into order, each once; a record that changed as a whole needs no fields of its own.
    mutating func normalize() {
        if zip(fields, fields.dropFirst()).allSatisfy({ $0.record < $1.record }) { return }
        fields.sort()
        var kept: [RecordField] = []
        kept.reserveCapacity(fields.count)
        for field in fields {
            if let last = kept.last, last == field || last.record == field.record && last.field == RecordField.any {
                continue
            }
            kept.append(field)
        }
        fields = kept
    }

    /// The form in the table `changes`: a byte for the format (1), a byte that is 1 for everything, then for each pair
    /// the difference to the record before and the field, as variable-length integers.
    var encoded: [UInt8] {
        var pairs = fields[...]
        var whole: [RecordField] = []
        if pairs.count > Self.storedLimit {
            for field in fields where whole.last?.record != field.record {
                whole.append(RecordField(record: field.record, field: RecordField.any))
                if whole.count > Self.storedLimit { break }
            }
            pairs = whole[...]
        }
        let isEverything = isEverything || pairs.count > Self.storedLimit
        var bytes: [UInt8] = [1, isEverything ? 1 : 0]
        bytes.reserveCapacity(pairs.count * 3 + 2)
        if isEverything { return bytes }
        var last: UInt64 = 0
        for pair in pairs {
            appendVariableLength(pair.record - last, to: &bytes)
            appendVariableLength(UInt64(pair.field), to: &bytes)
            last = pair.record
        }
        return bytes
    }

    init(encoded bytes: UnsafeRawBufferPointer) throws(RecordError) {
        guard bytes.count >= 2, unsafe bytes[0] == 1 else { throw Self.damaged }
        isEverything = unsafe bytes[1] != 0
        var offset = 2
        var record: UInt64 = 0
        while offset < bytes.count {
            let (step, afterStep) = unsafe try Self.variableLength(bytes, at: offset)
            let (field, afterField) = unsafe try Self.variableLength(bytes, at: afterStep)
            guard let number = UInt32(exactly: field), record <= .max - step else { throw Self.damaged }
            record += step
            fields.append(RecordField(record: record, field: number))
            offset = afterField
        }
    }

    static var damaged: RecordError {
        RecordError(.damaged, "The cache's log of changes is damaged; remove the cache and fetch again")
    }

    private static func variableLength(
        _ bytes: UnsafeRawBufferPointer, at offset: Int
    ) throws(RecordError) -> (UInt64, Int) {
        var value: UInt64 = 0
        var position = offset
        var shift: UInt64 = 0
        while position < bytes.count, shift < 64 {
            let byte = unsafe bytes[position]
            value |= UInt64(byte & 0x7F) << shift
            position += 1
            if byte < 0x80 { return (value, position) }
            shift += 7
        }
        throw damaged
    }
}

/// Cache keys, one after the other in one piece of memory; each becomes a `String` when it is asked for.
///
/// Safe: it owns the memory, copies keys while they are lent, and lends one until `body` returns. What `ends` says lies
/// in the memory, and ascends.
package struct KeyList: Sendable, Hashable, RandomAccessCollection {
    private var bytes: [UInt8] = []
    /// Where each key ends.
    private var ends: [Int] = []

    package init() {}

    package init(_ keys: some Sequence<String>) {
        for var key in keys { key.withUTF8 { unsafe append(UnsafeRawBufferPointer($0)) } }
    }

    package var startIndex: Int { 0 }
    package var endIndex: Int { ends.count }

    package subscript(index: Int) -> String { unsafe withKey(index) { unsafe String(decoding: $0, as: UTF8.self) } }

    mutating func append(_ key: UnsafeRawBufferPointer) {
        unsafe bytes.append(contentsOf: key)
        ends.append(bytes.count)
    }

    mutating func reserveCapacity(_ count: Int, byteCount: Int) {
        ends.reserveCapacity(count)
        bytes.reserveCapacity(byteCount)
    }

    func withKey<Result>(_ index: Int, _ body: (UnsafeRawBufferPointer) throws -> Result) rethrows -> Result {
        let start = index == 0 ? 0 : ends[index - 1]
        let end = ends[index]
        return unsafe try bytes.withUnsafeBytes { unsafe try body(UnsafeRawBufferPointer(rebasing: $0[start..<end])) }
    }
}
