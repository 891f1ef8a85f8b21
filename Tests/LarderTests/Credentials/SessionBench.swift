import Foundation
import Larder
import LarderOperations
import LarderTestSupport
import Synchronization
import Testing

/// A store's intent with everything that a session needs, and an identity provider and keys that behave as they are
/// told.
struct SessionBench {
    let folder: URL
    let database: OperationsDatabase
    let clock: TestClock
    let keys = InMemoryKeyProvider()
    let provider: InMemoryIdentityProvider

    static let identity = "identity-of-a"

    var locks: URL { folder.appending(path: "locks") }

    func session(
        _ partition: String = "main", identity: String = Self.identity, keys: (any KeyProvider)? = nil,
        database: OperationsDatabase? = nil, _ change: (inout Session.Options) -> Void = { _ in }
    ) -> Session {
        var options = Session.Options()
        options.now = { [clock] in clock.now }
        options.logger.logLevel = .critical
        change(&options)
        return Session(
            database: database ?? self.database, partition: partition, identity: identity, keys: keys ?? self.keys,
            provider: provider, locksFolder: locks, options: options)
    }

    /// Partitions that there are, of no environment.
    func makePartitions(_ names: String...) async throws {
        for name in names {
            _ = try await database.watchers.put("w", in: name, document: "{ a }", now: clock.now)
        }
    }

    func snapshot(_ partition: String = "main") throws -> CredentialSnapshot {
        try database.credentials.snapshot(of: partition)
    }
}

func withSessions(_ body: (SessionBench) async throws -> Void) async throws {
    try await withTemporaryFolder { parent in
        let folder = parent.appending(path: "store")
        let database = try OperationsDatabase(folder: folder)
        let clock = TestClock()
        let bench = SessionBench(
            folder: folder, database: database, clock: clock, provider: InMemoryIdentityProvider { clock.now })
        try await body(bench)
        #expect(try database.check().problems == [])
        try database.close()
    }
}

/// Long enough for whatever is to happen, beside all other tests on whatever machine.
let soon = Duration.seconds(300)

func expectCode(
    _ code: LarderError.Code, sourceLocation: SourceLocation = #_sourceLocation, _ body: () async throws -> Void
) async {
    let error = await #expect(throws: LarderError.self, sourceLocation: sourceLocation) { try await body() }
    #expect(error?.code == code, sourceLocation: sourceLocation)
}

/// Waits for something that other tasks bring about.
func eventually(
    sourceLocation: SourceLocation = #_sourceLocation, _ isSo: () throws -> Bool
) async throws {
    let deadline = SuspendingClock.now + soon
    while try !isSo() {
        try #require(.now < deadline, "it did not come about", sourceLocation: sourceLocation)
        try await Task.sleep(for: .milliseconds(2))
    }
}
