import LarderFiles
import LarderRecords

/// Tells one stream of every change to one object.
final class ObjectWatcher: Sendable {
    private struct Progress {
        var id: WatcherIndex.WatcherID?
        var record: UInt64?
        /// Fields that changed and have not been told.
        var changed: Set<UInt32> = []
        var isEnded = false
        var last: ObjectState?
    }

    private let core: PartitionCore
    private let key: String
    private let continuation: AsyncStream<ObjectState>.Continuation
    private let reading = MarkedReading()
    private let progress = Locked(Progress())

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
        reading.run(read)
    }

    func end() {
        let id = progress.withLock { progress in
            progress.isEnded = true
            return progress.id
        }
        if let id { core.watchers.remove(id) }
        reading.end()
        continuation.finish()
    }

    private func mark(_ commit: Commit) {
        progress.withLock { progress in
            for change in commit.changes.fields where change.record == progress.record {
                progress.changed.insert(change.field)
            }
            if commit.changes.isEverything { progress.changed.insert(RecordField.any) }
        }
        reading.mark(read)
    }

    private func read() -> Duration {
        guard let id = progress.withLock({ $0.id }) else { return .zero }
        let moment = core.watchers.published
        do throws(RecordError) {
            let (presence, dependencies) = try core.cache.presence(of: key)
            if !core.watchers.set(dependencies, of: id, readAt: moment) { reading.mark(read) }
            let changed = progress.withLock { progress in
                progress.record = dependencies.records.first
                defer { progress.changed = [] }
                return progress.changed
            }
            let names = changed.contains(RecordField.any) ? [] : try core.cache.fieldKeys(changed.sorted())
            deliver(
                ObjectState(key: CacheKey(key), presence: .init(presence), changedFields: names.map { FieldKey($0) }),
                isChange: !changed.isEmpty)
        } catch {
            if error.code != .closed, !core.watchers.setAnything(of: id, readAt: moment) { reading.mark(read) }
            core.logger.warning("a watched object could not be read", metadata: ["key": "\(key)", "error": "\(error)"])
        }
        return .zero
    }

    private func deliver(_ state: ObjectState, isChange: Bool) {
        progress.withLock { progress in
            guard !progress.isEnded, isChange || progress.last?.presence != state.presence else { return }
            progress.last = state
            // A state that no reader took is replaced: what it said of changes goes into the newest. Inside the lock,
            // so that states come in their order; a reader who takes the newest in between is told of them twice.
            if case .dropped(let untaken) = continuation.yield(state) {
                let newest = state.following(untaken: untaken)
                if newest != state { continuation.yield(newest) }
            }
        }
    }
}

extension ObjectState {
    /// This state for a reader who has not seen the one before.
    fileprivate func following(untaken: ObjectState) -> ObjectState {
        // Empty says that anything may have changed, as it may for a reader who has seen nothing yet.
        guard !untaken.changedFields.isEmpty, !changedFields.isEmpty else {
            return ObjectState(key: key, presence: presence, changedFields: [])
        }
        let all = Set(untaken.changedFields).union(changedFields)
        return ObjectState(key: key, presence: presence, changedFields: all.sorted())
    }
}

extension ObjectState.Presence {
    fileprivate init(_ presence: RecordCache.Presence) {
        self =
            switch presence {
            case .present: .present
            case .deleted: .deleted
            case .absent: .absent
            }
    }
}
