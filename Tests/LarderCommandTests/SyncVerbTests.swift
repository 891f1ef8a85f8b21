import Foundation
import Larder
import LarderRecords
import LarderTestSupport
import Testing

@Suite("sync", .enabled(if: ForeignServer.isAvailable, "\(ForeignServer.requirement)"), .timeLimit(.minutes(10)))
struct SyncVerbTests {
    private static let schema = """
        scalar AWSTimestamp
        type Query { syncTodos(limit: Int, nextToken: String, lastSync: AWSTimestamp): TodoConnection }
        type TodoConnection { items: [Todo]! nextToken: String startedAt: AWSTimestamp }
        type Todo @typePolicy(versioned: true) {
          id: ID! title: String _version: Int! _deleted: Boolean _lastChangedAt: AWSTimestamp!
        }
        """
    private static let operation = """
        query Sync($limit: Int, $nextToken: String, $lastSync: AWSTimestamp) {
          syncTodos(limit: $limit, nextToken: $nextToken, lastSync: $lastSync) { items { id title } nextToken startedAt }
        }
        """

    /// Runs `body` with the arguments that synchronize with a server, which is set up by `start`.
    private func withServer(
        _ start: String, _ body: (CommandFixture, _ sync: [String]) async throws -> Void
    ) async throws {
        try await withTemporaryFolder { folder in
            let fixture = CommandFixture(folder: folder)
            try await ForeignServer.run("appsync.py", start) { server in
                let sync = [
                    "sync", "--endpoint", server.url.absoluteString,
                    "--schema", try fixture.write(Self.schema, to: "todos.graphqls"),
                    "--operation", try fixture.write(Self.operation, to: "sync.graphql"),
                ]
                try await body(fixture, sync)
            }
        }
    }

    /// As `withServer`, with a server that has `items` and gives two on a page, and with the key that it takes.
    private func withItems(
        _ items: String = "", _ body: (CommandFixture, _ sync: [String]) async throws -> Void
    ) async throws {
        let start = #"{"apiKey": "key", "tokens": [], "region": "r", "pageSize": 2, "put": [\#(items)]}"#
        try await withServer(start) { fixture, sync in
            let key = "x-api-key: @\(try fixture.write("key\n", to: "key.txt"))"
            try await body(fixture, sync + ["--header", key])
        }
    }

    private static let three = """
        {"id": "a", "title": "a1"}, {"id": "b", "title": "b1"}, {"id": "c", "title": "c1"}
        """

    /// Notes that a subscription has brought everything until 2027-01-15T08:00:00Z.
    private func noteSubscription(in fixture: CommandFixture) async throws {
        let cache = try Store.openCache(at: URL(filePath: fixture.store), partition: "main")
        try await cache.note(["k": .init(name: "Subscription.changed", time: 1_800_000_000_000)])
        try cache.close()
    }

    @Test("Everything comes first, in calls of so many pages, and then what has changed")
    func follows() async throws {
        try await withItems(Self.three) { fixture, sync in
            let arguments = sync + ["--json"]
            let first = try await fixture.larder(arguments + ["--pages", "1"])
            #expect(first.output.contains(#""isFinished":false"#))
            #expect(first.output.contains(#","startedAt":null,"openPages":1}]"#), "\(first)")
            var documented = try DocumentedResults()
            try documented.compare("`sync`", first.output)
            try await noteSubscription(in: fixture)
            let rest = try await fixture.larder(arguments)
            let heard = #"[{"name":"Subscription.changed","completeUntil":"2027-01-15T08:00:00Z"}]"#
            #expect(rest.output.contains(#""subscriptions":\#(heard)"#), "\(rest.output)")
            #expect(rest.output.contains(#""isFinished":true"#))
            #expect(rest.output.contains(/,"startedAt":[1-9]\d*,"openPages":null\}\]/), "\(rest)")
            try documented.compare("`sync`", rest.output)
            documented.finish()
            #expect(documented.problems == [])
            let delta = try await fixture.larder(arguments)
            #expect(delta.output.contains(#""isBase":false"#))
            let kept = try await fixture.larder("get", "Todo:c")
            #expect(kept.status == 0)
        }
    }

    @Test("sync says in words whether everything came or what has changed, and where it is not at the end")
    func words() async throws {
        try await withItems(Self.three) { fixture, sync in
            let first = try await fixture.larder(sync + ["--pages", "1"])
            #expect(first.output == "2 objects on 1 page, everything, not to the end\n", "\(first.errors)")
            let rest = try await fixture.larder(sync)
            #expect(rest.output.hasSuffix(", everything\n"), "\(rest)")
            let delta = try await fixture.larder(sync)
            #expect(delta.output.hasSuffix(", what has changed\n"), "\(delta)")
        }
    }

