import LarderFiles
import LarderRecords

/// Which watchers wait for which fields: the inverted index by which a commit finds the watchers that it concerns.
///
/// The cost of a commit depends on what it touches, and not on how many watchers there are. The writer's thread finds
/// the watchers, and only marks and wakes them; a woken watcher reads on a thread of its own.
final class WatcherIndex: Sendable {
    typealias WatcherID = UInt64

    /// The watchers of one field of one record. Most fields have one watcher, which needs no memory of its own.
    fileprivate enum Group {
        case one(WatcherID)
        case many(Set<WatcherID>)
    }

    fileprivate struct State {
        var nextID: WatcherID = 0
        var wakes: [WatcherID: @Sendable (Commit?) -> Void] = [:]
        var interests: [WatcherID: Dependencies] = [:]
        /// Also under `wholeRecord`, each watcher once for each record.
        var byField: [RecordField: Group] = [:]
        var byAbsentKey: [String: Set<WatcherID>] = [:]
        /// Watchers of which it is not known what they depend on.
        var byAnything: Set<WatcherID> = []
        /// Counts the commits that were published.
        var published: UInt64 = 0
        /// What watchers have come to depend on since it was asked for last; nil where it is not noted.
        var noted: [Dependencies]?
        var isClosed = false
    }

    private let state = Locked(State())
    let shared = SharedWatchers()

    /// - Parameter wake: Called for each commit that concerns the watcher, on the writer's thread; it must not wait.
    ///   With nil, once, when there is nothing more to watch.
    /// - Returns: Nil if the index is closed.
    func add(_ wake: @escaping @Sendable (Commit?) -> Void) -> WatcherID? {
        state.withLock { state in
            guard !state.isClosed else { return nil }
            state.nextID += 1
            state.wakes[state.nextID] = wake
            return state.nextID
        }
    }

    func remove(_ watcher: WatcherID) {
        state.withLock { state in
            state.forget(watcher)
            state.wakes[watcher] = nil
        }
    }

    /// Whether there are no watchers.
    var isEmpty: Bool {
        state.withLock { state in
            state.wakes.isEmpty && state.interests.isEmpty && state.byField.isEmpty && state.byAbsentKey.isEmpty
                && state.byAnything.isEmpty
        }
    }

    /// The number of commits so far, to be noted before a read whose dependencies will be set.
    var published: UInt64 { state.withLock { $0.published } }

    /// Says what a watcher depends on from now on.
    ///
    /// - Parameter moment: `published` before the answer was read.
    /// - Returns: False if something was published since, so that the answer may be old already.
    /// - Complexity: O(n) in what it depends on; what it depended on before is left as it is.
    func set(_ dependencies: Dependencies, of watcher: WatcherID, readAt moment: UInt64) -> Bool {
        state.withLock { state in
            guard state.wakes[watcher] != nil else { return true }
            state.set(dependencies, of: watcher)
            return state.published == moment
        }
    }

    /// Says that a watcher may depend on anything: it could not read what it watches.
    ///
    /// - Returns: As `set`.
    func setAnything(of watcher: WatcherID, readAt moment: UInt64) -> Bool {
        state.withLock { state in
            guard state.wakes[watcher] != nil else { return true }
            state.forget(watcher)
            state.byAnything.insert(watcher)
            return state.published == moment
        }
    }

    /// Wakes the watchers that a commit concerns.
    func publish(_ commit: Commit) {
        let wakes = state.withLock { state -> [@Sendable (Commit?) -> Void] in
            state.published += 1
            return state.concerned(commit).compactMap { state.wakes[$0] }
        }
        for wake in wakes { wake(commit) }
    }

    // MARK: For collecting garbage

    /// Notes from now on what watchers come to depend on; false where it is noted already.
    func beginNoting() -> Bool {
        state.withLock { state in
            guard state.noted == nil else { return false }
            state.noted = []
            return true
        }
    }

    func endNoting() { state.withLock { $0.noted = nil } }

    /// What watchers have come to depend on since this was called last; with `all`, everything that they depend on.
    func takeNoted(all: Bool) -> [Dependencies] {
        state.withLock { state in
            defer { state.noted = state.noted.map { _ in [] } }
            return all ? Array(state.interests.values) : state.noted ?? []
        }
    }

    /// Whether a watcher depends on anything.
    var hasInterests: Bool { state.withLock { !$0.interests.isEmpty } }

