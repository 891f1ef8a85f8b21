/// A field of a record, by their numbers in one generation.
package struct RecordField: Hashable, Sendable, Comparable {
    /// Stands for any field, or for the record as a whole.
    package static let any: UInt32 = 0

    package var record: UInt64
    package var field: UInt32

    package init(record: UInt64, field: UInt32) {
        self.record = record
        self.field = field
    }

    package static func < (left: RecordField, right: RecordField) -> Bool {
        (left.record, left.field) < (right.record, right.field)
    }
}

/// What is read of a record.
package struct FieldSet: Hashable, Sendable {
    /// Ascending, each once. With `RecordField.any`, which is the first, any field makes a difference; those beside it
    /// are what is needed of the root.
    package let fields: [UInt32]

    package init(_ fields: some Sequence<UInt32>) { self.fields = Set(fields).sorted() }

    /// Whether a change of this field makes a difference; with `RecordField.any`, of the record as a whole.
    package func isConcerned(by field: UInt32) -> Bool {
        if field == RecordField.any || fields.first == RecordField.any { return true }
        // Few, mostly.
        return fields.contains(field)
    }
}

/// What an answer depends on.
///
/// A watcher that waits keeps it, so it is small: some three bytes a record, of which most are read alike.
package struct Dependencies: Sendable {
    /// A record that the answer was made of, or would be made of if it existed.
    package struct Read: Equatable {
        package var record: UInt64
        /// In `fieldSets`, what is read of it.
        package var place: UInt32
    }

    /// The generation whose numbers these are; in another one everything may be different.
    package let generation: UInt64
    /// Of each record, ascending: how much greater it is than the one before, and its place, as variable-length integers.
    private let packed: [UInt8]
    /// Different from each other.
    package let fieldSets: [FieldSet]
    /// Swift finds keys equal here that differ only in how they compose characters: a watcher of one hears of both.
    package let absentKeys: Set<String>

    package init(generation: UInt64, fields: Set<RecordField> = [], absentKeys: Set<String>) {
        var builder = Builder()
        for (record, fields) in Dictionary(grouping: fields, by: \.record).sorted(by: { $0.key < $1.key }) {
            builder.add(record, at: builder.place(of: FieldSet(fields.map(\.field))))
        }
        self = builder.dependencies(generation: generation, absentKeys: absentKeys)
    }

    private init(_ builder: Builder, generation: UInt64, absentKeys: Set<String>) {
        self.generation = generation
        // Without what they had grown to.
        (packed, fieldSets) = (Array(builder.packed[...]), Array(builder.fieldSets[...]))
        self.absentKeys = absentKeys
    }

    /// By ascending records, each once.
    ///
    /// - Complexity: O(n)
    package var reads: [Read] {
        var reads: [Read] = []
        var rest = packed[...]
        var record: UInt64 = 0
        while !rest.isEmpty {
            record &+= popVariableLength(from: &rest)
            reads.append(Read(record: record, place: UInt32(truncatingIfNeeded: popVariableLength(from: &rest))))
        }
        return reads
    }

    /// Ascending.
    ///
    /// - Complexity: O(n)
    package var records: [UInt64] { reads.map(\.record) }

    /// What is read of a record; nil where it makes no difference.
    ///
    /// - Complexity: O(n)
    package func fieldSet(of record: UInt64) -> FieldSet? {
        reads.first { $0.record == record }.map { fieldSets[Int($0.place)] }
    }

    struct Builder {
        fileprivate var packed: [UInt8] = []
        fileprivate var fieldSets: [FieldSet] = []
        private var places: [FieldSet: UInt32] = [:]
        private var last: UInt64 = 0

        mutating func place(of set: FieldSet) -> UInt32 {
            if let known = places[set] { return known }
            let place = UInt32(truncatingIfNeeded: fieldSets.count)
            fieldSets.append(set)
            places[set] = place
            return place
        }

        /// - Parameter record: Greater than those before.
        mutating func add(_ record: UInt64, at place: UInt32) {
            appendVariableLength(record - last, to: &packed)
            appendVariableLength(UInt64(place), to: &packed)
            last = record
        }

        func dependencies(generation: UInt64, absentKeys: Set<String>) -> Dependencies {
            Dependencies(self, generation: generation, absentKeys: absentKeys)
        }
    }
}

/// Takes from the front what `appendVariableLength` has written.
private func popVariableLength(from bytes: inout ArraySlice<UInt8>) -> UInt64 {
    var number: UInt64 = 0
    var shift: UInt64 = 0
    while let byte = bytes.popFirst() {
        number |= UInt64(byte & 0x7F) << shift
        if byte < 0x80 { break }
        shift += 7
    }
    return number
}
