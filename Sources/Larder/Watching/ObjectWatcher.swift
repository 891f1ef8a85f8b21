internal import LarderRecords
internal import Synchronization

/// Tells one stream of every change to one object.
final class ObjectWatcher: Sendable {
    private struct Progress {
        var id: WatcherIndex.WatcherID?
        var record: UInt64?
        /// Fields that changed and have not been told.
        var changed: Set<UInt32> = []
        /// The first read is under way from the beginning.
        var isReading = true
        var isMarked = false
        var isEnded = false
        var last: ObjectState?
    }

    private let core: PartitionCore
    private let key: String
    private let continuation: AsyncStream<ObjectState>.Continuation
    private let progress = Mutex(Progress())

    init(_ core: PartitionCore, _ key: String, _ continuation: AsyncStream<ObjectState>.Continuation) {
        self.core = core
        self.key = key
        self.continuation = continuation
    }

    func start() {
        let id = core.watchers.add { [weak self] commit in
            guard let self else { return }
            if let commit { self.mark(commit) } else { self.end() }
        }
        guard let id else { return end() }
        progress.withLock { $0.id = id }
        read()
    }

    func end() {
        let id = progress.withLock { progress in
            progress.isEnded = true
            return progress.id
        }
        if let id { core.watchers.remove(id) }
        continuation.finish()
    }

    private func mark(_ commit: Commit) {
        let mustRead = progress.withLock { progress in
            for change in commit.changes.fields where change.record == progress.record {
                progress.changed.insert(change.field)
            }
            if commit.changes.isEverything { progress.changed.insert(RecordField.any) }
            progress.isMarked = true
            guard !progress.isReading, !progress.isEnded else { return false }
            progress.isReading = true
            return true
        }
        if mustRead { Task { self.read() } }
    }

    private func read() {
        repeat {
            progress.withLock { $0.isMarked = false }
            readOnce()
        } while progress.withLock { progress in
            guard progress.isMarked, !progress.isEnded else {
                progress.isReading = false
                return false
            }
            return true
        }
    }

    private func readOnce() {
        guard let id = progress.withLock({ $0.id }) else { return }
        let moment = core.watchers.published
        do throws(RecordError) {
            let (presence, dependencies) = try core.cache.presence(of: key)
            if !core.watchers.set(dependencies, of: id, readAt: moment) { progress.withLock { $0.isMarked = true } }
            let changed = progress.withLock { progress in
                progress.record = dependencies.fields.first?.record
                defer { progress.changed = [] }
                return progress.changed
            }
            let names = changed.contains(RecordField.any) ? [] : try core.cache.fieldKeys(changed.sorted())
            deliver(
                ObjectState(key: key, presence: .init(presence), changedFields: names),
                isChange: !changed.isEmpty)
        } catch {
            core.logger.warning("a watched object could not be read", metadata: ["key": "\(key)", "error": "\(error)"])
        }
    }

    private func deliver(_ state: ObjectState, isChange: Bool) {
        progress.withLock { progress in
            guard !progress.isEnded, isChange || progress.last?.presence != state.presence else { return }
            progress.last = state
            continuation.yield(state)
        }
    }
}

extension ObjectState.Presence {
    fileprivate init(_ presence: RecordCache.Presence) {
        self = switch presence {
        case .present: .present
        case .deleted: .deleted
        case .absent: .absent
        }
    }
}
