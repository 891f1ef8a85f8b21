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

    /// Has the server publish an event until `subscribe` has printed `text`.
    private func publish(
        _ fixture: CommandFixture, at endpoint: String, until subscribe: LarderProcess.Running, prints text: String,
        sourceLocation: SourceLocation = #_sourceLocation
    ) async throws {
        let schema = """
            type Query { n: Int }
            type Mutation { set(id: ID!, text: String): Item! }
            type Item { id: ID! text: String }
            """
        let send = [
            "send", "--endpoint", endpoint, "--schema", try fixture.write(schema, to: "set.graphqls"), "--operation",
            try fixture.write(#"mutation { set(id: "2", text: "two") { id } }"#, to: "set.graphql"), "--store",
            fixture.path("other"),
        ]
        // One that comes before the subscription has begun is no event of it.
        let deadline = SuspendingClock.now + .seconds(60)
        while !subscribe.output.contains(text) {
            try #require(.now < deadline, "no event came", sourceLocation: sourceLocation)
            let sent = try await LarderProcess.run(send)
            #expect(sent.status == 0, "\(sent.errors)", sourceLocation: sourceLocation)
        }
    }

    @Test("States are printed as documented, and what was missed is fetched first")
    func prints() async throws {
        try await withServer { fixture, arguments in
            let subscribe = try LarderProcess.start(arguments + ["--json", "--store", fixture.store])
            // A state that another follows at once may be left out; the last never is.
            try await subscribe.waitForLines(1)
            try await eventually { try await fixture.larder("get", "Item:1").status == 0 }
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

    @Test("After --count events it ends; each is printed as documented, and in the store")
    func counts() async throws {
        try await withServer { fixture, arguments in
            let subscribe = try LarderProcess.start(arguments + ["--count", "1", "--json", "--store", fixture.store])
            try await publish(fixture, at: arguments[2], until: subscribe, prints: #""event":"data""#)
            let outcome = try await subscribe.finish()
            #expect(outcome.status == 0, "\(outcome.errors)")
            let events = outcome.output.split(separator: "\n").filter { $0.contains(#""event":"data""#) }
            #expect(events.count == 1 && events[0].contains(#""id":"2","text":"two""#), "\(events)")
            var documented = try DocumentedResults()
            for event in events { try documented.compare("`subscribe`, an event", event + "\n") }
            documented.finish()
            #expect(documented.problems == [])
            #expect(try await fixture.larder("get", "Item:2").output.contains("two"))
        }
    }

    @Test("What the server reports beside an event's data is printed with it")
    func errorsOfEvent() async throws {
        try await withServer { fixture, arguments in
            let schema = """
                type Query { items: [Item!]! }
                type Subscription { changed: Item! }
                type Item { id: ID! unreadable: String }
                """
            try fixture.write(schema, to: "events.graphqls")
            try fixture.write("subscription { changed { id unreadable } }", to: "changed.graphql")
            try fixture.write("query { items { id } }", to: "items.graphql")
            let subscribe = try LarderProcess.start(arguments + ["--count", "1", "--json", "--store", fixture.store])
            try await publish(fixture, at: arguments[2], until: subscribe, prints: #""event":"data""#)
            let outcome = try await subscribe.finish()
            let event = outcome.output.split(separator: "\n").last { $0.contains(#""event":"data""#) } ?? ""
            #expect(event.contains(#""data":{"changed":{"id":"2","unreadable":null}}"#), "\(event)")
            #expect(event.contains(#""errors":[{"message":"unreadable","path":["changed","unreadable"]"#), "\(event)")
        }
    }

    @Test("A subscription that the server refuses ends the command with the server's failure")
    func ended() async throws {
        try await withServer { fixture, arguments in
            let schema = """
                type Query { items: [Item!]! }
                type Subscription { changed: Item! other: Item! }
                type Item { id: ID! text: String version: Int! }
                """
            try fixture.write(schema, to: "events.graphqls")
            try fixture.write("subscription { other { id text } }", to: "changed.graphql")
            let outcome = try await fixture.larder(arguments)
            #expect(outcome.status == 1, "\(outcome.errors)")
            let last = try #require(outcome.output.split(separator: "\n").last)
            let code = try #require(last.firstMatch(of: /^ended.*: .+ \[([a-zA-Z.]+)\]$/)?.1, "\(outcome.output)")
            let json = try await fixture.larder(arguments + ["--json"])
            #expect(json.errors.contains(#""error":{"code":"\#(code)""#), "\(json.errors)")
        }
    }

    @Test(
        "A proof that is missing is told, with where it comes from",
        arguments: [
            (["--auth", "api-key"], "LARDER_API_KEY"), (["--auth", "user-pool"], "LARDER_TOKEN"),
            (["--auth", "iam"], "--region"), (["--auth", "iam", "--region", ""], "--region"),
            (["--proof", "x"], "--auth"),
        ])
    func asksForProof(_ arguments: [String], _ named: String) async throws {
        try await withServer { fixture, given in
            let outcome = try await fixture.larder(given + arguments)
            #expect(outcome.status == 2)
            #expect(outcome.errors.contains(named))
        }
    }

    @Test("In words an event is a line with the data that the server has sent")
    func eventInWords() async throws {
        try await withServer { fixture, arguments in
            let subscribe = try LarderProcess.start(arguments + ["--count", "1", "--store", fixture.store])
            try await publish(fixture, at: arguments[2], until: subscribe, prints: #"{"data""#)
            let lines = try await subscribe.finish().output.split(separator: "\n")
            #expect(lines.last == #"{"data":{"changed":{"id":"2","text":"two"}}}"#, "\(lines)")
        }
    }

    @Test("A live subscription has in JSON neither a time since when it is stale nor an error")
    func live() async throws {
        try await withServer { fixture, arguments in
            let subscribe = try LarderProcess.start(arguments + ["--json", "--store", fixture.store])
            let deadline = SuspendingClock.now + .seconds(60)
            while !subscribe.output.contains(#""phase":"live""#), .now < deadline {
                try await Task.sleep(for: .milliseconds(10))
            }
            subscribe.interrupt()
            let lines = try await subscribe.finish().output.split(separator: "\n")
            let live = try #require(lines.first { $0.contains(#""phase":"live""#) }, "\(lines)")
            #expect(live.contains(#""staleSince":null,"code":null,"message":null"#), "\(live)")
        }
    }
}
