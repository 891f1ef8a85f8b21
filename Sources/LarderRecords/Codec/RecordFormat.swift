/// A record's number in its LMDB environment: never used again, and never outside it.
typealias RecordID = UInt64

/// The number of a field key or type name in its LMDB environment; 0 stands for none.
typealias FieldID = UInt32

/// A stored record.
///
/// | bytes | | |
/// | --- | --- | --- |
/// | 0 | format | 1 |
/// | 1 | flags | `RecordFlags` |
/// | 2-3 | count | of the fields |
/// | 4-7 | checksum | of all other bytes and of the RecordID |
/// | 8-11 | type | FieldID of the type's name |
/// | 12-15 | keyCount or ownerField | the length of an entity's cache key, or the FieldID that holds a part |
/// | 16-19 or 16-23 | owner | of a part only: the RecordID that owns it, in four bytes or, by the flags, eight |
/// | 16, 20 or 24 | fields | count x 8 bytes, ascending: FieldID, then a value word |
/// | | key | the entity's cache key in UTF-8 |
/// | | payload | what the value words refer to |
///
/// An *entity* has a cache key and is referred to; a *part* is an object without identity, and belongs to the one
/// field that holds it. A record whose fields are many is *split*: it keeps its header, and each field is an entry
/// of its own in the table `fields`. Integers are little-endian and not aligned.
///
/// A value word is a tag in the upper four bits and 28 bits of content: the value itself where it fits, otherwise
/// the offset of its payload from the record's first byte.
enum RecordFormat {
    static let version: UInt8 = 1
    static let entityHeader = 16
    static let partHeader = 20
    static let widePartHeader = 24
    static let entrySize = 8
    /// The greatest offset that a value word holds, and so a record's greatest size.
    static let maximumSize = 1 << 28
    /// Records with more fields than this are split.
    static let splitThreshold = 64
    /// Compaction moves texts of more bytes than this out of the records: see `TextHeap`.
    static let farThreshold = 256
    /// Lists that are nested deeper are damage: no field's type goes as far (`FieldTypeShape.maximumListDepth`), and
    /// what walks a stored value by recursion ends here.
    static let greatestListDepth = 32
}

struct RecordFlags: OptionSet {
    var rawValue: UInt8
    static let entity = RecordFlags(rawValue: 1)
    /// The object is known to be no more; the record has no fields.
    static let tombstone = RecordFlags(rawValue: 2)
    /// The fields are in the table `fields`.
    static let split = RecordFlags(rawValue: 4)
    /// The number of a part's owner takes eight bytes.
    static let wideOwner = RecordFlags(rawValue: 8)
    static let known: RecordFlags = [.entity, .tombstone, .split, .wideOwner]
}
