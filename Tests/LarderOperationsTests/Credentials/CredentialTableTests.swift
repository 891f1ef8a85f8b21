import Foundation
import GRDB
import Testing

@testable import LarderOperations

@Suite("Sealed credentials", .timeLimit(.minutes(10)))
struct CredentialTableTests {
    private func key(_ partition: String = app, at time: Date = noon) -> StoredPartitionKey {
        StoredPartitionKey(partition: partition, sealedWith: "k1", sealed: Array("key".utf8), created: time)
    }

    private func credential(_ text: String, _ kind: String = "userPool") -> SealedCredential {
        SealedCredential(kind: kind, identity: "i", sealed: Array(text.utf8), created: noon, updated: noon)
    }

    /// A database that knows the partition, and others.
    private func withPartition(and others: String..., body: (OperationsDatabase) async throws -> Void) async throws {
        try await withOperations { (database) throws in
            for partition in [app] + others {
                _ = try await database.watchers.put("w", in: partition, document: "{ a }", now: noon)
            }
            try await body(database)
        }
    }

    private func signedIn(_: StoredSession?) -> StoredSession? { StoredSession(state: "signedIn", changed: noon) }

    /// Credentials with which a session begins, and the partition's first key.
    private func signingIn(_ credentials: [SealedCredential], in partition: String = app) -> CredentialReplacement {
        .init(
            partition: partition, credentials: credentials, key: key(partition), making: .init(now: noon),
            session: signedIn)
    }

    /// A credential with another key, which takes the place of the first one.
    private func rekeyed(_ credential: SealedCredential) -> CredentialReplacement {
        .init(
            partition: app, credentials: [credential], key: key(at: after(1)),
            making: .init(replacing: key(), reason: "gone", now: noon), session: signedIn)
    }

    @Test("Credentials and session are replaced in one transaction, where key and rows are as expected")
    func replace() async throws {
        try await withPartition { (database) throws in
            let table = database.credentials
            let same: SessionChange = { _ in nil }
            let (a, b, new) = (credential("a"), credential("b", "cloud"), credential("c"))
            var outcome = try await table.replace(
                by: .init(partition: app, credentials: [a], key: key(), session: signedIn))
            #expect(outcome == .otherKey)
            let nothing = try table.snapshot(of: app)
            #expect(nothing.key == nil && nothing.credentials == [] && nothing.session == nil)
            outcome = try await table.replace(by: signingIn([a]))
            #expect(outcome == .stored)
            outcome = try await table.replace(
                by: .init(
                    partition: app, credentials: [b], key: key(at: after(1)), making: .init(now: noon),
                    session: signedIn))
            #expect(outcome == .otherKey)
            outcome = try await table.replace(
                by: .init(partition: app, credentials: [a, b], key: key(), session: signedIn))
            #expect(outcome == .stored)
            let first = try table.snapshot(of: app)
            #expect(first.credentials == [b, a])
            #expect(first.session?.state == "signedIn")
            outcome = try await table.replace(
                by: .init(partition: app, credentials: [new], key: key(), session: same), expecting: [a])
            #expect(outcome == .changed)
            outcome = try await table.replace(
                by: .init(partition: app, credentials: [new], key: key(at: after(1)), session: same))
            #expect(outcome == .otherKey)
            outcome = try await table.replace(
                by: .init(partition: app, credentials: [new], key: key(), session: same), expecting: [b, a])
            #expect(outcome == .stored)
            let second = try table.snapshot(of: app)
            #expect(second.credentials == [new])
        }
    }

    @Test("Credentials that were sealed before the key of the program was changed are stored after it")
    func resealedMeanwhile() async throws {
        try await withPartition { (database) throws in
            let table = database.credentials
            let (a, new) = (credential("a"), credential("new"))
            _ = try await table.replace(by: signingIn([a]))
            let keys = try await table.reseal { old in
                StoredPartitionKey(
                    partition: old.partition, sealedWith: "k2", sealed: json("resealed"), created: old.created)
            }
            #expect(keys.map(\.sealedWith) == ["k2"])
            let outcome = try await table.replace(
                by: .init(partition: app, credentials: [new], key: key(), session: { _ in nil }), expecting: [a])
            #expect(outcome == .stored)
            let snapshot = try table.snapshot(of: app)
            #expect(snapshot.credentials == [new] && snapshot.key == keys.first)
        }
    }

