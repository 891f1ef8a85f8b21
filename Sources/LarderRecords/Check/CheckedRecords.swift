/// A set of RecordIDs that takes a bit for each number that a cache gives, and bears any other: a damaged file has
/// numbers of every size.
struct CheckedRecords {
    /// More records than that no cache has given numbers.
    private static let nearLimit: RecordID = 1 << 32

    private var near = RecordSet()
    private var far: Set<RecordID> = []

    func contains(_ id: RecordID) -> Bool { id < Self.nearLimit ? near.contains(id) : far.contains(id) }

    /// - Returns: Whether it was not in the set.
    @discardableResult
    mutating func insert(_ id: RecordID) -> Bool {
        id < Self.nearLimit ? near.insert(id) : far.insert(id).inserted
    }

    /// Calls `body` with each number, in ascending order, and is empty then.
    mutating func drain(_ body: (RecordID) -> Void) {
        var next: RecordID = 0
        while let id = near.popFirst(from: next) {
            body(id)
            next = id
        }
        for id in far.sorted() { body(id) }
        far = []
    }
}
