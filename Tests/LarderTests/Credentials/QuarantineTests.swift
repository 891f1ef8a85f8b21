import Foundation
import GRDBSQLite
import LarderFiles
import LarderOperations
import LarderTestSupport
import Testing

@testable import Larder

@Suite("Credentials in quarantine", .timeLimit(.minutes(10)))
struct QuarantineTests {
    /// Changes the database as another program would.
    private func run(_ sql: String, _ bench: SessionBench) throws {
        var connection: OpaquePointer?
        defer { sqlite3_close_v2(connection) }
        try #require(sqlite3_open_v2(bench.database.file.path, &connection, SQLITE_OPEN_READWRITE, nil) == SQLITE_OK)
        sqlite3_busy_timeout(connection, 10_000)
        let code = sqlite3_exec(connection, sql, nil, nil, nil)
        try #require(code == SQLITE_OK, "\(String(cString: sqlite3_errmsg(connection)))")
    }

    @Test("Foreign tokens are neither used nor kept where they would be: same pool with another client")
    func otherEnvironment() async throws {
        try await withSessions { bench in
            try await bench.session().signIn(bench.provider.signIn("ada"), within: soon)
            let other = bench.session(identity: "identity-of-b")
            #expect(try await other.storedCredentials(within: soon) == .absent)
            #expect(other.state == .signedOut)
            let status = try other.status()
            #expect(status.credentials == [])
            #expect(status.quarantined.map(\.reasonName) == ["otherEnvironment", "otherEnvironment"])
            #expect(bench.provider.refreshes == 0)
        }
    }

    @Test("Readers of a session's state see that all credentials went into quarantine")
    func toldOfState() async throws {
        try await withSessions { bench in
            try await bench.session().signIn(bench.provider.signIn("ada"), within: soon)
            let other = bench.session(identity: "identity-of-b")
            var changes = other.changes.makeAsyncIterator()
            #expect(try await next(&changes) == .signedIn)
            #expect(try await other.storedCredentials(within: soon) == .absent)
            #expect(try await next(&changes, within: .seconds(20)) == .signedOut)
        }
    }

