import LarderFiles
import LarderRecords

/// Which watchers wait for which fields: the inverted index by which a commit finds the watchers that it concerns.
///
/// The cost of a commit depends on what it touches, and not on how many watchers there are. The writer's thread finds
/// the watchers, and only marks and wakes them; a woken watcher reads on a thread of its own.
final class WatcherIndex: Sendable {
    typealias WatcherID = UInt64

    /// What a watcher depends on.
    fileprivate struct Interest {
        let dependencies: Dependencies
        /// The watcher's place in `places`.
        let place: UInt32
        /// The numbers of the dependencies' `fieldSets`.
        let numbers: [UInt32]

        /// Each record with the number of what is read of it, in place of its place.
        var reads: [Dependencies.Read] {
            var reads = dependencies.reads
            for index in reads.indices { reads[index].place = numbers[Int(reads[index].place)] }
            return reads
        }
    }

    fileprivate struct State {
        var nextID: WatcherID = 0
        var wakes: [WatcherID: @Sendable (Commit?) -> Void] = [:]
        var interests: [WatcherID: Interest] = [:]
        /// The watchers that have interests, by the shorter numbers that they have in `byRecord`.
        var places = Places()
        var fieldSets = FieldSetTable()
        var byRecord: [UInt64: RecordReaders] = [:]
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
            state.wakes.isEmpty && state.interests.isEmpty && state.byRecord.isEmpty && state.fieldSets.isEmpty
                && state.byAbsentKey.isEmpty && state.byAnything.isEmpty
        }
    }

    /// The number of commits so far, to be noted before a read whose dependencies will be set.
    var published: UInt64 { state.withLock { $0.published } }

    /// Says what a watcher depends on from now on.
    ///
    /// - Parameter moment: `published` before the answer was read.
    /// - Returns: False if something was published since, so that the answer may be old already.
    /// - Complexity: O(n) in what it depends on now and did before; only what is different is changed in the index.
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
            return all ? state.interests.values.map(\.dependencies) : state.noted ?? []
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

extension WatcherIndex.State {
    fileprivate mutating func set(_ dependencies: Dependencies, of watcher: WatcherIndex.WatcherID) {
        byAnything.remove(watcher)
        let old = interests[watcher]
        let new = WatcherIndex.Interest(
            dependencies: dependencies, place: old?.place ?? places.take(watcher),
            numbers: dependencies.fieldSets.map { fieldSets.use($0) })
        interests[watcher] = new
        let isMore = replace(old, with: new)
        for number in old?.numbers ?? [] { fieldSets.leave(number) }
        if noted != nil, isMore || old?.dependencies.generation != dependencies.generation {
            noted?.append(dependencies)
        }
        let oldKeys = old?.dependencies.absentKeys ?? []
        for key in oldKeys where !dependencies.absentKeys.contains(key) { remove(watcher, from: key) }
        for key in dependencies.absentKeys where !oldKeys.contains(key) {
            byAbsentKey[key, default: []].insert(watcher)
        }
    }

    /// Goes through both in the order of the records, and touches only what is different.
    ///
    /// - Returns: Whether a record is new, or is read in another way.
    private mutating func replace(_ old: WatcherIndex.Interest?, with new: WatcherIndex.Interest) -> Bool {
        var rest = (old?.reads ?? [])[...]
        var isMore = false
        for read in new.reads {
            while let gone = rest.first, gone.record < read.record { remove(new.place, rest.removeFirst()) }
            if rest.first == read {
                rest.removeFirst()
                continue
            }
            if rest.first?.record == read.record { remove(new.place, rest.removeFirst()) }
            add(new.place, read)
            isMore = true
        }
        for gone in rest { remove(new.place, gone) }
        return isMore
    }

    private mutating func add(_ place: UInt32, _ read: Dependencies.Read) {
        if byRecord[read.record]?.add(place, reading: read.place, fieldSets) == nil {
            byRecord[read.record] = .one(place, read.place)
        }
    }

    private mutating func remove(_ place: UInt32, _ read: Dependencies.Read) {
        if byRecord[read.record]?.remove(place, reading: read.place, fieldSets) == false { byRecord[read.record] = nil }
    }

    private mutating func remove(_ watcher: WatcherIndex.WatcherID, from key: String) {
        byAbsentKey[key]?.remove(watcher)
        if byAbsentKey[key]?.isEmpty == true { byAbsentKey[key] = nil }
    }

    /// - Complexity: O(n) in what the watcher depends on, however many others do.
    fileprivate mutating func forget(_ watcher: WatcherIndex.WatcherID) {
        byAnything.remove(watcher)
        guard let interest = interests.removeValue(forKey: watcher) else { return }
        for read in interest.reads { remove(interest.place, read) }
        for number in interest.numbers { fieldSets.leave(number) }
        for key in interest.dependencies.absentKeys { remove(watcher, from: key) }
        places.leave(interest.place)
    }

    /// - Complexity: O(c) in the changes, each with the fields of at most sixteen sets, and in the watchers that are found.
    fileprivate func concerned(_ commit: Commit) -> Set<WatcherIndex.WatcherID> {
        if commit.changes.isEverything { return Set(wakes.keys) }
        var found = byAnything
        if !byRecord.isEmpty {
            for change in commit.changes.fields {
                byRecord[change.record]?.forEach(concernedBy: change.field, fieldSets) { place in
                    let watcher = places[place]
                    if interests[watcher]?.dependencies.generation == commit.generation { found.insert(watcher) }
                }
            }
        }
        // Each key is made a `String`.
        if !byAbsentKey.isEmpty {
            for key in commit.changes.createdKeys { found.formUnion(byAbsentKey[key] ?? []) }
        }
        return found
    }
}
