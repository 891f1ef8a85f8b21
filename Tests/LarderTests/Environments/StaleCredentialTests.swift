import Foundation
import GRDBSQLite
import Larder
import LarderOperations
import LarderTestSupport
import Testing

/// The story of a program whose team went from a prototype's backend to another: what the first had left behind
/// dead-locked the start.
@Suite("Credentials that another backend left behind", .timeLimit(.minutes(10)))
struct StaleCredentialTests {
    enum KeyStore: CaseIterable {
        case ready, locked, slow, hanging

        var behaviour: InMemoryKeyProvider.Behaviour {
            switch self {
            case .ready: .ready
            case .locked: .locked
            case .slow: .slow(.seconds(30))
            case .hanging: .hanging
            }
        }
    }

    private let keys = InMemoryKeyProvider()
    private let identities = InMemoryIdentityProvider()

    private func open(_ folder: URL) throws -> Store {
        var options = Store.Options()
        options.keys = keys
        options.identityProvider = { [identities] _ in identities }
        return try Store.open(at: folder, schema: try Schema(parsing: fixtureSchema), options: options)
    }

    private var prototype: BackendEnvironment { pooled("prototype") }
    private var development: BackendEnvironment { pooled("development") }

    private func pooled(_ name: String) -> BackendEnvironment {
        var environment = backend(name)
        environment.userPool = .init(id: "eu-west-1_\(name)", clientID: name, region: "eu-west-1")
        return environment
    }

    /// Works under the prototype as a user who is signed in, with something queued, and ends.
    private func live(in folder: URL) async throws -> Credentials {
        let store = try open(folder)
        let app = try store.partition(of: prototype, user: .user("ada"))
        let credentials = identities.signIn("ada")
        try await app.session.signIn(credentials, within: .seconds(300))
        try await app.write(
            recipeList,
            json: Array(
                """
                {"recipes":[{"id":"1","title":"Soup","author":{"id":"a","name":"Ada"}}]}
                """.utf8))
        try await app.enqueue(giveStars("1", 5))
        try store.close()
        return credentials
    }

    @Test(
        "A cold start under another environment ends in time and signed out, with the network dead",
        arguments: KeyStore.allCases)
    func coldStart(_ keyStore: KeyStore) async throws {
        try await withTemporaryFolder { folder in
            let credentials = try await live(in: folder)
            keys.behaviour = keyStore.behaviour
            identities.behaviour = .hanging
            let begun = SuspendingClock.now
            let store = try open(folder)
            let app = try store.partition(of: development, leaving: .park, server: ScriptedServer.silent)
            #expect(try app.session.state == .signedOut)
            #expect(throws: LarderError.self) { try app.read(recipeList) }
            #expect(keys.reads <= 2, "no key was asked for by opening")
            let reading = try await app.session.storedCredentials(within: .milliseconds(300))
            #expect(reading == .absent)
            await #expect(throws: LarderError.self) {
                try await app.session.credentials(within: .milliseconds(300))
            }
            await #expect(throws: LarderError.self) {
                try await app.fetch(
                    recipeList, policy: .networkOnly, options: FetchOptions(timeout: .milliseconds(300)))
            }
            // All deadlines together are less than a second, and nobody may wait past one, however busy the machine is.
            #expect(SuspendingClock.now - begun < .seconds(100), "something waited past its deadline")