    @Test("A process that has an environment as it was before its pool changed moves nothing and signs no user out")
    func stale() async throws {
        try await withSessions { bench in
            func enter(_ identity: String) async throws {
                let draft = EnvironmentDraft(
                    name: "a", definition: Array(#"{"name":"a","identity":"\#(identity)"}"#.utf8),
                    fingerprints: Fingerprints(identity: identity, data: "d", storage: "s"))
                try await bench.database.environments.put(draft, now: bench.clock.now)
            }
            try await enter(SessionBench.identity)
            try await bench.database.environments.enter(
                Destination(environment: .stored("a"), user: .guest, newName: "pa"), leaving: nil, now: bench.clock.now)
            let old = bench.session("pa")
            try await old.signIn(bench.provider.signIn("ada"), within: soon)
            try await enter("identity-of-b")
            let (new, mine) = (bench.session("pa", identity: "identity-of-b"), bench.provider.signIn("bob"))
            try await new.signIn(mine, within: soon)
            let before = try bench.snapshot("pa")
            await expectCode(.parked) { _ = try await old.storedCredentials(within: soon) }
            await expectCode(.parked) { _ = try await old.credentials(within: soon) }
            await expectCode(.parked) { try await old.signIn(bench.provider.signIn("ada"), within: soon) }
            #expect(try bench.snapshot("pa") == before)
            #expect(try new.status().quarantined == [])
            #expect(try await new.storedCredentials(within: soon) == .present(mine))
        }
    }

    @Test("A foreign credential is not waited for, even where the key store never answers")
    func foreignWhileHanging() async throws {
        try await withSessions { bench in
            try await bench.session().signIn(bench.provider.signIn("ada"), within: soon)
            bench.keys.behaviour = .hanging
            let reads = bench.keys.reads
            #expect(try await bench.session(identity: "identity-of-b").storedCredentials(within: soon) == .absent)
            #expect(bench.keys.reads == reads)
            bench.keys.behaviour = .ready
        }
    }

    @Test("A session quarantines a credential that was sealed for another partition without reading any key")
    func otherPartitionWhileHanging() async throws {
        try await withSessions { bench in
            try await bench.session().signIn(bench.provider.signIn("ada"), within: soon)
            try await bench.makePartitions("other")
            try await bench.session("other").signIn(bench.provider.signIn("bob"), within: soon)
            try await bench.database.credentials.forget(in: "other") { _ in nil }
            try run("UPDATE credential SET partition = 2", bench)
            bench.keys.behaviour = .hanging
            let (reads, reader) = (bench.keys.reads, bench.session("other"))
            #expect(try await reader.storedCredentials(within: .milliseconds(300)) == .absent)
            #expect(bench.keys.reads == reads)
            #expect(try reader.status().quarantined.map(\.reasonName) == ["otherPartition", "otherPartition"])
            bench.keys.behaviour = .ready
        }
    }

    @Test(
        "A credential that claims this environment and was sealed in another is found out",
        arguments: [
            ("UPDATE credential SET identity = 'identity-of-b'", "otherEnvironment"),
            ("UPDATE credential SET partition = 2", "otherPartition"),
            ("UPDATE credential SET partition = 2, identity = 'identity-of-b'", "otherEnvironment"),
            ("UPDATE credential SET sealed = substr(sealed, 1, 30)", "damaged"),
            ("UPDATE credential SET sealed = x''", "damaged"),
            (
                "UPDATE credential SET sealed = CAST(substr(sealed, 1, 60) || x'00' || substr(sealed, 62) AS BLOB)",
                "damaged"
            ),
            ("UPDATE credential SET sealed = CAST(substr(sealed, 1, length(sealed) - 1) || x'00' AS BLOB)", "damaged"),
            ("UPDATE credential SET sealed = CAST('Lcrd' || x'02' || substr(sealed, 6) AS BLOB)", "newerFormat"),
            ("UPDATE credential SET sealed = CAST('Lcrd' || x'02' AS BLOB)", "damaged"),
            ("UPDATE credential SET kind = 'cloud'", "damaged"),
            ("UPDATE credential SET kind = 'passkey'", "newerFormat"),
        ])
    func planted(_ sql: String, _ reason: String) async throws {
        try await withSessions { bench in
            let session = bench.session()
            var (mine, theirs) = (bench.provider.signIn("ada"), bench.provider.signIn("bob"))
            (mine.cloud, theirs.cloud) = (nil, nil)
            try await session.signIn(mine, within: soon)
            try await bench.makePartitions("other")
            try await bench.session("other").signIn(theirs, within: soon)
            // The other has a key, and is to have the first's credentials.
            try await bench.database.credentials.forget(in: "other") { _ in nil }
            try run(sql, bench)
            let (isMoved, isOfB) = (sql.contains("partition = 2"), sql.contains("identity-of-b"))
            let reader = bench.session(
                isMoved ? "other" : "main", identity: isOfB ? "identity-of-b" : SessionBench.identity)
            #expect(try await reader.storedCredentials(within: soon) == .absent)
            #expect(reader.state == .signedOut)
            #expect(try reader.status().quarantined.map(\.reasonName) == [reason])
            // Once and for all.
            #expect(try await reader.storedCredentials(within: soon) == .absent)
            #expect(try reader.status().quarantined.count == 1)
        }
    }

    /// Fails the first calls, as a key store that is unlocked meanwhile.
    private final class LateKeys: KeyProvider {
        let keys: MasterKeys
        let failures: Countdown
        let description = "late keys"

        init(_ keys: MasterKeys, after failures: Int) { (self.keys, self.failures) = (keys, Countdown(failures)) }

        func keys(within time: Duration) async throws(KeyError) -> MasterKeys {
            if failures.take() { throw KeyError(.locked, "not yet") }
            return keys
        }

        func makeKey(within time: Duration) async throws(KeyError) -> MasterKeys { keys }
        func addKey(within time: Duration) async throws(KeyError) -> MasterKeys { keys }
        func dropKeys(_ ids: Set<String>, within time: Duration) async throws(KeyError) {}
    }

    @Test("A key that cannot be had for a moment is not taken for lost: what it has sealed stays", arguments: [2, 3])
    func late(failures: Int) async throws {
        try await withSessions { bench in
            let mine = bench.provider.signIn("ada")
            try await bench.session().signIn(mine, within: soon)
            let keys = LateKeys(try await bench.keys.keys(within: soon), after: failures)
            let before = try bench.snapshot()
            let session = bench.session(keys: keys)
            let error = await #expect(throws: LarderError.self) {
                try await session.signIn(bench.provider.signIn("bob"), within: soon)
            }
            #expect(error?.code.rawValue == "keys.locked")
            #expect(try bench.snapshot() == before)
            #expect(try bench.session().status().quarantined == [])
            #expect(try await bench.session().storedCredentials(within: soon) == .present(mine))
        }
    }

