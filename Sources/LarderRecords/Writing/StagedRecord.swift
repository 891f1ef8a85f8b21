/// A record that a response stores, while it is worked out.
///
/// Plain values throughout: a response has thousands.
struct StagedRecord {
    var id: RecordID
    /// The first of its objects in the response.
    var object: Int
    /// As it is stored; nil if it is not, or is a tombstone.
    var existing: RecordView?
    /// Nothing of what is stored stays that is not in the response.
    var isReplaced = false
    /// Which record's which field holds a part; nil for an entity.
    var owner: RecordField?
    /// In `ResponseWriter.staged`: the record that holds a part which is stored already; -1 for others.
    var holder = -1
    /// Whether the parts in this one were compared with what is stored when it was.
    var isCompared = false
    /// True for a part in whose place the response has something else later on: it is not stored.
    var isAbandoned = false
    /// The object whose fields are its own where it `isWhole`.
    var source: Int
    /// Whether its fields are those of one object and stand where they were parsed, and not in `ResponseWriter.fields`.
    var isWhole = false
    /// Its fields in `ResponseWriter.fields`, chained in the order in which they came; -1 where there is none.
    var firstField = -1
    var lastField = -1
    var fieldCount = 0
    /// Whether its fields are in `ResponseWriter.fieldIndex`.
    var isIndexed = false

    init(id: RecordID, object: Int, owner: RecordField? = nil) {
        self.id = id
        self.object = object
        self.owner = owner
        source = object
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

/// A part that is stored, and what a response makes of it.
struct StoredPart {
    var id: RecordID
    var owner: RecordField
    /// In `ResponseWriter.staged`: the record that holds it.
    var holder: Int
    /// Nothing of it stays that is not in the response.
    var isReplaced: Bool
    /// Whether the parts in it were compared with those of the response as well.
    var isCompared: Bool
}

/// Where the record of an object without identity comes from.
enum PartOrigin {
    /// The object that holds it is not stored, and neither is it.
    case unstored
    case new(owner: RecordField)
    /// The part that stands in its place already.
    case existing(StoredPart)
    /// The response has it twice. The other comes before it.
    case same(object: Int)
}
