public import LarderGraphQL
import LarderOperations
public import LarderRecords

/// Which objects of an answer are different from what a named watcher was given last.
public enum ChangedObjects: Sendable, Equatable {
    /// These, by their cache keys; an object without identity counts as the one that holds it.
    case objects([CacheKey])
    /// Everything may be: nothing was given before, or the answer that was is too old to tell.
    case anything
}

/// What a named watcher gives.
public struct NamedWatchState: Sendable {
    /// The newest answer; `response.missing` tells what is missing in it.
    public let response: Response
    /// What is different since the answer given last, in this process or in one before.
    public let changes: ChangedObjects
}

/// The answers to an operation whose watcher outlives the process.
///
/// An answer is noted when the next is asked for. So a change is given at least once: a process that dies while it
/// works on one is given it again. What optimistic layers showed is not kept: where they made a difference to the
/// answer given last, the next process is told that anything may have changed.
public struct NamedWatch: AsyncSequence, Sendable {
    let partition: Partition
    let name: String
    let operation: BoundOperation
    let position: ChangePosition?
    let states: Watch

    /// Begins to watch; each iterator shares the one stream, and is meant to be the only one.
    public func makeAsyncIterator() -> Iterator {
        Iterator(watch: self, states: states.makeAsyncIterator(), noted: position)
    }

    /// See ``NamedWatch``.
    public struct Iterator: AsyncIteratorProtocol {
        let watch: NamedWatch
        var states: Watch.Iterator
        /// From where changes are looked for.
        var noted: ChangePosition?
        /// The answer that was given last, or one the same as that: read not before `noted`.
        var last: CacheAnswer?
        /// The position of the answer that was given last, which is not on disk yet.
        var given: ChangePosition?

        /// The next answer that is different, or nil when the store is closed.
        ///
        /// - Throws: `operations.…` where the position cannot be noted, `operations.unknownWatcher` where the watcher
        ///   was removed; what `Partition.read` throws where the cache cannot be read.
        public mutating func next() async throws -> NamedWatchState? {
            let core = watch.partition.core
            _ = await core.operationsStore.suspension.sitOut()
            if let given {
                do throws(LarderError) {
                    try await watch.note(last?.isOptimistic == true ? .unknown : given)
                } catch {
                    guard error.code != .parked else { return nil }
                    throw error
                }
                noted = given
                self.given = nil
            }
            var mustRead = false
            while true {
                if mustRead {
                    _ = await core.operationsStore.suspension.sitOut()
                } else if await states.next() == nil {
                    return nil
                }
                mustRead = false
                let cache = core.cache
                do throws(RecordError) {
                    // Before the answer: a change that comes between the two is given again, and none is skipped.
                    let position = try cache.position
                    let answer = try cache.read(watch.operation)
                    var changes = ChangedObjects.anything
                    if let noted, case .keys(let keys) = try cache.changedKeys(since: noted, last, in: answer) {
                        changes = .objects(keys.map { CacheKey($0) })
                    }
                    if let last, last.response == answer.response, changes != .anything {
                        // As good as given, by other layers or commits: what is different is so from here.
                        (noted, self.last) = (position, answer)
                        continue
                    }
                    (given, last) = (position, answer)
                    return NamedWatchState(response: answer.response, changes: changes)
                } catch {
                    if error.code == .closed { return nil }
                    // Suspended just now.
                    guard error.code == .suspended, !Task.isCancelled else { throw LarderError(error) }
                    mustRead = true
                }
            }
        }
    }
}

extension ChangePosition {
    /// Of no epoch there is: from it, anything may have changed.
    fileprivate static var unknown: ChangePosition { ChangePosition(epoch: 0, number: 0) }
}

extension NamedWatch {
    fileprivate func note(_ position: ChangePosition) async throws(LarderError) {
        let core = partition.core
        let watchers = try core.operationsStore.database().watchers
        let stored = StoredWatcher.Position(epoch: position.epoch, number: position.number)
        do { try await watchers.note(stored, of: name, in: core.name, now: core.now()) } catch {
            throw LarderError(error)
        }
    }
}
