import Foundation
import Larder
import LarderOperations
import LarderTestSupport
import Synchronization
import Testing

/// Does something before its keys are given.
private final class InterruptedKeys: KeyProvider {
    private let keys = InMemoryKeyProvider()
    private let interruption = Mutex<(@Sendable () async -> Void)?>(nil)

    var description: String { "interrupted keys" }

    /// Does it before the keys are given next, once.
    func interrupt(_ body: @escaping @Sendable () async -> Void) { interruption.withLock { $0 = body } }

    func keys(within time: Duration) async throws(KeyError) -> MasterKeys {
        let body = interruption.withLock { interruption in
            defer { interruption = nil }
            return interruption
        }
        await body?()
        return try await keys.keys(within: time)
    }

    func makeKey(within time: Duration) async throws(KeyError) -> MasterKeys { try await keys.makeKey(within: time) }
    func addKey(within time: Duration) async throws(KeyError) -> MasterKeys { try await keys.addKey(within: time) }

    func dropKeys(_ ids: Set<String>, within time: Duration) async throws(KeyError) {
        try await keys.dropKeys(ids, within: time)
    }
}

@Suite("Credentials and keys that go meanwhile", .timeLimit(.minutes(5)))
struct LostCredentialTests {
    @Test("A session whose credentials are gone is over at once, says why, and tells its readers")
    func gone() async throws {
        try await withSessions { bench in
            let session = bench.session()
            for isWhole in [true, false] {
                try await session.signIn(bench.provider.signIn("ada"), within: soon)
                var changes = session.changes.makeAsyncIterator()
                #expect(try await next(&changes) == .signedIn)
                // As by a program that knows nothing of sessions.
                try await bench.database.credentials.forget(in: "main") { _ in nil }
                await expectCode(.notSignedIn) {
                    if isWhole {
                        _ = try await session.credentials(within: .milliseconds(300))
                    } else {
                        _ = try await session.userPoolTokens(within: .seconds(3))
                    }
                }
                #expect(session.state == .signedOut)
                #expect(try session.standing().reason?.contains("no credentials any more") == true)
                #expect(try await next(&changes, within: .seconds(20)) == .signedOut)
            }
        }
    }

    @Test("A sign-in during which the partition's key is destroyed seals with a new one")
    func keyDestroyed() async throws {
        try await withSessions { bench in
            let keys = InterruptedKeys()
            try await bench.session(keys: keys).signIn(bench.provider.signIn("ada"), within: soon)
            let old = try bench.snapshot().key
            let new = bench.provider.signIn("ada")
            let session = bench.session(keys: keys)
            keys.interrupt { _ = try? await bench.database.credentials.destroyKey(of: "main", until: .now + soon) }
            try await session.signIn(new, within: soon)
            #expect(try await session.storedCredentials(within: soon) == .present(new))
            #expect(session.state == .signedIn)
            #expect(try bench.snapshot().key != old)
        }
    }

    @Test("A first sign-in while the keys are locked makes no key")
    func lockedAtFirst() async throws {
        struct LockedKeys: KeyProvider {
            let isAsked = Flag()
            let description = "locked keys"

            func keys(within time: Duration) async throws(KeyError) -> MasterKeys { throw KeyError(.locked, "locked") }

            func makeKey(within time: Duration) async throws(KeyError) -> MasterKeys {
                isAsked.set()
                return MasterKeys(current: MasterKey())
            }

            func addKey(within time: Duration) async throws(KeyError) -> MasterKeys { try await makeKey(within: time) }
            func dropKeys(_ ids: Set<String>, within time: Duration) async throws(KeyError) {}
        }
        try await withSessions { (bench) async throws in
            let (keys, mine) = (LockedKeys(), bench.provider.signIn("ada"))
            await expectCode(.keysLocked) { try await bench.session(keys: keys).signIn(mine, within: soon) }
            #expect(!keys.isAsked.isSet)
            #expect(try bench.snapshot().key == nil)
        }
    }

    @Test("Whoever begins to follow a session that is over is told nothing, and waits for nothing")
    func closed() async throws {
        try await withTemporaryFolder { folder in
            let store = try Store.open(at: folder, schema: try Schema(parsing: fixtureSchema))
            let session = try store.partition().session
            try store.close()
            var (states, standings) = (session.changes.makeAsyncIterator(), session.standings.makeAsyncIterator())
            #expect(try await next(&states, within: .seconds(20)) == nil)
            #expect(try await next(&standings, within: .seconds(20)) == nil)
        }
    }
}
