import Foundation
import GRDBSQLite
import LarderOperations
import LarderTestSupport
import Testing

@testable import Larder

private let title = GraphQLFragment("fragment F on Recipe { title }")

private func open(_ folder: URL, _ change: (inout Store.Options) -> Void = { _ in }) throws -> Store {
    var options = Store.Options()
    options.keys = InMemoryKeyProvider()
    options.logger.logLevel = .critical
    change(&options)
    return try Store.open(at: folder, schema: try Schema(parsing: fixtureSchema), options: options)
}

extension OperationsDatabase {
    fileprivate func enter(_ name: String) async throws {
        try await environments.enter(
            Destination(environment: .draft(backend(name).draft), user: .guest, newName: "partition-of-\(name)"),
            leaving: .park, now: Date())
    }
}

@Suite("Changes while a store looks elsewhere", .timeLimit(.minutes(10)))
struct LateChangeTests {
    @Test("A program that names no environment has its identity provider before anything was stored")
    func unnamedProvider() async throws {
        try await withTemporaryFolder { folder in
            let identities = InMemoryIdentityProvider(lifetime: .seconds(1))
            let store = try open(folder.appending(path: "store")) { $0.identityProvider = { _ in identities } }
            let app = try store.partition()
            try await app.session.signIn(identities.signIn("ada"), within: soon)
            _ = try await app.session.credentials(within: soon)
            #expect(identities.refreshes == 1)
            try store.close()
        }
    }

    @Test("A switch is noticed that another process made before there was anything to look at")
    func firstSwitchElsewhere() async throws {
        try await withTemporaryFolder { folder in
            let elsewhere = folder.appending(path: "elsewhere")
            let other = try OperationsDatabase(folder: elsewhere)
            try await other.enter("b")
            try other.close()

            let place = folder.appending(path: "store")
            let store = try open(place)
            let app = try store.partition()
            var currents = try store.currentPartitions().makeAsyncIterator()
            try FileManager.default.moveItem(
                at: elsewhere.appending(path: OperationsDatabase.fileName),
                to: place.appending(path: OperationsDatabase.fileName))
            #expect(try await next(&currents)??.environment == "b")
            #expect(throws: LarderError.self) { try app.requireNotParked() }
            try store.close()
        }
    }

    @Test("A switch in another process is noticed after a partition was closed while it was looked at")
    func closedPartition() async throws {
        try await withTemporaryFolder { folder in
            let store = try open(folder)
            let app = try store.partition(of: backend("a"))
            var currents = try store.currentPartitions().makeAsyncIterator()
            #expect(try await next(&currents)??.environment == "a")
            try app.close()
            try await Task.sleep(for: .milliseconds(400))
            let other = try OperationsDatabase(folder: folder)
            try await other.enter("b")
            #expect(try await next(&currents)??.environment == "b")
            try other.close()
            try store.close()
        }
    }

    @Test("A switch in another process is noticed at once, also where it comes right after another")
    func noticedSoon() async throws {
        try await withTemporaryFolder { folder in
            let store = try open(folder)
            _ = try store.partition(of: backend("a"))
            var currents = try store.currentPartitions().makeAsyncIterator()
            #expect(try await next(&currents)??.environment == "a")
            let other = try OperationsDatabase(folder: folder)
            var shortest = Duration.seconds(60)
            for number in 0..<10 {
                let name = number.isMultiple(of: 2) ? "b" : "a"
                let start = ContinuousClock.now
                try await other.enter(name)
                #expect(try await next(&currents, within: .seconds(20))??.environment == name)
                if number > 0 { shortest = min(shortest, ContinuousClock.now - start) }
            }
            // A tenth of a second is promised; the shortest of many waits is one of a machine at rest.
            #expect(shortest < .milliseconds(500), "\(shortest)")
            try other.close()
            try store.close()
        }
    }

    @Test("A partition that was left before it could be opened is parked")
    func openedLate() async throws {
        try await withTemporaryFolder { folder in
            let store = try open(folder)
            let database = try store.operationsDatabase()
            try await database.enter("a")
            let a = try #require(try database.environments.current()?.partition)
            let b = try await store.switch(to: backend("b")).partition
            let late = try store.current(a, nil)
            #expect(throws: LarderError.self) { try late.requireNotParked() }
            try b.requireNotParked()
            try store.close()
        }
    }

