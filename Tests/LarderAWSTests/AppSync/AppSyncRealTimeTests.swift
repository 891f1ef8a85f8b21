import AsyncHTTPClient
import Foundation
import Larder
import LarderHTTP
import LarderTestSupport
import Synchronization
import Testing

@testable import LarderAWS

@Suite(
    "AppSync's subscriptions", .timeLimit(.minutes(10)),
    .enabled(if: ForeignServer.isAvailable, "\(ForeignServer.requirement)"))
struct AppSyncRealTimeTests {
    private static let renamed = GraphQLOperation("subscription { renamed { id name owner } }")
    private static let opaque: AppSyncAuthorization.Source<String> = { _, _ in "opaque" }

    private func subscribe(
        _ fixture: AppSyncFixture, _ authorization: AppSyncAuthorization, clockOff seconds: Double = 0,
        _ body: (Partition, Subscription) async throws -> Void
    ) async throws {
        var options = HTTPTransport.Options()
        options.wallClock = { Date().addingTimeInterval(seconds) }
        options.subscriptions.pacing.backoff = Backoff(first: .milliseconds(5), cap: .milliseconds(50))
        let transport = AppSyncTransport(
            endpoint: fixture.endpoint, authorization: authorization, client: fixture.client, options: options)
        let app = fixture.app.with(server: transport)
        try await body(app, try await app.subscribe(Self.renamed))
    }

    /// The next state of a phase; nil where there is none within a minute.
    private func wait(
        _ subscription: Subscription, for phase: SubscriptionState.Phase
    ) async -> SubscriptionState? {
        let reading = Task { () -> SubscriptionState? in
            for await event in subscription {
                if case .state(let state) = event, state.phase == phase { return state }
            }
            return nil
        }
        let limit = Task {
            try await Task.sleep(for: .seconds(60))
            reading.cancel()
        }
        defer { limit.cancel() }
        return await reading.value
    }

    /// Waits until so many subscriptions have begun at the server.
    private func begun(_ count: Int, _ fixture: AppSyncFixture) async throws {
        try await eventually { try await fixture.realTime().starts.count >= count }
    }

    private func nextData(_ subscription: Subscription) async -> Response? {
        for await event in subscription { if case .data(let response) = event { return response } }
        return nil
    }

