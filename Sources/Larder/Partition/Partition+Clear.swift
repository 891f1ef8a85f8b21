import LarderOperations
import LarderRecords

extension Partition {
    /// What becomes of mutations and uploads that the server may not have when what they belong to is removed.
    public enum UnsentWork: Sendable, Hashable {
        /// Nothing is removed while there are any.
        case refuse
        /// They stay as they are, and go on as if nothing had been removed.
        case keep
        /// They are given up, dead letters and failed uploads too. While a mutation is under way nothing is removed: it
        /// may take effect. An upload under way is ended, and may have arrived all the same.
        case discard
    }

    /// Removes everything that the server said. Queued mutations are seen over an empty cache, or given up.
    ///
    /// Watchers are told; programs and processes that have the store open go on with the empty cache.
    ///
    /// - Throws: `operations.unsentWork` where there is any and the caller did not say what becomes of it, or where it
    ///   is to be given up and is under way; `records.busy`, `records.full` or `records.notWritable`. Then everything
    ///   is there, but for what was to be given up.
    public func clear(unsent: UnsentWork = .refuse) async throws(LarderError) {
        try await core.requireAwake()
        try await settle(unsent)
        try await emptyCache()
    }

    /// Removes everything that is kept for the user, as when a user signs out for good: the cache, the outcomes of
    /// mutations, the named watchers and the pins, the transfers that have ended; and what is queued, downloads too,
    /// unless it is kept. A runner clears away what transfers that are given up have left at the storage, or in the
    /// store's folder; the transfers are known until then. A caller that waits for a forgotten transfer is told that it
    /// is not known.
    ///
    /// - Throws: As `clear`; `operations.unsentWork` also where an answer came that is yet to be stored, unless all is
    ///   kept: it would bring back what it is about. A runner stores it.
    public func erase(unsent: UnsentWork = .refuse) async throws(LarderError) {
        if unsent != .keep, let database = try core.operationsStore.database(making: false) {
            do { try database.mutations.requireStored(in: core.name) } catch { throw LarderError(error) }
        }
        try await core.requireAwake()
        try await settle(unsent)
        try await eraseTransfers(keepsQueued: unsent == .keep)
        try await emptyCache()
        guard let database = try core.operationsStore.database(making: false) else { return }
        do {
            try await database.mutations.forgetOutcomes(in: core.name)
            try await database.watchers.removeAll(in: core.name)
            try await database.pins.removeAll(in: core.name)
        } catch { throw LarderError(error) }
    }

    private func emptyCache() async throws(LarderError) {
        do { _ = try await core.cache.clear() } catch { throw LarderError.parking(error) }
    }

    private func eraseTransfers(keepsQueued: Bool) async throws(LarderError) {
        guard let table = try core.operationsStore.database(making: false)?.transfers else { return }
        do {
            let erased = try await table.erase(in: core.name, keepsQueued: keepsQueued, now: core.now())
            core.layers.remove(erased.setAside)
            core.operationsStore.changeSignal.notify()
            core.transfers.noteChanges(of: erased.transfers)
        } catch { throw LarderError(error) }
    }

    private func settle(_ unsent: UnsentWork) async throws(LarderError) {
        guard let database = try core.operationsStore.database(making: false) else { return }
        do {
            switch unsent {
            case .keep: break
            case .refuse: try database.requireSent(in: core.name)
            case .discard:
                guard try await database.discardUnsent(in: core.name, now: core.now()) else { return }
                try core.layers.reload(database.mutations)
                core.operationsStore.changeSignal.notify()
                try core.transfers.noteOthers(core)
            }
        } catch { throw LarderError(translating: error) }
    }
}
