import LarderGraphQL
import LarderLMDB

/// One step of a write: works out what it changes, from the transaction in which that will be written and in which all
/// steps before it have been.
enum WriteStep: Sendable {
    /// Notes what became of a mutation. Where something is known of it already, that stays, and the write ends there.
    case note(AppliedKey, AppliedEntry.Kind, time: Int64)
    /// Stores a response; one without data changes nothing.
    case store(ParsedResponse, of: BoundOperation, at: RecordCache.Root, AnswerAge = AnswerAge())
    /// Reads an answer and stores what a closure makes of it, if that is not nil.
    case update(BoundOperation, at: RecordCache.Root, @Sendable (CacheAnswer) throws -> ParsedResponse?)
    /// Stores a page of a synchronization, without its list, and its position.
    case synchronize(ParsedResponse, of: BoundOperation, SyncPage)
    /// Removes some of what a walk of a synchronization did not have.
    case sweep(SyncSweep)
    /// Gives up the walk of a synchronization.
    case forgetWalk(String)
    /// Notes up to when everything has come over subscriptions.
    case noteSubscriptions([String: SubscriptionPosition])
    /// Makes all synchronizations begin with everything.
    case forgetPositions
    /// Changes a list.
    case edit(ListEdit)
    /// Removes the page after a page which an earlier step has changed.
    case endList(after: PagePlace)
    /// Removes objects; keys that are not in the cache are passed over.
    case removeObjects(keys: [String], RecordCache.Removal)
    /// Removes all objects of a type.
    case removeType(String, RecordCache.Removal)
    /// Removes a field of an object with whatever arguments it was stored.
    case removeField(String, of: String)
    /// Forgets mutations; a key that is not stored costs no commit.
    case forget([AppliedKey])
    /// Removes what a collection of garbage has found, as far as nothing needs it by now.
    case collect(GarbageCollection)
    /// Removes what an eviction has found, as far as nothing needs it by now.
    case evict(Eviction, within: Duration)

    /// As `PendingWrite.pages`.
    var pages: Int {
        switch self {
        case .store(let parsed, _, _, _), .synchronize(let parsed, _, _):
            parsed.objectCount + parsed.text.count >> 12
        default: 1
        }
    }

    /// - Parameters:
    ///   - changes: Empty.
    ///   - earlier: What the steps before have changed.
    func run(
        _ generation: Generation, _ transaction: borrowing WriteTransaction, _ changes: consuming RecordChanges,
        after earlier: ChangeSet
    ) throws -> RecordChanges {
        switch self {
        case .note(let key, let kind, let time):
            try changes.note(key, kind, time, generation, transaction)
        case .store(let parsed, let operation, let root, let age):
            changes.received = ReceivedNotes(age, now: generation.now())
            let writer = ResponseWriter(parsed, of: operation, in: generation, consume changes)
            changes = try writer.run(.init(root, operation), transaction)
        case .update(let operation, let root, let body):
            let answer = try generation.answer(operation, from: root, transaction)
            guard let parsed = try body(answer) else { break }
            changes.received = ReceivedNotes(AnswerAge(), now: generation.now())
            let writer = ResponseWriter(parsed, of: operation, in: generation, consume changes, isEdited: true)
            changes = try writer.run(.init(root, operation), transaction)
        case .synchronize(let parsed, let operation, let page):
            changes.received = ReceivedNotes(AnswerAge(), now: generation.now())
            let writer = ResponseWriter(parsed, of: operation, in: generation, consume changes)
            changes = try writer.run(.unstored, transaction)
            try changes.note(page, generation, transaction)
        case .sweep(let slice): try changes.sweep(slice, generation, transaction)
        case .forgetWalk(let key): try changes.forgetWalk(of: key, generation, transaction)
        case .noteSubscriptions(let positions): try changes.note(positions, generation, transaction)
        case .forgetPositions: try changes.forgetPositions(generation, transaction)
        case .edit(let edit):
            try changes.edit(edit, generation, transaction)
        case .endList(let page):
            try changes.removePage(after: page, changedIn: earlier, generation, transaction)
        case .removeObjects(let keys, let removal):
            for key in keys {
                guard let id = try generation.tables.record(of: key, transaction) else { continue }
                // The root of all queries is emptied; it cannot be no more.
                let leavesTombstone = removal == .deleted && key != CacheKey.queryRoot.text
                _ = try changes.removeEntity(id, leavingTombstone: leavesTombstone, generation, transaction)
            }
        case .removeType(let type, let removal):
            for (_, id) in try generation.entities(ofType: type, transaction) {
                _ = try changes.removeEntity(id, leavingTombstone: removal == .deleted, generation, transaction)
            }
        case .removeField(let field, let key):
            guard let id = try generation.tables.record(of: key, transaction) else { break }
            try changes.removeField(field, of: id, generation, transaction)
        case .forget(let keys):
            for key in keys where try generation.tables.applied(key.text, transaction) != nil {
                changes.forgotten.append(key.text)
            }
        case .collect(let collection):
            try collection.remove(from: generation, transaction, &changes)
        case .evict(let eviction, let time):
            try eviction.remove(from: generation, transaction, &changes, within: time)
        }
        try changes.noteEvictions(generation, transaction)
        try changes.workOutTimes(generation, transaction)
        return changes
    }
}

extension ResponseWriter.Root {
    init(_ root: RecordCache.Root, _ operation: BoundOperation) {
        self = operation.layout.storesRoot ? .record(key: root.key) : .unstored
    }
}

extension Generation {
    /// The entities of a type that are in the cache, and their keys as they are stored, which all begin with the type's
    /// name.
    func entities(
        ofType type: String, _ transaction: borrowing some RecordSnapshot & ~Copyable
    ) throws -> [(key: [UInt8], id: RecordID)] {
        try entities(beginningWith: Array("\(type):".utf8), after: [], limit: .max, transaction)
    }

    /// The first of them whose keys come after one.
    func entities(
        beginningWith prefix: [UInt8], after last: [UInt8], limit: Int,
        _ transaction: borrowing some RecordSnapshot & ~Copyable
    ) throws -> [(key: [UInt8], id: RecordID)] {
        var found: [(key: [UInt8], id: RecordID)] = []
        guard limit > 0 else { return found }
        unsafe try forEachEntity(beginningWith: prefix, after: last, transaction) { key, id in
            unsafe found.append((Array(key), id))
            return found.count < limit
        }
        return found
    }

    /// Calls `body` with the key, which it must not keep, and the number of each of them, until it answers false.
    ///
    /// Safe: the key and its number are read while the transaction lends them.
    func forEachEntity(
        beginningWith prefix: [UInt8], after last: [UInt8], _ transaction: borrowing some RecordSnapshot & ~Copyable,
        _ body: (_ key: UnsafeRawBufferPointer, _ id: RecordID) throws -> Bool
    ) throws {
        var cursor = try transaction.cursor(in: tables.keys)
        // The key after `last` begins with it and a zero byte, or is greater.
        let start = prefix.lexicographicallyPrecedes(last) ? last + [0] : prefix
        var entry = try cursor.seek(atLeast: start.rawSpan)
        while let current = entry {
            let isOfType = unsafe current.key.withUnsafeBytes { unsafe $0.starts(with: prefix) }
            guard isOfType else { return }
            guard let id = unsafe current.value.withUnsafeBytes(StoredNumber.number) else {
                throw RecordError(.damaged, "A number in the cache's index is damaged")
            }
            guard unsafe try current.key.withUnsafeBytes({ unsafe try body($0, id) }) else { return }
            entry = try cursor.next()
        }
    }
}
