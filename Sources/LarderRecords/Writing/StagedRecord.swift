/// A record that a response stores, while it is worked out.
///
/// Plain values of few bytes throughout: a response of a megabyte can have a hundred thousand. Places in the parsed
/// response fit 31 bits, because its text does; what few records need stands in a table of the writer.
struct StagedRecord {
    var id: RecordID
    /// The first of its objects in the response.
    private let firstObject: Int32
    private var sourceObject: Int32
    /// As it is stored, in `ResponseWriter.storedViews`; -1 if it is not, or is a tombstone.
    var existing: Int32 = -1
    private let place: PartPlace
    private var first: Int32 = -1
    private var last: Int32 = -1
    private var count: Int32 = 0
    /// Nothing of what is stored stays that is not in the response.
    var isReplaced = false
    /// Whether the parts in this one were compared with what is stored when it was.
    var isCompared = false
    /// True for a part in whose place the response has something else later on: it is not stored.
    var isAbandoned = false
    /// Whether its fields are those of one object and stand where they were parsed, and not in `ResponseWriter.fields`.
    var isWhole = false
    /// Whether the response says that the object is no more: nothing of it is stored but its version.
    var isDeleted = false
    /// Whether its fields are in `ResponseWriter.fieldIndex`.
    var isIndexed = false

    /// - Parameter place: Nil for an entity.
    init(id: RecordID, object: Int, place: PartPlace? = nil) {
        self.id = id
        firstObject = Int32(truncatingIfNeeded: object)
        sourceObject = firstObject
        self.place = place ?? .none
    }

    var object: Int { Int(firstObject) }

    /// The object whose fields are its own where it `isWhole`.
    var source: Int {
        get { Int(sourceObject) }
        set { sourceObject = Int32(truncatingIfNeeded: newValue) }
    }

    /// In `ResponseWriter.staged`: the record that holds a part; -1 for an entity.
    var holder: Int { Int(place.holder) }
    /// The field that holds a part.
    var holderField: FieldID { place.field }

    /// Its fields in `ResponseWriter.fields`, chained in the order in which they came; -1 where there is none.
    var firstField: Int {
        get { Int(first) }
        set { first = Int32(truncatingIfNeeded: newValue) }
    }
    var lastField: Int {
        get { Int(last) }
        set { last = Int32(truncatingIfNeeded: newValue) }
    }
    var fieldCount: Int {
        get { Int(count) }
        set { count = Int32(truncatingIfNeeded: newValue) }
    }
}

/// A field of a staged record.
struct StagedField {
    var id: FieldID
    /// In `ResponseWriter.keyIDs`: the first of the plan's keys that are this field.
    var key: Int32
    var cell: ParsedCell
    /// The record's next, or -1.
    var next: Int32 = -1
}

/// Which record's which field holds a part.
struct PartPlace {
    /// In `ResponseWriter.staged`.
    var holder: Int32
    var field: FieldID

    static var none: PartPlace { PartPlace(holder: -1, field: 0) }
}

/// A part that is stored, and what a response makes of it.
struct StoredPart {
    var id: RecordID
    var place: PartPlace
    /// Nothing of it stays that is not in the response.
    var isReplaced: Bool
    /// Whether the parts in it were compared with those of the response as well.
    var isCompared: Bool
}

/// Where the record of an object without identity comes from.
enum PartOrigin {
    /// The object that holds it is not stored, and neither is it.
    case unstored
    case new(PartPlace)
    /// The part that stands in its place already, by its index in `ResponseWriter.storedParts`.
    case existing(Int32)
    /// The response has it twice. The other comes before it.
    case same(object: Int32)
}
