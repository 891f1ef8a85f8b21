/// What leads from one state of a list to the next, as a table animates it: removals, insertions and moves in one batch,
/// and updates after it, since a table in a batch takes the rows to reload by their old places.
///
/// ```swift
/// let difference = ListDifference(from: shown, to: state.objects) { $0["id"]?.string }
/// table.performBatchUpdates {
///     table.deleteRows(difference.removals)      // places in the old list
///     table.insertRows(difference.insertions)    // places in the new list
///     for move in difference.moves { table.moveRow(from: move.old, to: move.new) }
/// }
/// table.reloadRows(difference.updates)           // places in the new list
/// ```
///
/// An element that is in both lists is never both removed and inserted. As few elements move as can be.
public struct ListDifference: Sendable, Hashable {
    /// An element that is in both lists, and changes its order with the elements that stay in place.
    public struct Move: Sendable, Hashable {
        /// Its place in the old list.
        public var old: Int
        /// Its place in the new list.
        public var new: Int

        /// From one place to another.
        package init(old: Int, new: Int) {
            self.old = old
            self.new = new
        }
    }

    /// The places in the old list of elements that the new one does not have, ascending.
    public private(set) var removals: [Int] = []
    /// The places in the new list of elements that the old one did not have, ascending.
    public private(set) var insertions: [Int] = []
    /// The elements that change their order, ascending by their new places.
    public private(set) var moves: [Move] = []
    /// The places in the new list of elements that are in both and differ, ascending; they may have moved, too.
    public private(set) var updates: [Int] = []

    /// Whether the lists are equal.
    public var isEmpty: Bool { removals.isEmpty && insertions.isEmpty && moves.isEmpty && updates.isEmpty }

    /// The difference between two lists. O(n log n) in the lengths of both.
    ///
    /// - Parameters:
    ///   - old: The list of before.
    ///   - new: The list as it is now.
    ///   - id: What tells one element from another. Of elements with equal ids, the first of one list is the first of
    ///     the other, and so on.
    public init<Element: Equatable, ID: Hashable>(
        from old: [Element], to new: [Element], id: (Element) -> ID
    ) {
        var places: [Occurrence<ID>: Int] = [:]
        var counts: [ID: Int] = [:]
        for (place, element) in old.enumerated() { places[Occurrence(id(element), &counts)] = place }
        counts = [:]
        var kept: [Move] = []
        for (place, element) in new.enumerated() {
            guard let before = places.removeValue(forKey: Occurrence(id(element), &counts)) else {
                insertions.append(place)
                continue
            }
            kept.append(Move(old: before, new: place))
            if old[before] != element { updates.append(place) }
        }
        removals = places.values.sorted()
        let staying = Self.longestIncrease(of: kept.map(\.old))
        moves = kept.indices.filter { !staying.contains($0) }.map { kept[$0] }
    }

    /// As `init(from:to:id:)`, of elements that have an id.
    public init<Element: Equatable & Identifiable>(from old: [Element], to new: [Element]) {
        self.init(from: old, to: new, id: \.id)
    }

    /// An id, and how many equal ones stand before it.
    private struct Occurrence<ID: Hashable>: Hashable {
        var id: ID
        var number: Int

        init(_ id: ID, _ counts: inout [ID: Int]) {
            self.id = id
            number = counts[id, default: 0]
            counts[id] = number + 1
        }
    }

    /// The indices of a longest subsequence whose numbers ascend; the numbers differ from each other.
    private static func longestIncrease(of numbers: [Int]) -> Set<Int> {
        // By length: the index at which a subsequence of that length has the smallest end.
        var ends: [Int] = []
        var previous = [Int](repeating: -1, count: numbers.count)
        for (index, number) in numbers.enumerated() {
            var (low, high) = (0, ends.count)
            while low < high {
                let middle = (low + high) / 2
                if numbers[ends[middle]] < number { low = middle + 1 } else { high = middle }
            }
            if low > 0 { previous[index] = ends[low - 1] }
            if low == ends.count { ends.append(index) } else { ends[low] = index }
        }
        var members: Set<Int> = []
        var index = ends.last ?? -1
        while index >= 0 {
            members.insert(index)
            index = previous[index]
        }
        return members
    }
}
