import Foundation
import Larder
import LarderTestSupport
import Synchronization
import Testing

@testable import LarderAWS
@testable import LarderHTTP

/// What users of other clients of AppSync complain of, with the number of each complaint: A is amplify-swift, J amplify-js,
/// P aws-mobile-appsync-sdk-ios. Others are named by tests of what they are about; there R is
/// appsync-realtime-client-ios, Q aws-mobile-appsync-sdk-js and S aws-sdk-ios.
@Suite(
    "Complaints about AppSync's subscriptions", .timeLimit(.minutes(10)),
    .enabled(if: ForeignServer.isAvailable, "\(ForeignServer.requirement)"))
struct ComplaintTests {
    private static let renamed = GraphQLOperation("subscription { renamed { id name owner } }")

    private func partition(
        _ fixture: AppSyncFixture, _ authorization: AppSyncAuthorization = .apiKey("da2-key"),
        _ change: (inout HTTPTransport.Options) -> Void = { _ in }
    ) -> Partition {
        var options = HTTPTransport.Options()
        options.subscriptions.pacing.backoff = Backoff(first: .milliseconds(5), cap: .milliseconds(50))
        change(&options)
        return fixture.app.with(
            server: AppSyncTransport(
                endpoint: fixture.endpoint, authorization: authorization, client: fixture.client, options: options))
    }

    /// Waits until a subscription is live, or has ended.
    private func live(_ subscription: Subscription) async -> Bool {
        for await event in subscription { if case .state(let state) = event, state.phase == .live { return true } }
        return false
    }

    @Test("A886, J7036: starts leak until there are 100. 150 subscriptions one after the other are all live")
    func leakedStarts() async throws {
        try await AppSyncFixture.run { fixture in
            let app = partition(fixture)
            for number in 0..<150 {
                let subscription = try await app.subscribe(
                    GraphQLOperation("subscription { a\(number): renamed { id } }"))
                #expect(await live(subscription))
                #expect(subscription.state.error == nil)
            }
            try await eventually { try await fixture.realTime().subscriptions <= 0 }
            #expect(try await fixture.realTime().connects.count == 1)
        }
    }

    @Test("P568: subscribing from several tasks crashes. 40 tasks subscribe, and each is live")
    func concurrent() async throws {
        try await AppSyncFixture.run { fixture in
            let app = partition(fixture)
            let count = try await withThrowingTaskGroup(of: Bool.self) { group in
                for number in 0..<40 {
                    group.addTask {
                        let subscription = try await app.subscribe(
                            GraphQLOperation("subscription { a\(number % 8): renamed { id } }"))
                        return await live(subscription)
                    }
                }
                return try await group.reduce(0) { $0 + ($1 ? 1 : 0) }
            }
            #expect(count == 40)
        }
    }

    @Test("A1177: stopped and started again, there are no subscriptions. What begins after the last end is live")
    func stoppedAndStarted() async throws {
        try await AppSyncFixture.run { fixture in
            let app = partition(fixture) { $0.subscriptions.pacing.lingering = .milliseconds(1) }
            for _ in 0..<5 {
                let subscription = try await app.subscribe(Self.renamed)
                #expect(await live(subscription))
                try await fixture.push(#"{"id": "1", "name": "Vega", "owner": "a"}"#)
                #expect(await subscription.hasData())
            }
        }
    }

    @Test(
        "A3831: at the first launch a start is not acknowledged. The connection is opened anew, and the start made again"
    )
    func unacknowledged() async throws {
        try await AppSyncFixture.run { fixture in
            try await fixture.control(#"{"silent": true}"#)
            let app = partition(fixture) { $0.subscriptions.pacing.starting = .milliseconds(100) }
            let subscription = try await app.subscribe(Self.renamed)
            #expect(await subscription.firstError()?.code == .transportTimedOut)
            try await fixture.control(#"{"silent": false}"#)
            #expect(await live(subscription))
        }
    }

    @Test(
        "A4277: after a token has ended, connections are opened without end. Two are tried, and then a sign-in is awaited"
    )
    func endedToken() async throws {
        try await AppSyncFixture.run { fixture in
            let app = partition(fixture, .userPool { _, _ in "ended" })
            let subscription = try await app.subscribe(Self.renamed)
            #expect(await subscription.firstError()?.code == .transportNotSignedIn)
            try await Task.sleep(for: .milliseconds(300))
            #expect(try await fixture.realTime().connects == [401, 401])
            #expect(subscription.state.phase == .connecting)
        }
    }

    @Test(
        "A4202: after the network has changed, a stop goes to the new socket, or no start. Each connection has one start"
    )
    func changedNetwork() async throws {
        try await AppSyncFixture.run { fixture in
            let subscription = try await partition(fixture).subscribe(Self.renamed)
            for number in 1...4 {
                let end = SuspendingClock.now + .seconds(30)
                // The state may be live again before a reader sees that it was not: the server's count tells.
                while try await fixture.realTime().starts.count < number, .now < end {
                    try await Task.sleep(for: .milliseconds(5))
                }
                #expect(await live(subscription))
                let seen = try await fixture.realTime()
                #expect(seen.starts.count == number)
                #expect(seen.subscriptions == 1)
                try await fixture.control(#"{"cut": true}"#)
            }
        }
    }

    @Test("A2323: launched offline, it is unauthorized later. The proof is got when the network is there")
    func launchedOffline() async throws {
        try await AppSyncFixture.run { fixture in
            let network = SwitchedConnectivity()
            network.isConnected = false
            let asked = Mutex(0)
            let source: AppSyncAuthorization.Source<String> = { _, _ in
                asked.withLock { $0 += 1 }
                return "opaque"
            }
            let app = partition(fixture, .userPool(source)) { $0.subscriptions.pacing.connectivity = network }
            let subscription = try await app.subscribe(Self.renamed)
            try await Task.sleep(for: .milliseconds(50))
            #expect(asked.withLock { $0 } == 0)
            network.isConnected = true
            #expect(await live(subscription))
        }
    }

    @Test("A2167: stopped and started offline, it crashes. What is asked for last is live once there is a network")
    func restartedOffline() async throws {
        try await AppSyncFixture.run { fixture in
            let network = SwitchedConnectivity()
            let app = partition(fixture) { $0.subscriptions.pacing.connectivity = network }
            let first = try await app.subscribe(Self.renamed)
            #expect(await live(first))
            network.isConnected = false
            try await fixture.control(#"{"cut": true}"#)
            for _ in 0..<20 { _ = try await app.subscribe(GraphQLOperation("subscription { a: renamed { id } }")) }
            let last = try await app.subscribe(GraphQLOperation("subscription { renamed { id name } }"))
            network.isConnected = true
            #expect(await live(last))
            try await fixture.push(#"{"id": "1", "name": "Vega", "owner": "a"}"#)
            #expect(await last.hasData())
            #expect(try await fixture.realTime().connects.count == 2)
        }
    }
}