            // The way back: everything is there, for whoever has the keys.
            let back = try store.partition(of: prototype, leaving: .park)
            #expect(try back.session.state == .signedIn)
            #expect(try back.read(recipeList)["recipes"]?.count == 1)
            #expect(try back.mutations().count == 1)
            if keyStore != .ready {
                let unavailable = try await back.session.storedCredentials(within: .milliseconds(300))
                guard case .unavailable = unavailable else {
                    Issue.record("a key store that does not answer was taken for an empty one: \(unavailable)")
                    return
                }
                #expect(try back.session.state == .signedIn, "nobody is signed out for a key store that is locked")
            }
            keys.behaviour = .ready
            identities.behaviour = .ready
            // Whoever asks while the key is on its way waits with the others.
            #expect(try await back.session.storedCredentials(within: .seconds(300)) == .present(credentials))
            try store.close()
        }
    }

    @Test("Credentials of another environment that lie where ours should are put into quarantine, and not used")
    func planted() async throws {
        try await withTemporaryFolder { folder in
            _ = try await live(in: folder)
            var store = try open(folder)
            let app = try store.partition(of: development, leaving: .park)
            _ = try app.session.state
            let (to, from) = (try store.current()?.name ?? "", try store.partitionIdentities().first?.name ?? "")
            try store.close()
            try plant(in: folder, from: from, to: to)

            store = try open(folder)
            let session = try store.partition(of: development).session
            #expect(try await session.storedCredentials(within: .seconds(300)) == .absent)
            #expect(session.state != .signedIn)
            await #expect(throws: LarderError.self) {
                try await session.credentials(within: .milliseconds(100))
            }
            let status = try session.status()
            #expect(!status.quarantined.isEmpty && status.credentials.isEmpty)
            let back = try await store.switch(to: prototype).partition.session
            guard case .present = try await back.storedCredentials(within: .seconds(300)) else {
                Issue.record("the credentials themselves are lost")
                return
            }
            try store.close()
        }
    }

    @Test("A session of users whom another pool signs in since is over, and the next one is the new pool's")
    func changedPool() async throws {
        try await withTemporaryFolder { folder in
            let store = try open(folder)
            let app = try store.partition(of: development)
            let old = try app.session
            try await old.signIn(identities.signIn("ada"), within: .seconds(300))
            let other = try OperationsDatabase(folder: folder)
            let stored = try #require(try other.environments.find("development"))
            var fingerprints = stored.fingerprints
            fingerprints.identity = "another"
            try await other.environments.put(
                EnvironmentDraft(name: "development", definition: stored.definition, fingerprints: fingerprints),
                now: Date())
            try other.close()
            let new = try app.session
            #expect(new !== old)
            let error = await #expect(throws: LarderError.self) { try await old.credentials(within: .seconds(300)) }
            #expect(error?.code == .parked)
            try store.close()
        }
    }

    /// Copies credentials, their key and the session from one partition to another, as a program that knows nothing of
    /// seals would.
    private func plant(in folder: URL, from: String, to: String) throws {
        var database: OpaquePointer?
        defer { sqlite3_close(database) }
        try #require(sqlite3_open(folder.appending(path: "larder.sqlite").path, &database) == SQLITE_OK)
        func id(_ name: String) -> String { "(SELECT id FROM partition WHERE name = '\(name)')" }
        let sql = """
            INSERT OR REPLACE INTO partition_key (partition, sealed_with, sealed, created)
                SELECT \(id(to)), sealed_with, sealed, created FROM partition_key WHERE partition = \(id(from));
            INSERT OR REPLACE INTO credential (partition, kind, identity, sealed, created, updated)
                SELECT \(id(to)), kind, identity, sealed, created, updated FROM credential
                WHERE partition = \(id(from));
            INSERT OR REPLACE INTO session (partition, state, reason, changed)
                SELECT \(id(to)), state, reason, changed FROM session WHERE partition = \(id(from));
            """
        try #require(sqlite3_exec(database, sql, nil, nil, nil) == SQLITE_OK)
        try #require(sqlite3_changes(database) == 1)
    }

    @Test("The same pool with another client id or region does not use the other's tokens, and A -> B -> A keeps A's")
    func otherClient() async throws {
        try await withTemporaryFolder { folder in
            let credentials = try await live(in: folder)
            let store = try open(folder)
            var other = prototype
            other.userPool?.clientID = "another"
            let app = try store.partition(of: other)
            #expect(try app.session.state == .signedOut)
            #expect(try await app.session.storedCredentials(within: .seconds(300)) == .absent)
            // The data is the same backend's, and stays.
            #expect(try app.read(recipeList)["recipes"]?.count == 1)

            let there = try await store.switch(to: development, user: .user("bob")).partition
            try await there.session.signIn(identities.signIn("bob"), within: .seconds(300))
            let new = identities.signIn("ada")
            let back = try await store.switch(to: other, user: .user("ada")).partition
            try await back.session.signIn(new, within: .seconds(300))
            _ = try await store.switch(to: development)
            let again = try await store.switch(to: other).partition
            #expect(try again.session.state == .signedIn)
            #expect(try await again.session.storedCredentials(within: .seconds(300)) == .present(new))
            #expect(new != credentials)
            try store.close()
        }
    }

    @Test("A session ends with its partition's parking: streams end, waits end, and it is as it was on the way back")
    func parked() async throws {
        try await withTemporaryFolder { folder in
            _ = try await live(in: folder)
            let store = try open(folder)
            let session = try store.partition(of: development, leaving: .park).session
            var changes = session.changes.makeAsyncIterator()
            #expect(try await next(&changes) == .signedOut)
            let waiting = Task { () -> LarderError.Code? in
                do throws(LarderError) { try await session.signedIn(within: .seconds(60)) } catch {
                    return error.code
                }
                return nil
            }
            _ = try await store.switch(to: prototype)
            #expect(try await next(&changes) == nil)
            #expect(await waiting.value == .parked)
            #expect(try store.partition().session.state == .signedIn)
            try store.close()
        }
    }

    @Test("Forgetting a partition a second time fails, since the store does not know it any more")
    func forgottenTwice() async throws {
        try await withEmptyStore { store in
            _ = try store.partition(of: backend("a"))
            _ = try await store.switch(to: backend("b"))
            let identity = try #require(try store.partitionIdentities().first { $0.environment == "a" })
            try await store.forget(identity)
            await expectCode(.operationsUnknownPartition) { try await store.forget(identity) }
        }
    }

    @Test("A partition that is made after its environment was forgotten gets a new name")
    func anotherName() async throws {
        try await withEmptyStore { store in
            _ = try store.partition(of: backend("a"))
            let old = try #require(try store.current())
            _ = try await store.switch(to: backend("b"))
            try await store.forget(environment: "a")
            let change = try await store.switch(to: backend("a"))
            #expect(change.entered.partition.name != old.name)
        }
    }

    @Test("A forgotten environment is destroyed, its key first, and the current one is not")
    func forgotten() async throws {
        try await withTemporaryFolder { folder in
            _ = try await live(in: folder)
            let store = try open(folder)
            var guarded = development
            guarded.isProtected = true
            _ = try store.partition(of: guarded, leaving: .park)
            func code(_ body: () async throws -> Void) async -> String? {
                do { try await body() } catch { return (error as? LarderError)?.code.rawValue }
                return nil
            }
            #expect(await code { try await store.forget(environment: "prototype") } == "operations.unsentWork")
            #expect(await code { try await store.forget(environment: "development") } == "operations.protected")
            let refusal = await code { try await store.forget(environment: "development", confirming: "development") }
            #expect(refusal == "operations.environmentInUse")
            let own = try #require(try store.partitionIdentities().first { $0.environment == "development" })
            #expect(await code { try await store.forget(own) } == "operations.protected")
            #expect(await code { try await store.forget(own, confirming: "development") } == refusal)
            let name = try #require(try store.partitionIdentities().first { $0.environment == "prototype" }).name
            try await store.forget(environment: "prototype", losingUnsent: true)
            #expect(try store.partitionIdentities().map(\.environment) == ["development"])
            let cache = folder.appending(path: "records/\(name)").path
            #expect(!FileManager.default.fileExists(atPath: cache))
            let again = try await store.switch(to: prototype, user: .user("ada")).partition
            #expect(try again.session.state == .signedOut && again.mutations().isEmpty)
            #expect(await code { _ = try again.read(recipeList) } == "larder.miss")
            try store.close()
        }
    }

    @Test("A protected environment is forgotten only when the caller confirms its exact name")
    func otherName() async throws {
        try await withTemporaryFolder { folder in
            let store = try open(folder)
            var guarded = development
            guarded.isProtected = true
            _ = try store.partition(of: guarded)
            _ = try await store.switch(to: prototype)
            let left = try #require(try store.partitionIdentities().first { $0.environment == "development" })
            for name in ["prototype", "Development", ""] {
                await expectCode(.init(rawValue: "operations.protected")) {
                    try await store.forget(environment: "development", confirming: name)
                }
                await expectCode(.init(rawValue: "operations.protected")) {
                    try await store.forget(left, confirming: name)
                }
            }
            try await store.forget(environment: "development", confirming: "development")
            #expect(try store.partitionIdentities().map(\.environment) == ["prototype"])
            try store.close()
        }
    }

    @Test("An environment that the store does not know cannot be forgotten, and the others stay")
    func unknownForgotten() async throws {
        try await withTemporaryFolder { folder in
            let store = try open(folder)
            _ = try store.partition(of: prototype)
            _ = try await store.switch(to: development)
            await expectCode(.operationsUnknownEnvironment) { try await store.forget(environment: "protoype") }
            #expect(try store.partitionIdentities().map(\.environment) == ["prototype", "development"])
            try store.close()
        }
    }
}