    @Test(
        "gql's AppSync client, which is not ours, is taken by the API of the tests, and a wrong key and secret are not",
        arguments: [
            (["key", "da2-key"], true), (["token", "opaque"], true),
            (["iam", "AKIDEXAMPLE", "secret+/=", "SESSION", "eu-west-1"], true), (["key", "wrong"], false),
            (["iam", "AKIDEXAMPLE", "wrong", "SESSION", "eu-west-1"], false),
        ])
    func gqlJudges(proof: [String], isTaken: Bool) async throws {
        try await AppSyncFixture.run { fixture in
            let client = Process()
            client.executableURL = URL(filePath: try #require(ServerProcess.python))
            client.arguments =
                [
                    "-B", ServerProcess.folder.appending(path: "prove_appsync.py").path,
                    "\(try #require(fixture.url.port))",
                ] + proof
            let output = Pipe.uninherited()
            client.standardOutput = output
            try client.start()
            while isTaken, client.isRunning, try await fixture.realTime().subscriptions == 0 {
                try await Task.sleep(for: .milliseconds(5))
            }
            if isTaken { try await fixture.push(#"{"id": "1", "name": "Vega"}"#) }
            await client.ended()
            let said = String(decoding: output.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
            #expect((client.terminationStatus == 0) == isTaken, "\(said)")
            #expect(said.contains(isTaken ? "Vega" : "errorType"), "\(said)")
        }
    }

    @Test("All five proofs open a connection and start a subscription, signatures by botocore's computation")
    func fiveModes() async throws {
        try await AppSyncFixture.run { fixture in
            for authorization in [
                AppSyncAuthorization.apiKey("da2-key"), .userPool(Self.opaque), .openIDConnect(Self.opaque),
                .lambda(Self.opaque), .iam(region: "eu-west-1") { _, _ in AppSyncFixture.credentials },
            ] {
                try await subscribe(fixture, authorization) { _, subscription in
                    #expect(await wait(subscription, for: .live) != nil)
                    try await fixture.push(#"{"id": "1", "name": "Vega", "owner": "a"}"#)
                    #expect(await nextData(subscription)?["renamed"]?["name"]?.string == "Vega")
                }
            }
            let seen = try await fixture.realTime()
            #expect(seen.connects == [200, 200, 200, 200, 200])
            #expect(seen.starts.map(\.status) == [200, 200, 200, 200, 200])
        }
    }

    @Test(
        "A clock that is two hours off opens a connection and starts by the API's time", arguments: [-7_200.0, 7_200])
    func clockOff(by seconds: Double) async throws {
        try await AppSyncFixture.run { fixture in
            let asked = Mutex<[String?]>([])
            let authorization = AppSyncAuthorization.iam(region: "eu-west-1") { refused, _ in
                asked.withLock { $0.append(refused?.accessKeyID) }
                return AppSyncFixture.credentials
            }
            try await subscribe(fixture, authorization, clockOff: seconds) { _, subscription in
                #expect(await wait(subscription, for: .live) != nil)
            }
            let seen = try await fixture.realTime()
            #expect(seen.connects == [403, 200] && seen.starts.map(\.status) == [200])
            #expect(asked.withLock { $0.allSatisfy { $0 == nil } })
        }
    }

    @Test("A connection is signed with the time that the API told in answer to an earlier request")
    func correctedBefore() async throws {
        try await AppSyncFixture.run { (fixture) async throws in
            var options = HTTPTransport.Options()
            options.wallClock = { Date().addingTimeInterval(7_200) }
            let transport = AppSyncTransport(
                endpoint: fixture.endpoint,
                authorization: .iam(region: "eu-west-1") { _, _ in AppSyncFixture.credentials },
                client: fixture.client, options: options)
            #expect(try await transport.send(.appSync("{ name }"), within: ample).status == 200)
            let subscription = try await fixture.app.with(server: transport).subscribe(Self.renamed)
            #expect(await wait(subscription, for: .live) != nil)
            #expect(try await fixture.realTime().connects == [200])
        }
    }

    @Test("A field that the mutation did not select comes as null, and the cache keeps what it knew")
    func keepsUnselected() async throws {
        try await AppSyncFixture.run { fixture in
            try await subscribe(fixture, .apiKey("da2-key")) { app, subscription in
                #expect(await wait(subscription, for: .live) != nil)
                try await fixture.push(#"{"id": "1", "name": "Vega", "owner": "a"}"#)
                #expect(await nextData(subscription) != nil)
                try await fixture.push(#"{"id": "1", "name": "Wega", "owner": null}"#)
                #expect(await nextData(subscription) != nil)
                let star = try app.read("Star:1", GraphQLFragment("fragment F on Star { name owner }"))
                #expect(star["name"]?.string == "Wega")
                #expect(star["owner"]?.string == "a")
            }
        }
    }

    @Test("A token that the API does not take is refreshed once, and the connection opened with the new one")
    func refreshes() async throws {
        try await AppSyncFixture.run { fixture in
            let refusals = Mutex<[String?]>([])
            let source: AppSyncAuthorization.Source<String> = { refused, _ in
                refusals.withLock { $0.append(refused) }
                return refused == nil ? "ended" : "opaque"
            }
            try await subscribe(fixture, .userPool(source)) { _, subscription in
                #expect(await wait(subscription, for: .live) != nil)
            }
            #expect(refusals.withLock { Array($0.prefix(2)) } == [nil, "ended"])
            #expect(try await fixture.realTime().connects == [401, 200])
        }
    }

    @Test("Credentials that the API does not know are replaced once for the connection, and once for the start")
    func replacesCredentials() async throws {
        try await AppSyncFixture.run { fixture in
            let asked = Mutex<[String?]>([])
            let authorization = AppSyncAuthorization.iam(region: "eu-west-1") { refused, _ in
                asked.withLock { $0.append(refused?.accessKeyID) }
                var keys = AppSyncFixture.credentials
                if refused == nil { (keys.accessKeyID, keys.sessionToken) = ("OLD", "ENDED") }
                return keys
            }
            try await subscribe(fixture, authorization) { _, subscription in
                #expect(await wait(subscription, for: .live) != nil)
            }
            let seen = try await fixture.realTime()
            #expect(seen.connects == [403, 200] && seen.starts.map(\.status) == [403, 200])
            #expect(asked.withLock { $0 } == [nil, "OLD", nil, "OLD"])
        }
    }

    @Test("A key that the API does not take is told, and not refreshed")
    func refusesKey() async throws {
        try await AppSyncFixture.run { fixture in
            try await subscribe(fixture, .apiKey("wrong")) { _, subscription in
                #expect(await subscription.firstError()?.code == .transportNotSignedIn)
            }
            #expect(try await fixture.realTime().connects == [401])
        }
    }

    @Test("A subscription beyond the allowed number is started again when there is room")
    func startsAgain() async throws {
        try await AppSyncFixture.run { fixture in
            try await fixture.control(#"{"maximum": 0}"#)
            try await subscribe(fixture, .apiKey("da2-key")) { _, subscription in
                let error = await subscription.firstError()
                #expect(error?.errors.first?.errorType == "MaxSubscriptionsReachedError")
                try await fixture.control(#"{"maximum": 100}"#)
                #expect(await wait(subscription, for: .live)?.error == nil)
            }
        }
    }

    @Test("A connection that breaks is opened again, and its subscriptions begun again")
    func opensAgain() async throws {
        try await AppSyncFixture.run { fixture in
            try await subscribe(fixture, .apiKey("da2-key")) { _, subscription in
                #expect(await wait(subscription, for: .live) != nil)
                try await fixture.control(#"{"cut": true}"#)
                try await begun(2, fixture)
                try await fixture.push(#"{"id": "1", "name": "Deneb", "owner": "a"}"#)
                #expect(await nextData(subscription)?["renamed"]?["name"]?.string == "Deneb")
            }
        }
    }

    @Test(
        "A851: a dead socket is noticed after five minutes. A silence as long as the server has announced ends the connection"
    )
    func noticesSilence() async throws {
        try await AppSyncFixture.run { fixture in
            try await fixture.control(#"{"timeout": 1000}"#)
            try await subscribe(fixture, .apiKey("da2-key")) { _, subscription in
                #expect(await wait(subscription, for: .live) != nil)
                try await begun(2, fixture)
            }
        }
    }

    @Test("Where 100 subscriptions are allowed, the 101st is told so and begins when another has ended")
    func tooMany() async throws {
        try await AppSyncFixture.run { fixture in
            try await subscribe(fixture, .apiKey("da2-key")) { app, _ in
                // Beside the one that is there already.
                var others: [Subscription] = []
                for number in 1..<100 {
                    others.append(
                        try await app.subscribe(GraphQLOperation("subscription { a\(number): renamed { id } }")))
                }
                for other in others { #expect(await wait(other, for: .live) != nil) }
                let last = try await app.subscribe(GraphQLOperation("subscription { last: renamed { id } }"))
                let error = await last.firstError()
                #expect(error?.errors.first?.errorType == "MaxSubscriptionsReachedError")
                others.removeLast()
                #expect(await wait(last, for: .live)?.error == nil)
                #expect(others.allSatisfy { $0.state.phase == .live })
            }
        }
    }

    @Test("J14569, Q501: a token ends on a live socket. Before it does, another connection is in use, without a gap")
    func replacesToken() async throws {
        try await AppSyncFixture.run { fixture in
            try await fixture.control(#"{"pool": "pool", "tokens end": true}"#)
            let source: AppSyncAuthorization.Source<String> = { _, _ in
                let claims = #"{"iss":"https://idp/pool","exp":\#(Int(Date().timeIntervalSince1970) + 30)}"#
                return "e30.\(Data(claims.utf8).base64EncodedString().replacing("=", with: "")).x"
            }
            // Four seconds are left of each token by the client's clock.
            try await subscribe(fixture, .userPool(source), clockOff: 26) { _, subscription in
                #expect(await wait(subscription, for: .live) != nil)
                await subscription.noteCaughtUp(since: subscription.state)
                while try await fixture.realTime().connects.count < 3 {
                    let state = subscription.state
                    try #require(state.phase == .live && state.staleSince == nil, "\(state)")
                    try await Task.sleep(for: .milliseconds(20))
                }
                try await fixture.push(#"{"id": "1", "name": "Vega", "owner": "a"}"#)
                #expect(await nextData(subscription)?["renamed"]?["name"]?.string == "Vega")
            }
        }
    }

    @Test(
        "A3976: after a silence the socket is dead, and so is each retry. Before it is given up, another takes its place"
    )
    func replacesSilent() async throws {
        try await AppSyncFixture.run { fixture in
            // The limit is 24 seconds; after a third of them another connection is opened.
            try await fixture.control(#"{"timeout": 24000}"#)
            try await subscribe(fixture, .apiKey("da2-key")) { _, subscription in
                #expect(await wait(subscription, for: .live) != nil)
                let opened = SuspendingClock.now
                await subscription.noteCaughtUp(since: subscription.state)
                try await begun(2, fixture)
                #expect(opened.duration(to: .now) < .seconds(16))
                #expect(subscription.state.phase == .live)
                #expect(subscription.state.staleSince == nil)
            }
        }
    }

    @Test(
        "The real-time endpoint of an API is a host of its own, and under /realtime at a custom domain",
        arguments: [
            (
                "https://abc.appsync-api.eu-west-1.amazonaws.com/graphql",
                "https://abc.appsync-realtime-api.eu-west-1.amazonaws.com/graphql"
            ),
            (
                "https://abc.appsync-api.cn-north-1.amazonaws.com.cn/graphql",
                "https://abc.appsync-realtime-api.cn-north-1.amazonaws.com.cn/graphql"
            ),
            (
                "https://ABC.AppSync-API.eu-west-1.amazonaws.com/graphql",
                "https://abc.appsync-realtime-api.eu-west-1.amazonaws.com/graphql"
            ),
            ("https://api.example.com/graphql", "https://api.example.com/graphql/realtime"),
        ])
    func endpoints(_ api: String, _ realTime: String) throws {
        #expect(AppSyncEndpoint.realTime(of: try #require(URL(string: api))).absoluteString == realTime)
    }
}