    @Test("The proof of who asks comes from the environment or from a file")
    func proof() async throws {
        let start = #"{"apiKey": "key", "tokens": ["token"], "region": "r", "pageSize": 2, "put": []}"#
        try await withServer(start) { fixture, sync in
            let arguments = sync + ["--store", fixture.store, "--auth"]
            let (key, token) = (try fixture.write("key\n", to: "key"), try fixture.write("token\n", to: "token"))
            for (options, variables, status) in [
                (["api-key"], ["LARDER_API_KEY": "key"], 0), (["api-key"], ["LARDER_API_KEY": "no"], 1),
                (["api-key", "--proof", key], [:], 0), (["api-key", "--proof", key], ["LARDER_API_KEY": "no"], 0),
                (["user-pool"], ["LARDER_TOKEN": "token"], 0), (["user-pool"], ["LARDER_TOKEN": "key"], 1),
                (["oidc", "--proof", token], [:], 0), (["lambda"], ["LARDER_TOKEN": "token"], 0),
            ] as [([String], [String: String], Int32)] {
                let outcome = try await LarderProcess.run(arguments + options, environment: variables)
                #expect(outcome.status == status, "\(options) \(variables): \(outcome.errors)")
            }
        }
    }

    @Test("After more than --delta-lifetime everything is walked through again")
    func lifetime() async throws {
        try await withItems { fixture, sync in
            let arguments = sync + ["--json"]
            #expect(try await fixture.larder(arguments).output.contains(#""isBase":true"#))
            try await Task.sleep(for: .seconds(2))
            let long = try await fixture.larder(arguments + ["--delta-lifetime", "100"])
            #expect(long.output.contains(#""isBase":false"#), "\(long.output)")
            try await Task.sleep(for: .seconds(2))
            let short = try await fixture.larder(arguments + ["--delta-lifetime", "1"])
            #expect(short.output.contains(#""isBase":true"#), "\(short.output)")
        }
    }

    @Test("With --auth iam requests are signed with the keys of the environment variables, for the given region")
    func signs() async throws {
        let start = """
            {"credentials": {"key": "K", "secret": "S", "token": "T"}, "region": "eu-west-1", "tokens": [],
             "pageSize": 2, "put": []}
            """
        try await withServer(start) { fixture, sync in
            let arguments = sync + ["--store", fixture.store, "--auth", "iam", "--region"]
            for (region, key, secret, token, status) in [
                ("eu-west-1", "K", "S", "T", 0), ("us-east-1", "K", "S", "T", 1), ("eu-west-1", "no", "S", "T", 1),
                ("eu-west-1", "K", "no", "T", 1), ("eu-west-1", "K", "S", "no", 1), ("eu-west-1", "K", "", "T", 2),
            ] as [(String, String, String, String, Int32)] {
                let outcome = try await LarderProcess.run(
                    arguments + [region],
                    environment: [
                        "AWS_ACCESS_KEY_ID": key, "AWS_SECRET_ACCESS_KEY": secret, "AWS_SESSION_TOKEN": token,
                    ])
                #expect(outcome.status == status, "\(region) \(key) \(secret) \(token): \(outcome.errors)")
            }
        }
    }

    @Test("sync says in JSON when the walk that it finished began, by the server's clock")
    func startedAt() async throws {
        try await withItems { fixture, sync in
            let synced = try await fixture.larder(sync + ["--json"])
            #expect(synced.output.contains(/"positions":\[\{"name":"[^"]+","startedAt":[1-9]\d*,/), "\(synced)")
        }
    }

    @Test("sync says in JSON how many objects came, and on how many pages")
    func counts() async throws {
        try await withItems(Self.three) { fixture, sync in
            let synced = try await fixture.larder(sync + ["--json"])
            #expect(synced.output.contains(#""result":{"pages":2,"objects":3,"isBase":true,"#), "\(synced)")
        }
    }

    @Test("sync says in words and in JSON until when a subscription has brought everything")
    func subscriptionsInWords() async throws {
        try await withItems { fixture, sync in
            #expect(try await fixture.larder(sync).status == 0)
            try await noteSubscription(in: fixture)
            let told = try await fixture.larder(sync).output
            #expect(told.contains("\nSubscription.changed: complete until 2027-01-15T08:00:00Z ("), "\(told)")
            let json = try await fixture.larder(sync + ["--json"]).output
            let row = #""subscriptions":[{"name":"Subscription.changed","completeUntil":"2027-01-15T08:00:00Z"}]"#
            #expect(json.contains(row), "\(json)")
        }
    }
}