    /// Takes watchers again, after `close`.
    func reopen() { state.withLock { $0.isClosed = false } }

    /// Tells all that there is nothing more to watch, and takes no others.
    func close() {
        let wakes = state.withLock { state in
            let wakes = Array(state.wakes.values)
            // Numbers go on: a watcher that ends late must not take another's for its own.
            state = State(
                nextID: state.nextID, published: state.published, noted: state.noted.map { _ in [] }, isClosed: true)
            return wakes
        }
        for wake in wakes { wake(nil) }
    }
}

extension RecordField {
    /// Under this are all watchers of any field of the record.
    fileprivate var wholeRecord: RecordField { RecordField(record: record, field: .max) }
}

extension WatcherIndex.State {
    fileprivate mutating func add(_ watcher: WatcherIndex.WatcherID, to field: RecordField) {
        if case .one(watcher)? = byField[field] { return }
        switch byField.removeValue(forKey: field) {
        case nil: byField[field] = .one(watcher)
        case .one(let other): byField[field] = .many([other, watcher])
        // Taken out of the dictionary, the set is changed in place.
        case .many(var others):
            others.insert(watcher)
            byField[field] = .many(others)
        }
    }

    private mutating func remove(_ watcher: WatcherIndex.WatcherID, from field: RecordField) {
        switch byField.removeValue(forKey: field) {
        case nil: break
        case .one(let other): if other != watcher { byField[field] = .one(other) }
        case .many(var others):
            others.remove(watcher)
            if !others.isEmpty { byField[field] = .many(others) }
        }
    }

    fileprivate mutating func set(_ dependencies: Dependencies, of watcher: WatcherIndex.WatcherID) {
        byAnything.remove(watcher)
        let old = interests.updateValue(dependencies, forKey: watcher)
        if noted != nil, !dependencies.fields.isSubset(of: old?.fields ?? []) { noted?.append(dependencies) }
        let gone = old.map { $0.fields.subtracting(dependencies.fields) } ?? []
        if !gone.isEmpty {
            let records = Set(dependencies.fields.map(\.record))
            // The greatest field stands for the whole record, too.
            for field in gone where field != field.wholeRecord || !records.contains(field.record) {
                remove(watcher, from: field)
                if !records.contains(field.record) { remove(watcher, from: field.wholeRecord) }
            }
        }
        for field in dependencies.fields where old?.fields.contains(field) != true {
            add(watcher, to: field)
            add(watcher, to: field.wholeRecord)
        }
        for key in old?.absentKeys ?? [] where !dependencies.absentKeys.contains(key) { remove(watcher, from: key) }
        for key in dependencies.absentKeys where old?.absentKeys.contains(key) != true {
            byAbsentKey[key, default: []].insert(watcher)
        }
    }

    private mutating func remove(_ watcher: WatcherIndex.WatcherID, from key: String) {
        byAbsentKey[key]?.remove(watcher)
        if byAbsentKey[key]?.isEmpty == true { byAbsentKey[key] = nil }
    }

    /// - Complexity: O(n) in what the watcher depends on, however many others do.
    fileprivate mutating func forget(_ watcher: WatcherIndex.WatcherID) {
        byAnything.remove(watcher)
        guard let interests = interests.removeValue(forKey: watcher) else { return }
        for field in interests.fields {
            remove(watcher, from: field)
            remove(watcher, from: field.wholeRecord)
        }
        for key in interests.absentKeys { remove(watcher, from: key) }
    }

    /// - Complexity: O(c) in the changes, and in the watchers of the fields that changed.
    fileprivate func concerned(_ commit: Commit) -> Set<WatcherIndex.WatcherID> {
        if commit.changes.isEverything { return Set(wakes.keys) }
        var found = byAnything
        func add(_ watcher: WatcherIndex.WatcherID) {
            if interests[watcher]?.generation == commit.generation { found.insert(watcher) }
        }
        func add(_ group: WatcherIndex.Group?) {
            switch group {
            case nil: break
            case .one(let watcher): add(watcher)
            case .many(let watchers): for watcher in watchers { add(watcher) }
            }
        }
        for change in commit.changes.fields {
            guard change.field != RecordField.any else {
                add(byField[change.wholeRecord])
                continue
            }
            add(byField[change])
            add(byField[RecordField(record: change.record, field: RecordField.any)])
        }
        for key in commit.changes.createdKeys { found.formUnion(byAbsentKey[key] ?? []) }
        return found
    }
}
