import Foundation
import LarderTestSupport
import Testing

@Suite(
    "subscribe", .enabled(if: ForeignServer.isAvailable, "\(ForeignServer.requirement)"), .timeLimit(.minutes(10)))
struct SubscribeVerbTests {
    private func withServer(_ body: (CommandFixture, [String]) async throws -> Void) async throws {
        try await withTemporaryFolder { folder in
            let fixture = CommandFixture(folder: folder)
            try await ForeignServer.run("events.py", "strawberry") { server in
                let schema = """
                    type Query { items: [Item!]! }
                    type Subscription { changed: Item! }
                    type Item { id: ID! text: String version: Int! }
                    """
                try await body(
                    fixture,
                    [
                        "subscribe", "--endpoint", server.url.absoluteString, "--schema",
                        try fixture.write(schema, to: "events.graphqls"), "--operation",
                        try fixture.write("subscription { changed { id text } }", to: "changed.graphql"),
                        "--catch-up", try fixture.write("query { items { id text } }", to: "items.graphql"),
                    ])
            }
        }
    }

    @Test("States are printed as documented, and what was missed is fetched first")
    func prints() async throws {
        try await withServer { fixture, arguments in
            let subscribe = try LarderProcess.start(arguments + ["--json", "--store", fixture.store])
            // A state that another follows at once may be left out; the last never is.
            while true {
                try await subscribe.waitForLines(1)
                if try await fixture.larder("get", "Item:1").status == 0 { break }
            }
            subscribe.interrupt()
            let outcome = try await subscribe.finish()
            #expect(outcome.output.contains(#""event":"state""#))
            var documented = try DocumentedResults()
            for line in outcome.output.split(separator: "\n") {
                try documented.compare("`subscribe`, a state", String(line) + "\n")
            }
            documented.finish()
            #expect(documented.problems == [])
        }
    }

    @Test(
        "A proof that is missing is told, with where it comes from",
        arguments: [
            (["--auth", "api-key"], "LARDER_API_KEY"), (["--auth", "user-pool"], "LARDER_TOKEN"),
            (["--auth", "iam"], "--region"), (["--proof", "x"], "--auth"),
        ])
    func asksForProof(_ arguments: [String], _ named: String) async throws {
        try await withServer { fixture, given in
            let outcome = try await fixture.larder(given + arguments)
            #expect(outcome.status == 2)
            #expect(outcome.errors.contains(named))
        }
    }
}
