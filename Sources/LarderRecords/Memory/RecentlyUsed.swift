/// Values that are kept while there is room for them, the most recently used ones before others.
///
/// Each has a size. Once all together are larger than the limit, the least recently used ones go, until a quarter of
/// the limit is free: what is used again and again stays, however much is used once.
package struct RecentlyUsed<Key: Hashable & Sendable, Value: Sendable>: Sendable {
    private struct Entry {
        var value: Value
        var size: Int
        /// The count of uses when it was used last.
        var used: UInt64
    }

    private var entries: [Key: Entry] = [:]
    private var uses: UInt64 = 0
    private let limit: Int
    /// The sizes of all values together.
    package private(set) var size = 0

    /// - Parameter limit: In bytes.
    package init(limit: Int) { self.limit = limit }

    package var count: Int { entries.count }

    /// The value, which counts as used now.
    package mutating func value(for key: Key) -> Value? {
        guard let index = entries.index(forKey: key) else { return nil }
        uses += 1
        entries.values[index].used = uses
        return entries.values[index].value
    }

    /// Keeps a value, which counts as used now; it is kept even where it is larger than the limit by itself.
    ///
    /// - Parameter size: In bytes, with what a dictionary takes for it.
    /// - Returns: The keys whose values went.
    /// - Complexity: O(1) on average; O(n log n) where values go, which is once in a quarter of the limit.
    @discardableResult
    package mutating func keep(_ value: Value, for key: Key, size: Int) -> [Key] {
        uses += 1
        self.size += size - (entries[key]?.size ?? 0)
        entries[key] = Entry(value: value, size: size, used: uses)
        guard self.size > limit else { return [] }
        var gone: [Key] = []
        for (key, entry) in entries.sorted(by: { $0.value.used < $1.value.used }).dropLast() {
            guard self.size > limit - limit / 4 else { break }
            entries[key] = nil
            self.size -= entry.size
            gone.append(key)
        }
        return gone
    }

    /// Forgets all values whose keys match.
    package mutating func remove(where matches: (Key) -> Bool) {
        for (key, entry) in entries where matches(key) {
            entries[key] = nil
            size -= entry.size
        }
    }
}