    @Test("Where it is not certain that there is no key, none is made for a first sign-in")
    func uncertain() async throws {
        try await withSessions { bench in
            let session = bench.session(keys: LateKeys(MasterKeys(current: MasterKey()), after: 1))
            await expectCode(.keysLocked) { try await session.signIn(bench.provider.signIn("ada"), within: soon) }
            let key = try bench.snapshot().key
            #expect(key == nil && session.state == .signedOut)
        }
    }

    @Test("A damaged credential leaves the other kind")
    func one() async throws {
        try await withSessions { bench in
            let (session, mine) = (bench.session(), bench.provider.signIn("ada"))
            try await session.signIn(mine, within: soon)
            try run("UPDATE credential SET sealed = zeroblob(200) WHERE kind = 'cloud'", bench)
            #expect(
                try await session.storedCredentials(within: soon) == .present(Credentials(userPool: mine.userPool)))
            #expect(session.state == .signedIn)
            #expect(try session.status().quarantined.map(\.kind) == ["cloud"])
        }
    }

    @Test(
        "A user whose tokens are damaged is not signed in by the rest, also while the key cannot be had",
        arguments: [
            (
                false,
                "UPDATE credential SET sealed = CAST(substr(sealed, 1, 60) || x'00' AS BLOB) WHERE kind = 'userPool'"
            ),
            (true, "UPDATE credential SET sealed = zeroblob(200) WHERE kind = 'userPool'"),
        ])
    func incomplete(isLocked: Bool, _ sql: String) async throws {
        try await withSessions { bench in
            try await bench.session().signIn(bench.provider.signIn("ada"), within: soon)
            try run(sql, bench)
            if isLocked { bench.keys.behaviour = .locked }
            let session = bench.session()
            #expect(try await session.storedCredentials(within: soon) == .absent)
            #expect(session.state == .signedOut)
            #expect(try session.status().quarantined.map(\.kind) == ["userPool", "cloud"])
            #expect(try session.status().quarantined.map(\.reasonName) == ["damaged", "incomplete"])
        }
    }

    @Test("A damaged key of the partition takes its credentials into quarantine, and signing in again works")
    func damagedKey() async throws {
        try await withSessions { bench in
            let mine = bench.provider.signIn("ada")
            try await bench.session().signIn(mine, within: soon)
            try run("UPDATE partition_key SET sealed = CAST(substr(sealed, 1, 40) || zeroblob(34) AS BLOB)", bench)
            let session = bench.session()
            #expect(try await session.storedCredentials(within: soon) == .absent)
            #expect(session.state == .signedOut)
            let quarantined = try session.status().quarantined
            #expect(Set(quarantined.map(\.kind)) == ["cloud", "userPool", "partitionKey"])
            #expect(quarantined.filter { $0.part != nil }.map(\.reason) == [.keyDamaged, .keyDamaged])
            try await session.signIn(mine, within: soon)
            #expect(try await session.storedCredentials(within: soon) == .present(mine))
        }
    }

    @Test("A sign-in that finds the partition's key damaged puts what it has sealed into quarantine as that")
    func damagedKeyAtSignIn() async throws {
        try await withSessions { bench in
            let mine = bench.provider.signIn("ada")
            try await bench.session().signIn(mine, within: soon)
            try run("UPDATE partition_key SET sealed = CAST(substr(sealed, 1, 40) || zeroblob(34) AS BLOB)", bench)
            let session = bench.session()
            try await session.signIn(mine, within: soon)
            #expect(try session.status().quarantined.map(\.reason) == [.keyDamaged, .keyDamaged, .keyDamaged])
            #expect(try await session.storedCredentials(within: soon) == .present(mine))
        }
    }

    @Test("Each credential that is put into quarantine is logged")
    func logged() async throws {
        try await withSessions { bench in
            try await bench.session().signIn(bench.provider.signIn("ada"), within: soon)
            let log = RecordedLog(from: .warning)
            let session = bench.session(identity: "identity-of-b") { $0.logger = log.logger }
            for _ in 0..<2 { #expect(try await session.storedCredentials(within: soon) == .absent) }
            let text = "a credential was put into quarantine"
            #expect(log.texts.withLock { $0 } == [text, text])
        }
    }

    @Test("What a store's session puts into quarantine is logged where the store's options say")
    func loggedByStore() async throws {
        try await withTemporaryFolder { folder in
            let (log, provider) = (RecordedLog(from: .warning), InMemoryIdentityProvider())
            var options = Store.Options()
            options.logger = log.logger
            options.session.missingKey = .startAnew
            for isFirst in [true, false] {
                options.keys = InMemoryKeyProvider()
                let store = try Store.open(
                    at: folder.appending(path: "store"), schema: try Schema(parsing: fixtureSchema), options: options)
                let session = try store.partition().session
                if isFirst { try await session.signIn(provider.signIn("ada"), within: soon) }
                _ = try await session.storedCredentials(within: soon)
                try store.close()
            }
            let texts = log.texts.withLock { $0 }
            #expect(texts.filter { $0 == "a credential was put into quarantine" }.count == 2)
        }
    }

    @Test("A store that is read only reports what is foreign, and moves nothing")
    func readOnly() async throws {
        try await withSessions { bench in
            try await bench.session().signIn(bench.provider.signIn("ada"), within: soon)
            let before = try bench.snapshot()
            let reader = try bench.readOnlyDatabase()
            let session = bench.session(identity: "identity-of-b", database: reader)
            #expect(try await session.storedCredentials(within: soon) == .absent)
            await expectCode(.notSignedIn) { _ = try await session.credentials(within: soon) }
            let found = try await session.vault.read(until: .now + soon) { _ in nil }
            #expect(found.suspects.map(\.reason) == ["otherEnvironment", "otherEnvironment"])
            #expect(try bench.snapshot() == before)
            try reader.close()
        }
    }

    @Test("A store that is read only reports what belongs in quarantine each time, beside credentials that are good")
    func readOnlyAgain() async throws {
        try await withSessions { bench in
            let mine = bench.provider.signIn("ada")
            try await bench.session().signIn(mine, within: soon)
            try run("UPDATE credential SET sealed = zeroblob(200) WHERE kind = 'cloud'", bench)
            let reader = try bench.readOnlyDatabase()
            let session = bench.session(database: reader)
            for _ in 0..<2 {
                let found = try await session.vault.read(until: .now + soon) { _ in nil }
                #expect(found.reading == .present(Credentials(userPool: mine.userPool)))
                #expect(found.suspects.map(\.credential.kind) == ["cloud"])
            }
            try reader.close()
        }
    }

    @Test("Random bytes and random damage are never read as credentials", arguments: [UInt64(1), 2, 3])
    func noise(_ seed: UInt64) async throws {
        try await withSessions { bench in
            var random = SeededNumbers(seed: seed)
            let mine = Credentials(userPool: bench.provider.signIn("ada").userPool)
            let session = bench.session()
            for _ in 0..<30 {
                try await session.signIn(mine, within: soon)
                var bytes = try #require(try bench.snapshot().credentials.first).sealed
                switch random.next() % 3 {
                case 0: bytes[Int(random.next() % UInt64(bytes.count))] ^= UInt8(1 + random.next() % 255)
                case 1: bytes.removeLast(1 + Int(random.next() % UInt64(bytes.count)))
                default: bytes = (0..<Int(random.next() % 300)).map { _ in UInt8(truncatingIfNeeded: random.next()) }
                }
                let text = hexadecimal(bytes)
                try run("UPDATE credential SET sealed = x'\(text)'", bench)
                let reading = try await session.storedCredentials(within: soon)
                #expect(reading == .absent, "seed \(seed): \(text)")
            }
        }
    }

    @Test("What a newer version has sealed with the right key goes into quarantine as that, and not as damaged")
    func newerFields() async throws {
        try await withSessions { bench in
            try await bench.session().signIn(bench.provider.signIn("ada"), within: soon)
            let keys = try await bench.keys.keys(within: soon)
            let key = try KeyRing.unseal(try #require(try bench.snapshot().key), with: keys, bench.keys)
            var fields = FieldBytes()
            fields.add(9, [1])
            let sealed = try SealedBytes.seal(
                fields.bytes, of: .credential(of: "main", identity: SessionBench.identity), name: "userPool", with: key)
            try run("UPDATE credential SET sealed = x'\(hexadecimal(sealed))' WHERE kind = 'userPool'", bench)
            let session = bench.session()
            #expect(try await session.storedCredentials(within: soon) == .absent)
            #expect(try session.status().quarantined.map(\.reasonName) == ["newerFormat", "incomplete"])
        }
    }

    @Test("The status says of what is in quarantine which part it is, why it is there, and since when")
    func told() async throws {
        try await withSessions { bench in
            try await bench.session().signIn(bench.provider.signIn("ada"), within: soon)
            bench.clock.advance(by: .seconds(60))
            let other = bench.session(identity: "identity-of-b")
            _ = try await other.storedCredentials(within: soon)
            let found = try other.status().quarantined
            #expect(found.count == 2 && Set(found.map(\.part)) == [.userPool, .cloud])
            #expect(found.allSatisfy { $0.reason == .otherEnvironment && $0.time == bench.clock.now })
        }
    }
}