    @Test("A credential of no bytes is one, and no missing one")
    func empty() async throws {
        try await withPartition { (database) throws in
            let outcome = try await database.credentials.replace(by: signingIn([credential("")]))
            #expect(outcome == .stored)
            #expect(try database.credentials.snapshot(of: app).credentials == [credential("")])
        }
    }

    @Test("A key that opens nothing any more gives way with all it has sealed, or not at all")
    func replacedKey() async throws {
        try await withPartition { (database) throws in
            let table = database.credentials
            let (a, new) = (credential("a"), credential("new"))
            _ = try await table.replace(by: signingIn([a]))
            let making = CredentialTable.KeyMaking(replacing: key(at: after(9)), reason: "gone", now: noon)
            var outcome = try await table.replace(
                by: .init(partition: app, credentials: [new], key: key(at: after(1)), making: making, session: signedIn)
            )
            #expect(outcome == .otherKey)
            #expect(try table.snapshot(of: app).credentials == [a])
            outcome = try await table.replace(by: rekeyed(new))
            #expect(outcome == .stored)
            let snapshot = try table.snapshot(of: app)
            #expect(snapshot.credentials == [new] && snapshot.key == key(at: after(1)))
            #expect(try table.quarantined().map(\.kind) == ["userPool", "partitionKey"])
        }
    }

    @Test("Destroying a partition's key destroys one in quarantine as well: what it has sealed is in quarantine too")
    func destroyedKeys() async throws {
        try await withPartition { (database) throws in
            let table = database.credentials
            _ = try await table.replace(by: signingIn([credential("a")]))
            _ = try await table.replace(by: rekeyed(credential("new")))
            #expect(try table.quarantined().map(\.kind).contains(QuarantinedCredential.partitionKeyKind))
            try await table.destroyKey(of: app, until: .now + .seconds(60))
            #expect(try table.quarantined().map(\.kind) == ["userPool"])
            #expect(try table.keys().isEmpty)
        }
    }

    @Test("Nothing is written for a partition that there is not, and only that of no environment is made")
    func unknown() async throws {
        try await withOperations { (database) throws in
            let table = database.credentials
            await expectFailure(.unknownPartition) { _ = try await table.replace(by: signingIn([credential("a")])) }
            await expectFailure(.unknownPartition) { _ = try await table.changeSession(of: app, signedIn) }
            await expectFailure(.unknownPartition) { try await table.forget(in: app, session: signedIn) }
            #expect(try database.environments.partitions() == [])
            _ = try await table.changeSession(of: "main", signedIn)
            #expect(try database.environments.partitions().map(\.name) == ["main"])
        }
    }

    @Test("A credential that was replaced since it was read is not put into quarantine")
    func quarantine() async throws {
        try await withPartition { (database) throws in
            let table = database.credentials
            let (a, b) = (credential("a"), credential("b", "cloud"))
            _ = try await table.replace(by: signingIn([a, b]))
            let old = credential("old")
            let lost: SessionChange = { _ in StoredSession(state: "signedOut", changed: noon) }
            let moved = try await table.quarantine(
                [.init(old, reason: "damaged"), .init(b, reason: "foreign")], in: app, of: "i", now: noon,
                session: lost)
            #expect(moved.map(\.kind) == ["cloud"])
            #expect(try table.session(of: app)?.state == "signedIn")
            _ = try await table.quarantine([.init(a, reason: "damaged")], in: app, of: "i", now: noon, session: lost)
            #expect(try table.session(of: app)?.state == "signedOut")
            #expect(try table.quarantined().map(\.reason) == ["foreign", "damaged"])
            let overview = try #require(try table.overview(of: app).first)
            #expect(overview.credentials == [] && overview.sealedWith == "k1" && overview.quarantined.count == 2)
        }
    }

