/// What a write says of when fields came: taken down while it is worked out what the write stores.
struct ReceivedNotes {
    /// A record that is stored, whether it is changed or not.
    struct Note {
        var id: RecordID
        /// The fields that stay and did not come, in `ReceivedNotes.others`.
        var others: Range<Int32>
        /// Whether each field has a time of its own; `ReceivedNotes.fields` has the fields that the response brought.
        var isTimedByField: Bool
    }

    let time: ReceivedTime
    /// Of the fields of the root, in seconds.
    let maxAge: UInt32
    private(set) var notes: [Note] = []
    private(set) var others: [FieldID] = []
    private(set) var fields: [SplitFieldKey] = []
    /// Whose fields the maximum age is that of.
    var root: RecordID?

    init(_ age: AnswerAge, now: Int64) {
        time = ReceivedTime(milliseconds: now, age: age.age.components.seconds)
        maxAge = ReceivedTime.maxAge(age.maxAge.map { Int(clamping: $0.components.seconds) })
    }

    /// Takes down that a record came.
    ///
    /// - Parameter leaving: The fields that stay and did not come, in ascending order.
    mutating func note(_ id: RecordID, leaving rest: [FieldID] = [], isTimedByField: Bool = false) {
        let start = Int32(truncatingIfNeeded: others.count)
        others += rest
        notes.append(
            Note(id: id, others: start..<Int32(truncatingIfNeeded: others.count), isTimedByField: isTimedByField))
    }

    /// Takes down that a field came that has a time of its own.
    mutating func note(_ key: SplitFieldKey) { fields.append(key) }

    mutating func sort() {
        if !zip(notes, notes.dropFirst()).allSatisfy({ $0.id <= $1.id }) { notes.sort { $0.id < $1.id } }
    }
}
