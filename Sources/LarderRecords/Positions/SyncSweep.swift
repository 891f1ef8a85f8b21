import LarderGraphQL
import LarderLMDB

/// One slice of the removal of what a walk through everything did not have: a short commit, so that no other write waits
/// for long. The position says which key was looked at last, so that a sweep that is broken off goes on there.
package struct SyncSweep: Sendable {
    /// How many keys a slice looks at, and how many objects it removes.
    package struct Limits: Sendable {
        package var keys: Int
        package var removals: Int

        package init(keys: Int = 4_096, removals: Int = 256) { (self.keys, self.removals) = (keys, removals) }
    }

    /// Of the synchronization.
    let key: String
    /// As it must be stored by now.
    let position: SyncPosition
    /// What the walk had.
    let seen: WalkedKeys
    /// What stays beside: keys as they are stored.
    let needed: Set<[UInt8]>
    /// What pins keep.
    let kept: [Dependencies]
    let limits: Limits
}

/// The keys that the pages of a walk through everything had, each by a number. To keep and compare the texts of a hundred
/// thousand took a third of their synchronization.
///
/// Where an object that the server has no more has the number of one that it has, it stays until the next walk. Of a
/// hundred thousand of either, that happens once in a thousand million walks.
///
/// Safe: bytes are read within the closures that lend them.
package struct WalkedKeys: Sendable {
    private var numbers: Set<UInt64> = []

    package init() {}

    package var count: Int { numbers.count }

    /// - Parameter mark: As `SyncMark` has it.
    mutating func insert(_ mark: [UInt8]) throws {
        try unsafe SyncMark.forEachKey(in: mark) { unsafe _ = numbers.insert(wideChecksum($0)) }
    }

    /// - Parameter key: As it is stored.
    func contains(_ key: [UInt8]) -> Bool { unsafe numbers.contains(key.withUnsafeBytes { unsafe wideChecksum($0) }) }
}

extension RecordCache {
    /// The keys that the pages of a walk through everything had.
    package func walkedKeys(of key: String) throws(RecordError) -> WalkedKeys {
        try translated {
            try generations.withSnapshot { (generation, transaction) throws in
                var keys = WalkedKeys()
                for mark in try generation.tables.marks(of: key, transaction) { try keys.insert(mark.content) }
                return keys
            }
        }
    }

    /// Removes some more of what a walk through everything did not have, in one commit.
    ///
    /// - Parameters:
    ///   - position: As it is stored.
    ///   - seen: What `walkedKeys` answered.
    ///   - needed: The cache keys of objects that stay beside what layers touch.
    ///   - kept: What stays beside.
    /// - Returns: The position as it is stored now; its `sweep` is nil once the end was reached.
    /// - Throws: `.busy` where the stored position is another.
    package func sweep(
        _ key: String, at position: SyncPosition, seen: WalkedKeys, needed: [String], kept: [Dependencies],
        limits: SyncSweep.Limits = SyncSweep.Limits()
    ) async throws(RecordError) -> SyncPosition? {
        let set = layers.current
        let touched = try translated { try set.map { try $0.touchedKeys(0..<$0.layers.count) } ?? [] }
        var all = Set(touched.map(StoredKey.bytes))
        for text in needed { all.insert(StoredKey.bytes(Array(text.utf8))) }
        let slice = SyncSweep(
            key: key, position: position, seen: seen, needed: all, kept: kept, limits: limits)
        _ = try await write([.sweep(slice)], deadline: nil)
        return try self.position(of: key)
    }
}

extension RecordChanges {
    /// Removes the objects that were not seen, unless the server changed them since the walk began.
    mutating func sweep(
        _ slice: SyncSweep, _ generation: Generation, _ transaction: borrowing WriteTransaction
    ) throws {
        var position = slice.position
        guard try generation.tables.position(slice.key, transaction) == position else {
            throw RecordError.movedPosition(position)
        }
        guard let sweep = position.sweep else { return }
        // What another synchronization of a type has, this one's server need not show.
        let others = try generation.tables.allPositions(transaction).filter { $0.key != slice.key }
        let types = Set(position.types).filter { type in !others.values.contains { $0.types.contains(type) } }
        var kept: Set<RecordID> = []
        for dependencies in slice.kept where dependencies.generation == generation.identity {
            kept.formUnion(dependencies.records)
        }
        let lastChanged = try generation.names.lookUp(VersionField.lastChanged, transaction, generation.tables)
        var (looked, removals) = (0, 0)
        // By the bytes of what their keys begin with, so that one key says where the sweep has come.
        for prefix in types.map({ Array("\($0):".utf8) }).sorted(by: { $0.lexicographicallyPrecedes($1) }) {
            for (key, id) in try generation.entities(
                beginningWith: prefix, after: sweep.after, limit: slice.limits.keys - looked, transaction)
            {
                looked += 1
                position.sweep?.after = key
                if !slice.seen.contains(key), !slice.needed.contains(key), !kept.contains(id),
                    let record = try generation.record(id, transaction), !record.isTombstone,
                    // What does not say when it was changed cannot be told from what came meanwhile.
                    let lastChanged,
                    let (word, payload) = try generation.value(of: lastChanged, in: record, id, transaction),
                    let time = try payload.integer(word), time < sweep.changedBefore
                {
                    _ = try removeEntity(id, leavingTombstone: true, keepsVersion: false, generation, transaction)
                    removals += 1
                }
                if looked >= slice.limits.keys || removals >= slice.limits.removals {
                    positions[Array(slice.key.utf8)] = position.json
                    return
                }
            }
        }
        position.sweep = nil
        positions[Array(slice.key.utf8)] = position.json
        try removeMarks(of: slice.key, generation, transaction)
    }
}
