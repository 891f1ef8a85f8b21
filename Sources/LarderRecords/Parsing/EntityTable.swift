/// The objects of a response by their cache keys: the first of each.
///
/// Open addressing over indices alone: the keys stay where they are. Twice as many places as objects, so that a search
/// ends soon; keys that were chosen to meet cost time as in any table whose hash is known, which is why the hash begins
/// with a number of this process's own.
///
/// Safe: it keeps indices alone. The tables and the keys are the caller's for the length of a call, and the parser, or
/// `JoinedResponse`, made every index into them.
struct EntityTable {
    private var places: [Int32]
    private let mask: Int
    private static let seed = UInt64.random(in: .min ... .max)

    /// - Parameter capacity: The most objects with a key that will be in it.
    init(capacity: Int) {
        var size = 16
        while size < capacity * 2 { size *= 2 }
        places = Array(repeating: -1, count: size)
        mask = size - 1
    }

    /// The object with that key that was met first; puts this one in its place if there is none.
    ///
    /// - Parameter objects: Of the response; `entities` and `keys` are theirs.
    mutating func first(
        like object: Int, _ objects: UnsafeBufferPointer<ParsedObject>, _ entities: UnsafeBufferPointer<ParsedEntity>,
        _ keys: UnsafeRawBufferPointer
    ) -> Int {
        let key = unsafe entities[Int(objects[object].entity)].key(in: keys)
        var place = unsafe Int(checksum(key, seed: Self.seed)) & mask
        while places[place] >= 0 {
            let other = Int(places[place])
            if unsafe hasSameBytes(entities[Int(objects[other].entity)].key(in: keys), key) { return other }
            place = (place + 1) & mask
        }
        places[place] = Int32(truncatingIfNeeded: object)
        return object
    }
}
