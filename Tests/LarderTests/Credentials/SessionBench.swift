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
        session(by: provider, partition, identity: identity, keys: keys, database: database, change)
    }

    /// A session of another identity provider, or of none.
    func session(
        by provider: (any IdentityProvider)?, _ partition: String = "main", identity: String = Self.identity,
        keys: (any KeyProvider)? = nil, database: OperationsDatabase? = nil,
        _ change: (inout Session.Options) -> Void = { _ in }
    ) -> Session {
        var options = Session.Options()
        options.now = { [clock] in clock.now }
        options.logger.logLevel = .critical
        change(&options)
        return Session(
            database: database ?? self.database, partition: partition, identity: identity, keys: keys ?? self.keys,
            provider: provider, locksFolder: locks, options: options)
    }

    /// A session in which ada has just signed in.
    func signedIn() async throws -> Session {
        let session = session()
        try await session.signIn(provider.signIn("ada"), within: soon)
        return session
    }

    /// A session whose credentials have ended by now.
    func signedInAnHourAgo() async throws -> Session {
        let session = try await signedIn()
        clock.advance(by: .seconds(3600))
        return session
    }

    /// Signs in, and asks for credentials that have ended: the provider was asked, and does not answer yet.
    func hangingRefresh(
        of session: Session, sourceLocation: SourceLocation = #_sourceLocation
    ) async throws -> Task<Credentials, any Error> {
        try await session.signIn(provider.signIn("ada"), within: soon)
        clock.advance(by: .seconds(3600))
        provider.behaviour = .hanging
        let refresh = Task { try await session.credentials(within: soon) }
        try await eventually(fileID: sourceLocation.fileID, line: sourceLocation.line) { provider.attempts == 1 }
        return refresh
    }

    /// Puts a mutation into the queue.
    @discardableResult
    func enqueueMutation(in partition: String = "main") async throws -> Mutation {
        let content = MutationContent(document: "mutation { a }", variables: Array("{}".utf8))
        return try await database.mutations.enqueue(
            MutationDraft(partition: partition, content: content, created: clock.now))
    }

    /// A second connection to the same database, which can only read.
    func readOnlyDatabase() throws -> OperationsDatabase {
        var options = OperationsDatabase.Options()
        options.isReadOnly = true
        return try OperationsDatabase(folder: folder, options: options)
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

/// Answers each refresh as a test says.
struct ScriptedProvider: IdentityProvider {
    let answer: @Sendable (Credentials.Part) async throws(IdentityError) -> Credentials

    func refresh(
        _ part: Credentials.Part, of credentials: Credentials, within time: Duration
    ) async throws(IdentityError) -> Credentials {
        try await answer(part)
    }

    func signOut(_ credentials: Credentials, within time: Duration) async throws(IdentityError) {}
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
