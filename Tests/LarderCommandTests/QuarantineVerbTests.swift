import Foundation
import LarderOperations
import LarderTestSupport
import Testing

@Suite("Credentials in quarantine from the command line", .timeLimit(.minutes(10)))
struct QuarantineVerbTests {
    /// 2027-01-15T08:00:00Z.
    private static let time = Date(timeIntervalSince1970: 1_800_000_000)

    /// Stores a user's tokens, created at `time` and refreshed so many seconds later.
    private func signIn(
        in database: OperationsDatabase, refreshedAfter seconds: TimeInterval = 0
    ) async throws -> SealedCredential {
        let refreshed = Self.time + seconds
        // The session's own time is neither, so that none is taken for another unseen.
        let between = Self.time + seconds / 2
        let held = SealedCredential(
            kind: "userPool", identity: "i", sealed: Array("secret".utf8), created: Self.time, updated: refreshed)
        let key = StoredPartitionKey(partition: "main", sealedWith: "k", sealed: [1], created: Self.time)
        _ = try await database.credentials.replace(
            by: .init(
                partition: "main", credentials: [held], key: key, making: .init(now: between),
                session: { _ in StoredSession(state: "signedIn", changed: between) }))
        return held
    }

    /// Puts tokens of a signed-in user into quarantine.
    private func quarantine(in fixture: TransferFixture) async throws {
        try await OperationsDatabase.using(URL(filePath: fixture.store)) { database in
            let held = try await signIn(in: database)
            _ = try await database.credentials.quarantine(
                [.init(held, reason: "damaged")], in: "main", of: "i", now: Self.time, session: { _ in nil })
        }
    }

    /// Notes that the user pool takes a user's tokens no longer.
    private func refuseTokens(in fixture: TransferFixture) async throws {
        try await OperationsDatabase.using(URL(filePath: fixture.store)) { database in
            _ = try await database.credentials.changeSession(of: "main") { _ in
                StoredSession(state: "userPoolTokensInvalid", reason: "the pool refuses", changed: Self.time)
            }
        }
    }

    @Test("The JSON names the kind, the reason and since when, and nothing of the credential")
    func names() async throws {
        try await TransferFixture.run { fixture in
            try await quarantine(in: fixture)
            let told = try await fixture.larder("credentials", "--json")
            #expect(told.status == 0, "\(told.errors)")
            let expected = #""quarantined":[{"kind":"userPool","reason":"damaged","time":"2027-01-15T08:00:00Z"}]"#
            #expect(told.output.contains(expected), "\(told.output)")

            #expect(try await fixture.larder("credentials", "empty-quarantine").status == 4)
            #expect(try await fixture.larder("credentials", "--json").output == told.output)
            let emptied = try await fixture.larder("credentials", "empty-quarantine", "--write")
            #expect(emptied.output == "destroyed 1 credential in quarantine\n")
            #expect(try await fixture.larder("credentials", "--json").output.contains(#""quarantined":[]"#))
        }
    }

    @Test("A session's state is told with its reason, in words and as JSON")
    func reason() async throws {
        try await TransferFixture.run { fixture in
            try await refuseTokens(in: fixture)
            let json = try await fixture.larder("session", "--json").output
            let since = #""since":"2027-01-15T08:00:00Z""#
            let expected = #""state":"userPoolTokensInvalid",\#(since),"reason":"the pool refuses""#
            #expect(json.contains(expected), "\(json)")
            let text = try await fixture.larder("session").output
            #expect(text.contains(" userPoolTokensInvalid - 2027-01-15T08:00:00Z (in "), "\(text)")
            #expect(text.hasSuffix(") the pool refuses\n"), "\(text)")
        }
    }

    @Test("The JSON names the key that credentials are sealed with, when they came and when they were last refreshed")
    func ages() async throws {
        try await TransferFixture.run { fixture in
            _ = try await OperationsDatabase.using(URL(filePath: fixture.store)) {
                try await signIn(in: $0, refreshedAfter: 3_600)
            }
            let told = try await fixture.larder("credentials", "--json").output
            let times = #""created":"2027-01-15T08:00:00Z","updated":"2027-01-15T09:00:00Z""#
            let expected = #""sealedWith":"k","credentials":[{"kind":"userPool",\#(times)}]"#
            #expect(told.contains(expected), "\(told)")
        }
    }

    @Test("Words tell when credentials were last stored, and the JSON also when they were first stored")
    func age() async throws {
        try await TransferFixture.run { fixture in
            _ = try await OperationsDatabase.using(URL(filePath: fixture.store)) {
                try await signIn(in: $0, refreshedAfter: 86_400)
            }
            let text = try await fixture.larder("credentials").output
            #expect(text.contains(" userPool stored 2027-01-16T08:00:00Z ("), "\(text)")
            let json = try await fixture.larder("credentials", "--json").output
            let times = #""created":"2027-01-15T08:00:00Z","updated":"2027-01-16T08:00:00Z""#
            #expect(json.contains(times), "\(json)")
        }
    }

    @Test("Words tell since when credentials are in quarantine")
    func since() async throws {
        try await TransferFixture.run { fixture in
            try await quarantine(in: fixture)
            let told = try await fixture.larder("credentials").output
            #expect(told.contains(" userPool in quarantine since 2027-01-15T08:00:00Z ("), "\(told)")
        }
    }

    @Test("On a terminal the state of a session whose tokens are refused has a colour")
    func coloured() async throws {
        try await TransferFixture.run { fixture in
            try await refuseTokens(in: fixture)
            let terminal = try Terminal(["session", "--store", fixture.store])
            #expect(await terminal.finish() == 0)
            #expect(terminal.shown.contains("\u{1B}[33muserPoolTokensInvalid\u{1B}[0m"), "\(terminal.shown)")
        }
    }
}
