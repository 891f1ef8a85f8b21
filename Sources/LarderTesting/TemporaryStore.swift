import Foundation
public import Larder

/// Runs `body` with a new and empty store, in memory where the system has a folder for that, which is closed and
/// removed afterwards.
///
/// ```swift
/// try await withTemporaryStore(schemaText: [schema]) { store in
///     let app = try store.partition(transport: ScriptedServer(schema: store.schema))
///     …
/// }
/// ```
///
/// - Throws: What `body` throws; `.schema`; `.files` where the folder cannot be made.
public func withTemporaryStore<Result>(
    schemaText: [String], options: Store.Options = Store.Options(), _ body: (Store) async throws -> Result
) async throws -> Result {
    let folder = temporaryParent().appending(path: "larder-\(UUID().uuidString)")
    defer { try? FileManager.default.removeItem(at: folder) }
    let store = try Store.open(at: folder, schemaText: schemaText, options: options)
    let result: Result
    do { result = try await body(store) } catch {
        // The first failure is the one that is thrown.
        try? store.close()
        throw error
    }
    try store.close()
    return result
}

/// Linux keeps what is in `/dev/shm` in memory.
private func temporaryParent() -> URL {
    let memory = "/dev/shm"
    guard FileManager.default.isWritableFile(atPath: memory) else { return FileManager.default.temporaryDirectory }
    return URL(filePath: memory, directoryHint: .isDirectory)
}
