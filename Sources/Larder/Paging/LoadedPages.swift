import LarderRecords

/// The pages of a list that are known to be in the cache, in the list's order, and which of their objects each shows.
///
/// Several pages may have an object: the one that was loaded first shows it. The list tells objects apart by the numbers
/// that their records have in one generation of the cache.
struct LoadedPages: Sendable {
    struct Entry: Sendable {
        /// Pages that were loaded later have greater ones.
        let number: Int
        let position: PagePosition
        let next: PagePosition?
        let previous: PagePosition?
        /// When it came, in seconds since 1970; nil where that is not known.
        let received: Int64?
        /// Of the page's objects in their order, as it was read last.
        fileprivate(set) var records: [UInt64]
        /// Which of the objects other pages show, or this one before; by their places, in ascending order.
        fileprivate(set) var hidden: [Int] = []
        /// Whether the server answered it since this value was made: its token is not older than that.
        let isFetched: Bool
    }

    /// Whether the list begins at its end, and grows at its front.
    let isBackward: Bool
    var isKnown = false
    private(set) var entries: [Entry] = []
    private(set) var objectCount = 0
    var stalePageCount = 0
    /// Whose numbers the records have; nil while there are none.
    private(set) var generation: UInt64?
    private var shown = ShownRecords()
    private var positions: Set<PagePosition> = []
    private var lastNumber = 0

    init(isBackward: Bool) { self.isBackward = isBackward }

    var status: PagesStatus {
        PagesStatus(
            pageCount: entries.count, objectCount: objectCount, isComplete: edge != nil && onward == nil,
            stalePageCount: stalePageCount)
    }

    /// The page at which the list grows.
    var edge: Entry? { isBackward ? entries.first : entries.last }
    /// Where the page after that begins; nil at the end of the list, and of no page.
    var onward: PagePosition? { isBackward ? edge?.previous : edge?.next }

    func has(_ position: PagePosition) -> Bool { positions.contains(position) }

    /// The page after a page: its index where it is loaded, or else where it begins; neither where no page follows.
    func following(_ position: PagePosition, atFront: Bool) -> (index: Int?, onward: PagePosition?) {
        guard let index = entries.firstIndex(where: { $0.position == position }) else {
            return (nil, atFront ? entries.first?.previous : entries.last?.next)
        }
        let next = atFront ? index - 1 : index + 1
        if entries.indices.contains(next) { return (next, nil) }
        return (nil, atFront ? entries[index].previous : entries[index].next)
    }

    /// Whether a page's records have the numbers of another generation than the loaded pages do: see `renew`.
    func isOutdated(by page: ReadPage) -> Bool { generation.map { $0 != page.generation } ?? false }

    /// - Returns: The new entry; nil where the page is no new one: the server's pages lead back.
    mutating func add(_ page: ReadPage, at position: PagePosition, isFetched: Bool, atFront: Bool = false) -> Entry? {
        let records = page.content.records
        let neighbour = atFront ? entries.first : entries.last
        // A server that does not look at the offset answers the same page again and again.
        guard records.isEmpty || neighbour?.records != records, positions.insert(position).inserted else { return nil }
        lastNumber += 1
        generation = page.generation
        var entry = Entry(
            number: lastNumber, position: position, next: page.content.next, previous: page.content.previous,
            received: page.received, records: records, isFetched: isFetched)
        show(&entry)
        entries.insert(entry, at: atFront ? 0 : entries.count)
        return entry
    }

    private mutating func show(_ entry: inout Entry) {
        entry.hidden = []
        for (place, record) in entry.records.enumerated() where !shown.insert(record) { entry.hidden.append(place) }
        objectCount += entry.records.count - entry.hidden.count
    }

    // MARK: Changes

    /// The entries that are known to have one of the records.
    func entries(with records: Set<UInt64>) -> [Entry] {
        guard records.contains(where: { shown.contains($0) }) else { return [] }
        return entries.filter { $0.records.contains { records.contains($0) } }
    }

    /// Takes in what pages hold now.
    ///
    /// - Parameters:
    ///   - records: By the numbers of entries.
    ///   - generation: Of the records; those of pages that are not named are forgotten where it is another one.
    /// - Complexity: O(n) in the objects of all pages.
    mutating func renew(_ records: [Int: [UInt64]], _ generation: UInt64) {
        for index in entries.indices {
            if let records = records[entries[index].number] {
                entries[index].records = records
            } else if generation != self.generation {
                entries[index].records = []
            }
        }
        self.generation = generation
        (shown, objectCount) = (ShownRecords(), 0)
        for index in entries.indices.sorted(by: { entries[$0].number < entries[$1].number }) {
            var entry = entries[index]
            show(&entry)
            entries[index] = entry
        }
    }
}

/// A page as it was read from the cache.
struct ReadPage: Sendable {
    let content: PageContent
    let generation: UInt64

    /// When its oldest part came, in seconds since 1970; nil where that is not known.
    var received: Int64? { content.response.received }
}

/// The records that some page shows.
private struct ShownRecords: Sendable {
    private var stored = RecordSet()
    /// Of objects that optimistic layers alone have.
    private var others: Set<UInt64> = []

    func contains(_ record: UInt64) -> Bool {
        RecordSet.holds(record) ? stored.contains(record) : others.contains(record)
    }

    /// - Returns: Whether none has shown it.
    mutating func insert(_ record: UInt64) -> Bool {
        RecordSet.holds(record) ? stored.insert(record) : others.insert(record).inserted
    }
}
