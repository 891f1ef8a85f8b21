/// Values that are kept while there is room for them, the most recently used ones before others.
///
/// Each has a size. Once all together are larger than the limit, the least recently used ones go, as many as have to:
/// what is used again and again stays, however much is used once, and no call waits for much to go at once.
///
/// Its functions can be inlined, so that each module has them for its own types of keys and values: without that, each
/// lookup copies an entry by the types' metadata.
@usableFromInline
package struct RecentlyUsed<Key: Hashable & Sendable, Value: Sendable>: Sendable {
    @usableFromInline
    struct Entry: Sendable {
        @usableFromInline var key: Key
        @usableFromInline var value: Value
        @usableFromInline var size: Int

        @usableFromInline
        init(key: Key, value: Value, size: Int) { (self.key, self.value, self.size) = (key, value, size) }
    }

    /// A link of the chain from the value that was used longest ago to the one that was used last. It stands beside its
    /// entry and not in it: to move it, as each use does, copies no key.
    @usableFromInline
    struct Link: Sendable {
        /// Where the neighbours are; -1 at the ends of the chain.
        @usableFromInline var (older, newer) = (-1, -1)

        @usableFromInline
        init() {}
    }

    @usableFromInline var places: [Key: Int] = [:]
    /// Nil where a value has gone, and the next may be put.
    @usableFromInline var entries: [Entry?] = []
    /// By the same places.
    @usableFromInline var links: [Link] = []
    @usableFromInline var free: [Int] = []
    /// The ends of the chain; -1 where nothing is kept.
    @usableFromInline var oldest = -1
    @usableFromInline var newest = -1
    @usableFromInline let limit: Int
    /// The sizes of all values together.
    @usableFromInline package var size = 0

    /// - Parameter limit: In bytes.
    @inlinable
    package init(limit: Int) { self.limit = limit }

    @inlinable package var count: Int { places.count }

    /// The value, which counts as used now.
    @inlinable
    package mutating func value(for key: Key) -> Value? {
        guard let place = places[key] else { return nil }
        if place != newest {
            unlink(place)
            link(place)
        }
        return entries[place]?.value
    }

    /// Keeps a value, which counts as used now; it is kept even where it is larger than the limit by itself.
    ///
    /// - Parameter size: In bytes, with what a dictionary takes for it.
    /// - Returns: What went, the least recently used first.
    /// - Complexity: O(1) on average, and O(1) for each value that goes.
    @inlinable @discardableResult
    package mutating func keep(_ value: Value, for key: Key, size: Int) -> [(key: Key, value: Value)] {
        remove(key)
        let place = free.popLast() ?? entries.count
        let entry = Entry(key: key, value: value, size: size)
        if place < entries.count {
            entries[place] = entry
        } else {
            entries.append(entry)
            links.append(Link())
        }
        places[key] = place
        self.size += size
        link(place)
        var gone: [(key: Key, value: Value)] = []
        while self.size > limit, oldest != newest, let entry = entries[oldest] {
            gone.append((entry.key, entry.value))
            remove(entry.key)
        }
        return gone
    }

    /// Forgets a value, if it is there.
    @inlinable
    package mutating func remove(_ key: Key) {
        guard let place = places.removeValue(forKey: key) else { return }
        unlink(place)
        size -= entries[place]?.size ?? 0
        entries[place] = nil
        free.append(place)
    }

    @inlinable
    mutating func link(_ place: Int) {
        links[place].older = newest
        links[place].newer = -1
        if newest >= 0 { links[newest].newer = place } else { oldest = place }
        newest = place
    }

    @inlinable
    mutating func unlink(_ place: Int) {
        let link = links[place]
        if link.older >= 0 { links[link.older].newer = link.newer } else { oldest = link.newer }
        if link.newer >= 0 { links[link.newer].older = link.older } else { newest = link.older }
    }
}
