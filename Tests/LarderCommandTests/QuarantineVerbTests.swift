import Foundation
import LarderOperations
import LarderTestSupport
import Testing

@Suite("Credentials in quarantine from the command line", .timeLimit(.minutes(10)))
struct QuarantineVerbTests {
    @Test("The JSON names the kind, the reason and since when, and nothing of the credential")
    func names() async throws {
        try await TransferFixture.run { fixture in
            let time = Date(timeIntervalSince1970: 1_800_000_000)
            try await OperationsDatabase.using(URL(filePath: fixture.store)) { database in
                let held = SealedCredential(
                    kind: "userPool", identity: "i", sealed: Array("secret".utf8), created: time, updated: time)
                let key = StoredPartitionKey(partition: "main", sealedWith: "k", sealed: [1], created: time)
                _ = try await database.credentials.replace(
                    by: .init(
                        partition: "main", credentials: [held], key: key, making: .init(now: time),
                        session: { _ in StoredSession(state: "signedIn", changed: time) }))
                _ = try await database.credentials.quarantine(
                    [.init(held, reason: "damaged")], in: "main", of: "i", now: time, session: { _ in nil })
            }
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
            try await OperationsDatabase.using(URL(filePath: fixture.store)) { database in
                _ = try await database.credentials.changeSession(of: "main") { _ in
                    StoredSession(
                        state: "userPoolTokensInvalid", reason: "the pool refuses",
                        changed: Date(timeIntervalSince1970: 1_800_000_000))
                }
            }
            let json = try await fixture.larder("session", "--json").output
            let since = #""since":"2027-01-15T08:00:00Z""#
            let expected = #""state":"userPoolTokensInvalid",\#(since),"reason":"the pool refuses""#
            #expect(json.contains(expected), "\(json)")
            let text = try await fixture.larder("session").output
            #expect(text.contains(" userPoolTokensInvalid - 2027-01-15T08:00:00Z (in "), "\(text)")
            #expect(text.hasSuffix(") the pool refuses\n"), "\(text)")
        }
    }
}