    @Test("The quarantine keeps the sealed bytes of credentials")
    func keptBytes() async throws {
        try await withPartition { (database) throws in
            let table = database.credentials
            let (a, b) = (credential("a"), credential("b", "cloud"))
            _ = try await table.replace(by: signingIn([a, b]))
            _ = try await table.quarantine(
                [.init(a, reason: "damaged"), .init(b, reason: "foreign")], in: app, of: "i", now: noon,
                session: { _ in nil })
            let kept = try database.read { db in
                try db.rows("SELECT sealed FROM quarantined_credential ORDER BY id") { try $0.bytes(0) }
            }
            #expect(kept == [a.sealed, b.sealed])
        }
    }

    @Test("A key that was replaced since it was read is not put into quarantine")
    func quarantinedKey() async throws {
        try await withPartition { (database) throws in
            let table = database.credentials
            _ = try await table.replace(by: signingIn([credential("a")]))
            let old = StoredPartitionKey(partition: app, sealedWith: "k0", sealed: [99], created: noon)
            let moved = try await table.quarantine(
                [], key: (old, "gone"), in: app, of: "i", now: noon, session: { _ in nil })
            #expect(moved.isEmpty)
            #expect(try table.quarantined().isEmpty && table.keys().count == 1)
        }
    }

    @Test("The session is changed only beside the credentials that were expected")
    func session() async throws {
        try await withPartition { (database) throws in
            let table = database.credentials
            _ = try await table.replace(by: signingIn([credential("a")]))
            let out: SessionChange = { _ in StoredSession(state: "signedOut", reason: "so", changed: after(1)) }
            #expect(try await table.changeSession(of: app, expecting: [credential("b")], out)?.state == "signedIn")
            #expect(try await table.changeSession(of: app, expecting: [credential("a")], out)?.state == "signedOut")
        }
    }

    @Test("Deleted rows are overwritten, in the file and in the log, as soon as no reader sees an older state")
    func overwritten() async throws {
        try await withPartition { (database) throws in
            let table = database.credentials
            let secret = Array(repeating: UInt8(0xA7), count: 3000)
            _ = try await table.replace(
                by: .init(
                    partition: app, credentials: [],
                    key: StoredPartitionKey(partition: app, sealedWith: "k1", sealed: secret, created: noon),
                    making: .init(now: noon), session: signedIn))
            func isThere() throws -> Bool {
                let files = [database.file.path, database.file.path + "-wal"]
                return try files.contains {
                    try Data(contentsOf: URL(filePath: $0)).range(of: Data(secret.prefix(500))) != nil
                }
            }
            #expect(try isThere())
            var configuration = Configuration()
            configuration.allowsUnsafeTransactions = true
            let other = try DatabaseQueue(path: database.file.path, configuration: configuration)
            try other.writeWithoutTransaction { db in
                try db.execute(sql: "BEGIN; SELECT count(*) FROM partition")
            }
            #expect(try await table.destroyKey(of: app, until: .now + .milliseconds(20)) == false)
            #expect(try table.snapshot(of: app).key == nil)
            #expect(try isThere())
            // A reader that ends before the deadline is waited for.
            let emptying = Task { try await database.emptyLog(until: .now + .seconds(60)) }
            try await Task.sleep(for: .milliseconds(50))
            try other.writeWithoutTransaction { db in try db.execute(sql: "COMMIT") }
            #expect(try await emptying.value)
            #expect(try !isThere())
            try other.close()
        }
    }

    @Test("Credentials that may begin no session are not put into quarantine, and nothing of them is kept")
    func refusedQuarantine() async throws {
        try await withPartition { (database) throws in
            let table = database.credentials
            let outcome = try await table.quarantine(
                .init(
                    partition: app, credentials: [credential("a")], key: key(), making: .init(now: noon),
                    session: { _ in nil }), as: "foreign", now: noon)
            #expect(outcome == .refused)
            #expect(try table.quarantined().isEmpty && table.keys().isEmpty)
        }
    }

