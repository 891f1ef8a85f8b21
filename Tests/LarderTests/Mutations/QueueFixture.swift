import Foundation
import Larder
import LarderTestSupport
import Testing

/// Runs `body` with a new store, its folder and its partition, and closes the store. Some tests damage the files, so it
/// does not look through them afterwards, as `withStoreFixture` does.
func withOpenStore(
    _ transport: (any GraphQLTransport)? = nil, schema: String = fixtureSchema,
    options: Store.Options = Store.Options(), _ body: (URL, Store, Partition) async throws -> Void
) async throws {
    try await withTemporaryFolder { folder in
        let store = try Store.open(at: folder, schema: try Schema(parsing: schema), options: options)
        try await body(folder, store, try store.partition(server: transport))
        try store.close()
    }
}

/// Runs `body` in a new store, whose time of day is the clock's.
func withClock(
    _ transport: any GraphQLTransport, schema: String = fixtureSchema, _ clock: TestClock = TestClock(),
    _ body: (Partition, TestClock) async throws -> Void
) async throws {
    var options = Store.Options()
    options.now = { clock.now }
    try await withOpenStore(transport, schema: schema, options: options) { _, _, app in try await body(app, clock) }
}

/// Queues one mutation in a new store, and drains the queue.
///
/// - Returns: The mutation's status afterwards.
@discardableResult
func settled(
    _ operation: GraphQLOperation = giveStars("1", 5), options: MutationOptions = MutationOptions(),
    by server: ScriptedServer, schema: String = fixtureSchema, sourceLocation: SourceLocation = #_sourceLocation,
    _ change: (inout MutationRunner.Options) -> Void = { _ in }
) async throws -> MutationStatus {
    var status: MutationStatus?
    try await withStoreFixture(server, schema: schema) { app in
        let receipt = try await app.enqueue(operation, options: options)
        try await quickRunner(app, change).drain()
        status = try receipt.status()
    }
    return try #require(status, sourceLocation: sourceLocation)
}

/// Expects that a runner sets a mutation aside after two requests. Replays it, and expects that the runner applies it
/// after two more.
func expectAppliedOnceReplayed(
    _ operation: GraphQLOperation = giveStars("1", 5), by server: ScriptedServer, schema: String = fixtureSchema,
    sourceLocation: SourceLocation = #_sourceLocation, _ change: (inout MutationRunner.Options) -> Void = { _ in }
) async throws {
    try await withStoreFixture(server, schema: schema) { app in
        let receipt = try await app.enqueue(operation)
        let runner = quickRunner(app, change)
        let running = Task { try await runner.run() }
        try await eventually(fileID: sourceLocation.fileID, line: sourceLocation.line) {
            try receipt.status()?.state == .deadLetter
        }
        #expect(server.requests.count == 2, sourceLocation: sourceLocation)
        try await app.replayMutation(receipt.id)
        try await eventually(fileID: sourceLocation.fileID, line: sourceLocation.line) {
            let state = try receipt.status()?.state
            return state == .applied || state == .deadLetter
        }
        #expect(try receipt.status()?.state == .applied, sourceLocation: sourceLocation)
        #expect(server.requests.count == 4, sourceLocation: sourceLocation)
        running.cancel()
        try await running.value
    }
}
