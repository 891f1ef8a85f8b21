import Foundation
import LarderFiles
import LarderOperations
import LarderTestSupport
import Synchronization
import Testing

@testable import Larder

@Suite("Sessions that another process changes", .timeLimit(.minutes(5)))
struct FollowedSessionTests {
    /// Expects that the session's changes report each state that another process stores.
    private func expectTold(_ app: Partition, of name: String, in folder: URL) async throws {
        var changes = try app.session.changes.makeAsyncIterator()
        #expect(try await next(&changes) == .signedOut)
        let other = try OperationsDatabase(folder: folder)
        for state in [SessionState.signedIn, .signedOut] {
            try await other.credentials.changeSession(of: name) { _ in
                StoredSession(state: state.rawValue, changed: Date())
            }
            #expect(try await next(&changes, within: .seconds(60)) == state)
        }
        try other.close()
    }

    @Test("A session's changes report each state that another process stores")
    func told() async throws {
        try await withTemporaryFolder { folder in
            let store = try Store.open(at: folder, schema: try Schema(parsing: fixtureSchema))
            let app = try store.partition(of: backend("a"))
            let name = try #require(try store.current()).name
            try await expectTold(app, of: name, in: folder)
            try store.close()
        }
    }

    @Test("The session of a store without an environment reports another process's states as well")
    func toldFirst() async throws {
        try await withTemporaryFolder { folder in
            let store = try Store.open(at: folder, schema: try Schema(parsing: fixtureSchema))
            try await expectTold(try store.partition(), of: Store.unnamedPartition, in: folder)
            try store.close()
        }
    }

    @Test("Credentials that were read are kept in memory until a process commits something")
    func keptInMemory() async throws {
        try await withSessions { bench in
            let (session, mine) = (bench.session(), bench.provider.signIn("ada"))
            try await session.signIn(mine, within: soon)
            _ = try await session.userPoolTokens(within: soon)
            #expect(try session.vault.unchanged()?.credentials.value == mine)
            let other = try OperationsDatabase(folder: bench.folder)
            _ = try await other.watchers.put("w", in: "main", document: "{ a }", now: bench.clock.now)
            let known = try session.vault.unchanged()
            #expect(known == nil)
            try other.close()
        }
    }

    @Test("A runner that waits for a sign-in goes on when another process signs a user in")
    func runner() async throws {
        let isSignedIn = Flag()
        let server = ScriptedServer { _ in
            guard isSignedIn.isSet else { throw TransportError(.status, "who?", status: 401) }
            return #"{"data":{"rate":{"__typename":"Recipe","id":"1","title":"Soup","rating":5}}}"#
        }
        try await withTemporaryFolder { folder in
            let store = try Store.open(at: folder, schema: try Schema(parsing: fixtureSchema))
            let app = try store.partition(server: server)
            let receipt = try await app.enqueue(giveStars("1", 5))
            let runner = MutationRunner(app)
            let running = Task { try await runner.run() }
            try await eventually { runner.state == .waitingForSignIn }
            isSignedIn.set()
            let other = try OperationsDatabase(folder: folder)
            try await other.credentials.changeSession(of: Store.unnamedPartition) { _ in
                StoredSession(state: SessionState.signedIn.rawValue, changed: Date())
            }
            #expect(try await receipt.outcome(within: .seconds(60)).isApplied)
            running.cancel()
            try await running.value
            try other.close()
            try store.close()
        }
    }

    @Test("A session refreshes the tokens while its own call for cloud credentials is not yet answered")
    func tokensBesideCloud() async throws {
        let (isAsked, isFree) = (Flag(), Flag())
        let provider = ScriptedProvider { part in
            guard part == .cloud else {
                return Credentials(userPool: .init(idToken: "i2", accessToken: "a2", expires: .distantFuture))
            }
            isAsked.set()
            await isFree.wait()
            return Credentials(cloud: .init(accessKeyID: "AK", secretAccessKey: "s", expires: .distantFuture))
        }
        try await withSessions { bench in
            let session = bench.session(by: provider)
            let old = Credentials.UserPoolTokens(
                idToken: "i", accessToken: "a", refreshToken: "r", expires: .distantFuture)
            try await session.signIn(Credentials(userPool: old), within: soon)
            let waiting = Task { try await session.cloudCredentials(within: soon) }
            await isAsked.wait()
            let failure = await larderError { try await session.userPoolTokens(within: .seconds(20), refused: old) }
            #expect(failure == nil)
            #expect(try await session.userPoolTokens(within: soon).accessToken == "a2")
            isFree.set()
            #expect(try await waiting.value.accessKeyID == "AK")
        }
    }

    @Test("The callers of a process share the refresh that is under way")
    func sharedUnderWay() async throws {
        let mayFail = Flag()
        let asked = Mutex(0)
        let provider = ScriptedProvider { (_: Credentials.Part) async throws(IdentityError) in
            asked.withLock { $0 += 1 }
            await mayFail.wait()
            throw IdentityError(.unreachable, "as told")
        }
        try await withSessions { bench in
            let session = bench.session(by: provider)
            let mine = bench.provider.signIn("ada")
            try await session.signIn(mine, within: soon)
            let tokens = try #require(mine.userPool)
            let refreshes = try (0..<5).map { _ in try session.sharedRefresh(.userPool, unless: .tokens(tokens)) }
            #expect(refreshes.allSatisfy { $0 === refreshes[0] })
            mayFail.set()
            _ = try #require(await refreshes[0].value(until: .now + soon))
            #expect(asked.withLock { $0 } == 1)
        }
    }

    @Test("A session that has waited for another process's refresh of cloud credentials takes what that has stored")
    func cloudOfOther() async throws {
        try await withSessions { (bench) async throws in
            let session = bench.session()
            var mine = bench.provider.signIn("ada")
            mine.cloud?.expires = .distantPast
            try await session.signIn(mine, within: soon)
            let lock = try await HeldLock.acquire(
                "main" + Session.lockSuffix(of: .cloud), in: bench.locks, FileSystem(), for: "a test",
                label: "other", until: .now + soon)
            let refresh = try session.sharedRefresh(.cloud, unless: .nothing)
            mine.cloud = bench.provider.signIn("ada").cloud
            try await bench.session().signIn(mine, within: soon)
            lock.release()
            let outcome = try #require(await refresh.value(until: .now + soon))
            let given = try outcome.result.get()?.value
            #expect(given == mine)
            #expect(bench.provider.attempts == 0)
        }
    }

    @Test("A session that can refresh nothing gives tokens and cloud credentials until they end")
    func untilTheyEnd() async throws {
        try await withSessions { (bench) async throws in
            let mine = bench.provider.signIn("ada")
            try await bench.session().signIn(mine, within: soon)
            bench.clock.advance(by: .seconds(3600 - 30))
            let alone = bench.session(by: nil)
            let reader = try bench.readOnlyDatabase()
            for session in [alone, bench.session(database: reader)] {
                #expect(try await session.userPoolTokens(within: soon) == mine.userPool)
                #expect(try await session.cloudCredentials(within: soon) == mine.cloud)
            }
            bench.clock.advance(by: .seconds(60))
            await expectCode(.noIdentityProvider) { _ = try await alone.userPoolTokens(within: soon) }
            await expectCode(.noIdentityProvider) { _ = try await alone.cloudCredentials(within: soon) }
            #expect(bench.provider.attempts == 0)
            try reader.close()
        }
    }
}