    @Test("Emptying a partition's quarantine leaves the others'")
    func emptiedQuarantine() async throws {
        try await withPartition(and: "other") { (database) throws in
            let table = database.credentials
            for partition in [app, "other"] {
                _ = try await table.quarantine(signingIn([credential("a")], in: partition), as: "foreign", now: noon)
            }
            #expect(try await table.emptyQuarantine(of: app) == 1)
            #expect(try table.quarantined().map(\.partition) == ["other"])
        }
    }

    @Test("After the log was emptied writers wait for other programs as before")
    func waitingAfterEmptyLog() async throws {
        try await withPartition { (database) throws in
            #expect(try await database.emptyLog(until: .now + .seconds(60)))
            let timeout = try database.writeWithoutTransaction { try Int.fetchOne($0, sql: "PRAGMA busy_timeout") }
            #expect(timeout == Int(database.options.busyTimeout / .milliseconds(1)))
        }
    }

    @Test("Where one key is left as it is, the keys behind it are sealed anew all the same")
    func resealedOthers() async throws {
        try await withOperations { (database) throws in
            let table = database.credentials
            for partition in ["one", "two"] {
                _ = try await database.watchers.put("w", in: partition, document: "{ a }", now: noon)
                _ = try await table.replace(by: signingIn([credential("a")], in: partition))
            }
            let keys = try await table.reseal { old in
                guard old.partition != "one" else { return nil }
                return StoredPartitionKey(
                    partition: old.partition, sealedWith: "k2", sealed: json("resealed"), created: old.created)
            }
            #expect(keys.map(\.sealedWith) == ["k1", "k2"])
        }
    }

    @Test("Forgetting a partition's credentials leaves what is in quarantine, and the credentials of another partition")
    func forgottenOfOne() async throws {
        try await withPartition(and: "other") { (database) throws in
            let table = database.credentials
            for partition in [app, "other"] {
                _ = try await table.replace(by: signingIn([credential("a")], in: partition))
            }
            _ = try await table.quarantine(
                .init(partition: app, credentials: [credential("b")], key: key(), session: signedIn), as: "foreign",
                now: noon)
            try await table.forget(in: app) { _ in nil }
            #expect(try table.snapshot(of: app).credentials == [])
            #expect(try table.snapshot(of: "other").credentials == [credential("a")])
            #expect(try table.quarantined(in: app).map(\.reason) == ["foreign"])
        }
    }

    @Test("A new key of a partition takes the place of its old one and what that has sealed, and of nothing elsewhere")
    func replacedKeyOfOne() async throws {
        try await withPartition(and: "other") { (database) throws in
            let table = database.credentials
            for partition in [app, "other"] {
                _ = try await table.replace(by: signingIn([credential("a")], in: partition))
            }
            let outcome = try await table.replace(by: rekeyed(credential("new")))
            #expect(outcome == .stored)
            let other = try table.snapshot(of: "other")
            #expect(other.credentials == [credential("a")] && other.key == key("other"))
            #expect(try table.quarantined(in: "other").isEmpty)
        }
    }

    @Test("Credentials that are replaced leave those of the same kind in another partition")
    func replacedOfOne() async throws {
        try await withPartition(and: "other") { (database) throws in
            let table = database.credentials
            let both = [credential("b", "cloud"), credential("a")]
            for partition in [app, "other"] {
                _ = try await table.replace(by: signingIn(both, in: partition))
            }
            _ = try await table.replace(
                by: .init(partition: app, credentials: [credential("c")], key: key(), session: signedIn))
            #expect(try table.snapshot(of: app).credentials == [credential("c")])
            #expect(try table.snapshot(of: "other").credentials == both)
        }
    }

    @Test("Forgetting a partition's credentials and changing its session are one commit")
    func forgottenAtOnce() async throws {
        try await withPartition { (database) throws in
            let table = database.credentials
            _ = try await table.replace(by: signingIn([credential("a")]))
            let before = database.commitCount
            try await table.forget(in: app) { _ in StoredSession(state: "signedOut", changed: noon) }
            #expect(database.commitCount == before + 1)
            #expect(try table.snapshot(of: app).credentials == [])
            #expect(try table.session(of: app)?.state == "signedOut")
        }
    }
}
