import LarderGraphQL
import LarderOperations
import LarderRecords

extension Partition {
    /// Watches an operation under a name, by which it is known after a restart: the first answer then says which
    /// objects have changed meanwhile.
    ///
    /// The same name with another operation or other variables begins anew.
    ///
    /// - Throws: `.syntax`, `.operation`, `.variables`; `operations.…` where it cannot be stored.
    public func watch(named name: String, _ operation: GraphQLOperation) async throws(LarderError) -> NamedWatch {
        try await core.requireAwake()
        _ = try core.operations.bound(query: operation)
        let database = try core.operationsStore.database()
        let stored: StoredWatcher
        do {
            stored = try await database.watchers.put(
                name, in: core.name, document: operation.document, operationName: operation.name,
                variables: Value.object(operation.variables).json, now: core.now())
        } catch { throw LarderError(error) }
        return try watch(stored, operation)
    }

    /// Watches again the operation that was stored under a name.
    ///
    /// - Throws: `operations.unknownWatcher`; what `watch` with an operation throws, where the schema has changed
    ///   since.
    public func watch(named name: String) async throws(LarderError) -> NamedWatch {
        let stored: StoredWatcher?
        do { stored = try core.operationsStore.database(making: false)?.watchers.get(name, in: core.name) } catch {
            throw LarderError(translating: error)
        }
        guard let stored else {
            throw LarderError(
                .init(rawValue: OperationsError.Code.unknownWatcher.rawValue),
                "There is no watcher named \(name); watch an operation under that name first")
        }
        return try watch(stored, stored.operation)
    }

    /// The names of the watchers that are stored, in ascending order.
    public func watcherNames() throws(LarderError) -> [String] {
        do {
            return try core.operationsStore.database(making: false)?.watchers.list(in: core.name).map(\.name) ?? []
        } catch {
            throw LarderError(translating: error)
        }
    }

    /// Forgets a named watcher. One that is being iterated fails with `operations.unknownWatcher`.
    ///
    /// - Throws: `operations.unknownWatcher`; `.parked`.
    public func removeWatcher(named name: String) async throws(LarderError) {
        try await core.requireAwake()
        let watchers = try core.operationsStore.database().watchers
        do { try await watchers.remove(name, in: core.name) } catch { throw LarderError(error) }
    }

    private func watch(_ stored: StoredWatcher, _ operation: GraphQLOperation) throws(LarderError) -> NamedWatch {
        core.followOthers()
        return NamedWatch(
            partition: self, name: stored.name, operation: try core.operations.bound(operation),
            position: stored.position.map { ChangePosition(epoch: $0.epoch, number: $0.number) },
            states: try watch(operation))
    }
}

extension StoredWatcher {
    /// - Throws: `.variables`.
    var operation: GraphQLOperation {
        get throws(LarderError) {
            try GraphQLOperation(document, name: operationName, storedVariables: variables, of: "watcher \(name)")
        }
    }
}
