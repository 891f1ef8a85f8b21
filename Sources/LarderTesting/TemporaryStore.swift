public import Larder

/// Runs `body` with a new and empty store, as `Store.temporary` makes it, which is closed and removed afterwards.
///
/// ```swift
/// try await withTemporaryStore(schemaText: [schema]) { store in
///     let app = try store.partition(server: ScriptedServer(schema: store.schema))
///     …
/// }
/// ```
///
/// - Throws: What `body` throws; as `Store.temporary` and `Store.close`.
public func withTemporaryStore<Result>(
    schemaText: [String], options: Store.Options = Store.Options(), _ body: (Store) async throws -> Result
) async throws -> Result {
    let store = try Store.temporary(schemaText: schemaText, options: options)
    let result: Result
    do { result = try await body(store) } catch {
        // The first failure is the one that is thrown.
        try? store.close()
        throw error
    }
    try store.close()
    return result
}