    @Test("New credentials that could not be stored are not lost by switching to and fro")
    func unsavedCredentials() async throws {
        try await withTemporaryFolder { folder in
            let place = folder.appending(path: "store")
            // What is good still would be given where new ones cannot be stored.
            let identities = InMemoryIdentityProvider(lifetime: .zero)
            let writer = OtherWriter()
            let store = try open(place) { options in
                options.lockTimeout = .milliseconds(50)
                options.identityProvider = { _ in ProviderWithHook(base: identities) { writer.begin(in: place) } }
            }
            let app = try store.partition(of: backend("a"))
            try await app.session.signIn(identities.signIn("ada"), within: soon)
            await expectCode(.init(rawValue: "operations.busy")) {
                _ = try await app.session.credentials(within: soon)
            }
            writer.end()
            _ = try await store.switch(to: backend("b"))
            let back = try await store.switch(to: backend("a")).partition
            let credentials = try await back.session.credentials(within: .seconds(300))
            #expect(try await back.session.storedCredentials(within: soon) == .present(credentials))
            #expect(identities.refreshes == 1 && identities.refusals == 0)
            try store.close()
        }
    }

    @Test("A watcher that ends after its partition was parked ends no other's")
    func watcherNumbers() {
        let index = WatcherIndex()
        let old = index.add { _ in }
        index.close()
        index.reopen()
        let new = index.add { _ in }
        #expect(old != new)
        if let old { index.remove(old) }
        #expect(!index.isEmpty)
    }

    @Test("Each of several readers of the current partitions is told of a switch")
    func severalReaders() async throws {
        try await withTemporaryFolder { folder in
            let store = try open(folder)
            _ = try store.partition(of: backend("a"))
            var first = try store.currentPartitions().makeAsyncIterator()
            var second = try store.currentPartitions().makeAsyncIterator()
            #expect(try await next(&first)??.environment == "a")
            #expect(try await next(&second)??.environment == "a")
            _ = try await store.switch(to: backend("b"))
            #expect(try await next(&first, within: .seconds(20))??.environment == "b")
            #expect(try await next(&second, within: .seconds(20))??.environment == "b")
            try store.close()
        }
    }

    @Test("A reader of the current partition is told of it once, however often the store looks at it")
    func toldOnce() async throws {
        try await withTemporaryFolder { folder in
            let store = try open(folder)
            _ = try store.partition(of: backend("a"))
            var currents = try store.currentPartitions().makeAsyncIterator()
            #expect(await currents.next()??.environment == "a")
            _ = try store.partition(of: backend("a"))
            _ = try store.currentPartitions()
            try store.close()
            #expect(await currents.next() == nil)
        }
    }
}

extension Partition {
    fileprivate func requireNotParked() throws { try core.requireCurrent() }
}

/// Calls `refreshed` when the provider has given new credentials.
private struct ProviderWithHook: IdentityProvider {
    let base: InMemoryIdentityProvider
    let refreshed: @Sendable () -> Void

    func refresh(
        _ part: Credentials.Part, of credentials: Credentials, within time: Duration
    ) async throws(IdentityError) -> Credentials {
        let deadline = SuspendingClock.now + time
        let new = try await base.refresh(part, of: credentials, within: .until(deadline))
        refreshed()
        return new
    }

    func signOut(_ credentials: Credentials, within time: Duration) async throws(IdentityError) {
        try await base.signOut(credentials, within: time)
    }
}

/// Another program that writes to a store's intent and does not come to an end.
private final class OtherWriter: Sendable {
    // Safe: SQLite's connections may be used from any thread, and the test calls one after the other.
    private nonisolated(unsafe) var database: OpaquePointer?

    func begin(in folder: URL) {
        let path = folder.appending(path: OperationsDatabase.fileName).path
        #expect(sqlite3_open(path, &database) == SQLITE_OK)
        #expect(sqlite3_exec(database, "BEGIN IMMEDIATE", nil, nil, nil) == SQLITE_OK)
    }

    func end() { sqlite3_close(database) }
}
