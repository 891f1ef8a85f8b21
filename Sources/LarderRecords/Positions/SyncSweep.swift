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
    /// The stored key after which this slice begins. What lies between the position's and this one stays until the next
    /// walk.
    var after: [UInt8]
    /// What the walk had.
    let seen: WalkedKeys
    /// What stays beside: keys as they are stored.
    var needed: Set<[UInt8]>
    /// What pins keep.
    let kept: [Dependencies]
    let limits: Limits
}

extension RecordCache {
    /// The keys that the stored pages of a walk through everything had.
    package func walkedKeys(of key: String) throws(RecordError) -> WalkedKeys {
        try translated {
            try generations.withSnapshot { (generation, transaction) throws in
                var keys = WalkedKeys()
                for mark in try generation.tables.marks(of: key, transaction) {
                    try keys.insert(SyncMark(stored: mark.content))
                }
                return keys
            }
        }
    }

    /// Removes some more of what a walk through everything did not have, in one commit.
    ///
    /// - Parameters:
    ///   - position: As it is stored.
    ///   - seen: The keys of all pages of the walk.
    ///   - needed: The cache keys of objects that stay beside what layers touch.
    ///   - kept: What stays beside.
    /// - Returns: The position as it is stored now; its `sweep` is nil once the end was reached.
    /// - Throws: `.busy` where the stored position is another, before the removal or after it.
    package func sweep(
        _ key: String, at position: SyncPosition, seen: WalkedKeys, needed: [String], kept: [Dependencies],
        limits: SyncSweep.Limits = SyncSweep.Limits()
    ) async throws(RecordError) -> SyncPosition {
        var all = try touchedByLayers()
        for text in needed { all.insert(StoredKey.bytes(Array(text.utf8))) }
        var slice = SyncSweep(
            key: key, position: position, after: position.sweep?.after ?? [], seen: seen, needed: all, kept: kept,
            limits: limits)
        slice.after = try translated {
            try generations.withSnapshot { (generation, transaction) throws in
                try slice.passingOver(generation, transaction)
            }
        }
        // A layer may have come to touch an object meanwhile.
        slice.needed.formUnion(try touchedByLayers())
        _ = try await write([.sweep(slice)], deadline: nil)
        // An eviction, which may share the commit, makes the next synchronization begin with everything.
        let left = try self.position(of: key)
        var expected = position
        expected.sweep = left?.sweep
        guard left == expected else { throw RecordError.movedPosition(position) }
        return expected
    }

    private func touchedByLayers() throws(RecordError) -> Set<[UInt8]> {
        let set = layers.current
        let touched = try translated { try set.map { try $0.touchedKeys(0..<$0.layers.count) } ?? [] }
        return Set(touched.map(StoredKey.bytes))
    }
}

extension SyncSweep {
    /// How many keys are passed over in one snapshot: some seven milliseconds where the walk had them, longer where their
    /// records are read. What pins and queued mutations need is asked for anew after so many.
    private static let passedKeys = 1 << 15

    /// Passes over what stays: no write waits for that, and nothing is committed for it.
    ///
    /// - Returns: The last key that was passed over; the write goes on after it.
    func passingOver(
        _ generation: Generation, _ transaction: borrowing some RecordSnapshot & ~Copyable
    ) throws -> [UInt8] {
        let rule = try SweepRule(self, generation, transaction)
        var (after, left) = (after, Self.passedKeys)
        for prefix in rule.prefixes {
            var mayGoOn = true
            unsafe try generation.forEachEntity(beginningWith: prefix, after: after, transaction) { key, id in
                mayGoOn = unsafe try left > 0 && !rule.removes(id, of: key, generation, transaction)
                if mayGoOn {
                    left -= 1
                    after.removeAll(keepingCapacity: true)
                    unsafe after.append(contentsOf: key)
                }
                return mayGoOn
            }
            guard mayGoOn else { break }
        }
        return after
    }
}

/// What goes, as one snapshot has it.
private struct SweepRule {
    /// What the keys begin with, by their bytes, so that one key says where the sweep has come.
    let prefixes: [[UInt8]]
    private let slice: SyncSweep
    private let kept: Set<RecordID>
    private let lastChanged: FieldID?
    private let changedBefore: Int64

    init(
        _ slice: SyncSweep, _ generation: Generation, _ transaction: borrowing some RecordSnapshot & ~Copyable
    ) throws {
        self.slice = slice
        // What another synchronization of a type has, this one's server need not show.
        let others = try generation.tables.allPositions(transaction).filter { $0.key != slice.key }
        let types = Set(slice.position.types).filter { type in
            !others.values.contains { $0.types.contains(type) }
        }
        prefixes = types.map { Array("\($0):".utf8) }.sorted { $0.lexicographicallyPrecedes($1) }
        var kept: Set<RecordID> = []
        for dependencies in slice.kept where dependencies.generation == generation.identity {
            kept.formUnion(dependencies.records)
        }
        self.kept = kept
        lastChanged = try generation.names.lookUp(VersionField.lastChanged, transaction, generation.tables)
        changedBefore = slice.position.sweep?.changedBefore ?? .min
    }

    /// Whether an object goes: it was not seen, and the server did not change it since the walk began.
    func removes(
        _ id: RecordID, of key: UnsafeRawBufferPointer, _ generation: Generation,
        _ transaction: borrowing some RecordSnapshot & ~Copyable
    ) throws -> Bool {
        guard unsafe !slice.seen.contains(key), !kept.contains(id),
            unsafe slice.needed.isEmpty || !slice.needed.contains(Array(key)),
            // What does not say when it was changed cannot be told from what came meanwhile.
            let lastChanged, let record = try generation.record(id, transaction), !record.isTombstone,
            let (word, payload) = try generation.value(of: lastChanged, in: record, id, transaction),
            let time = try payload.integer(word)
        else { return false }
        return time < changedBefore
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
        guard position.sweep != nil else { return }
        position.sweep?.after = slice.after
        let rule = try SweepRule(slice, generation, transaction)
        var (looked, removals) = (0, 0)
        for prefix in rule.prefixes {
            for (key, id) in try generation.entities(
                beginningWith: prefix, after: slice.after, limit: slice.limits.keys - looked, transaction)
            {
                looked += 1
                position.sweep?.after = key
                let isGone = unsafe try key.withUnsafeBytes { key in
                    unsafe try rule.removes(id, of: key, generation, transaction)
                }
                if isGone {
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
