import Foundation
import GRDB
import Testing

@testable import LarderOperations

@Suite("Sealed credentials")
struct CredentialTableTests {
    private func key(_ partition: String = app, at time: Date = noon) -> StoredPartitionKey {
        StoredPartitionKey(partition: partition, sealedWith: "k1", sealed: Array("key".utf8), created: time)
    }

    private func credential(_ text: String, _ kind: String = "userPool") -> SealedCredential {
        SealedCredential(kind: kind, identity: "i", sealed: Array(text.utf8), created: noon, updated: noon)
    }

    private func signedIn(_: StoredSession?) -> StoredSession? { StoredSession(state: "signedIn", changed: noon) }

    @Test("Credentials and session are replaced in one, where key and rows are those that were expected")
    func replace() async throws {
        try await withOperations { (database) throws in
            let table = database.credentials
            let same: SessionChange = { _ in nil }
            let (a, b, new) = (credential("a"), credential("b", "cloud"), credential("c"))
            var outcome = try await table.replace(in: app, with: [a], key: key(), session: signedIn)
            #expect(outcome == .otherKey)
            let nothing = try table.snapshot(of: app)
            #expect(nothing == CredentialSnapshot())
            let kept = [try await table.keep(key()), try await table.keep(key(at: after(1)))]
            #expect(kept == [key(), key()])
            outcome = try await table.replace(in: app, with: [a, b], key: key(), session: signedIn)
            #expect(outcome == .stored)
            let first = try table.snapshot(of: app)
            #expect(first.credentials == [b, a])
            #expect(first.session?.state == "signedIn")
            outcome = try await table.replace(in: app, with: [new], key: key(), expecting: [a], session: same)
            #expect(outcome == .changed)
            outcome = try await table.replace(in: app, with: [new], key: key(at: after(1)), session: same)
            #expect(outcome == .otherKey)
            outcome = try await table.replace(in: app, with: [new], key: key(), expecting: [b, a], session: same)
            #expect(outcome == .stored)
            let second = try table.snapshot(of: app)
            #expect(second.credentials == [new])
        }
    }

    @Test("What was replaced since it was read is not put into quarantine")
    func quarantine() async throws {
        try await withOperations { (database) throws in
            let table = database.credentials
            _ = try await table.keep(key())
            let (a, b) = (credential("a"), credential("b", "cloud"))
            _ = try await table.replace(in: app, with: [a, b], key: key(), session: signedIn)
            let old = credential("old")
            let lost: SessionChange = { _ in StoredSession(state: "signedOut", changed: noon) }
            let moved = try await table.quarantine(
                [.init(old, reason: "damaged"), .init(b, reason: "foreign")], in: app, now: noon, session: lost)
            #expect(moved.map(\.kind) == ["cloud"])
            #expect(try table.session(of: app)?.state == "signedIn")
            _ = try await table.quarantine([.init(a, reason: "damaged")], in: app, now: noon, session: lost)
            #expect(try table.session(of: app)?.state == "signedOut")
            #expect(try table.quarantined().map(\.reason) == ["foreign", "damaged"])
            let overview = try #require(try table.overview(of: app).first)
            #expect(overview.credentials == [] && overview.sealedWith == "k1" && overview.quarantined.count == 2)
        }
    }

    @Test("The session is changed only beside the credentials that were expected")
    func session() async throws {
        try await withOperations { (database) throws in
            let table = database.credentials
            _ = try await table.keep(key())
            _ = try await table.replace(in: app, with: [credential("a")], key: key(), session: signedIn)
            let out: SessionChange = { _ in StoredSession(state: "signedOut", reason: "so", changed: after(1)) }
            #expect(try await table.changeSession(of: app, expecting: [credential("b")], out)?.state == "signedIn")
            #expect(try await table.changeSession(of: app, expecting: [credential("a")], out)?.state == "signedOut")
        }
    }

    @Test("What is deleted is overwritten, in the file and in the log, as soon as nobody reads an older state")
    func overwritten() async throws {
        try await withOperations { (database) throws in
            let table = database.credentials
            let secret = Array(repeating: UInt8(0xA7), count: 3000)
            _ = try await table.keep(
                StoredPartitionKey(partition: app, sealedWith: "k1", sealed: secret, created: noon))
            func isThere() throws -> Bool {
                let files = [database.file.path, database.file.path + "-wal"]
                return try files.contains { try Data(contentsOf: URL(filePath: $0)).range(of: Data(secret.prefix(500))) != nil }
            }
            #expect(try isThere())
            var configuration = Configuration()
            configuration.allowsUnsafeTransactions = true
            let other = try DatabaseQueue(path: database.file.path, configuration: configuration)
            try await other.writeWithoutTransaction { db in
                try db.execute(sql: "BEGIN; SELECT count(*) FROM partition")
            }
            #expect(try await table.destroyKey(of: app, until: .now + .milliseconds(20)) == false)
            #expect(try table.snapshot(of: app).key == nil)
            #expect(try isThere())
            try await other.writeWithoutTransaction { db in try db.execute(sql: "COMMIT") }
            #expect(try await database.emptyLog(until: .now + .seconds(30)))
            #expect(try !isThere())
            try other.close()
        }
    }
}
