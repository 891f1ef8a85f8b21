import Foundation
import Larder
import LarderTestSupport
import Synchronization
import Testing

/// What the hub waits for before it opens a connection.
extension SubscriptionHubTests {
    @Test("Nothing is tried while there is no network")
    func waitsForNetwork() async throws {
        let network = WatchedConnectivity()
        network.switched.set(false)
        let transport = ScriptedLine(pacing: .quick { $0.connectivity = network })
        try await withApp(transport) { app, _ in
            let subscription = try await app.subscribe(Self.changed)
            // The hub looks again only after it has waited: by then it has done without the network what it does.
            try await eventually { network.lookCount >= 1 }
            network.tellAgain()
            try await eventually { network.lookCount >= 2 || transport.attemptCount > 0 }
            #expect(transport.attemptCount == 0)
            network.switched.set(true)
            #expect(await transport.next() != nil)
            withExtendedLifetime(subscription) {}
        }
    }

    @Test("A pause during which the network goes and comes back ends when it is back")
    func networkLostInPause() async throws {
        let network = WatchedConnectivity()
        var pacing = SubscriptionPacing()
        pacing.backoff = .endless
        pacing.connectivity = network
        let transport = ScriptedLine(pacing: pacing)
        try await withApp(transport) { app, _ in
            let (subscription, connection, _) = try await begin(app, transport)
            var looks = network.lookCount
            connection.end(TransportError(.interrupted, "cut"))
            try await eventually { network.lookCount >= looks + 2 }
            looks = network.lookCount
            network.switched.set(false)
            try await eventually { network.lookCount > looks }
            #expect(transport.attemptCount == 1)
            network.switched.set(true)
            #expect(await transport.next() != nil)
            withExtendedLifetime(subscription) {}
        }
    }

    @Test("A2152: after airplane mode it stays stopped. A pause ends as soon as the network returns, and not before")
    func connectsOnNetwork() async throws {
        let network = SwitchedConnectivity()
        var pacing = SubscriptionPacing()
        pacing.backoff = .endless
        pacing.connectivity = network
        let transport = ScriptedLine(pacing: pacing)
        try await withApp(transport) { app, _ in
            let (subscription, connection, _) = try await begin(app, transport)
            network.set(false)
            connection.end(TransportError(.interrupted, "cut"))
            #expect(await state(subscription) { $0.error != nil } != nil)
            try await Task.sleep(for: .milliseconds(20))
            #expect(transport.attemptCount == 1)
            network.set(true)
            #expect(await transport.next() != nil)
        }
    }

    @Test("A server that asks to be left alone is, whatever the pause would have been")
    func keepsAskedPause() async throws {
        try await withApp { app, transport in
            let (subscription, connection, _) = try await begin(app, transport)
            connection.end(TransportError(.status, "later", status: 503, retryAfter: .seconds(3_600)))
            #expect(await state(subscription) { $0.error != nil } != nil)
            try await Task.sleep(for: .milliseconds(50))
            #expect(transport.attemptCount == 1)
        }
    }

    private func signIn(to app: Partition) async throws {
        let tokens = Credentials.UserPoolTokens(
            idToken: "i", accessToken: "a", refreshToken: "r", expires: .distantFuture)
        try await app.session.signIn(Credentials(userPool: tokens), within: soon)
    }

    @Test("A connection whose proof the server did not take is tried again after a sign-in, and not before")
    func connectsAfterSignIn() async throws {
        var options = Store.Options()
        options.keys = InMemoryKeyProvider()
        try await withApp(options: options) { app, transport in
            let subscription = try await app.subscribe(Self.changed)
            let ending = Task {
                while let connection = await transport.next() { connection.end(TransportError(.notSignedIn, "who?")) }
            }
            #expect(await state(subscription) { $0.error != nil } != nil)
            try await Task.sleep(for: .milliseconds(50))
            #expect(transport.attemptCount == 1)
            try await signIn(to: app)
            try await eventually { transport.attemptCount > 1 }
            ending.cancel()
        }
    }

    @Test("A sign-in during the pause after a refused proof counts: no other is waited for")
    func connectsAfterEarlySignIn() async throws {
        var options = Store.Options()
        options.keys = InMemoryKeyProvider()
        try await withApp(options: options) { app, transport in
            let subscription = try await app.subscribe(Self.changed)
            let connection = try #require(await transport.next())
            let pause = Duration.milliseconds(1_500)
            connection.end(TransportError(.notSignedIn, "who?", retryAfter: pause))
            #expect(await state(subscription) { $0.error != nil } != nil)
            try await signIn(to: app)
            let signedIn = SuspendingClock.now
            #expect(transport.attemptCount == 1)
            #expect(await transport.next() != nil)
            #expect(.now - signedIn < .seconds(50))
        }
    }

    @Test("A connection that breaks again and again is opened after ever longer pauses")
    func opensAfterLongerPauses() async throws {
        let transport = ScriptedLine(
            pacing: .quick { $0.backoff = Backoff(first: .milliseconds(1), cap: .seconds(80_000)) })
        try await withApp(transport) { app, _ in
            let subscription = try await app.subscribe(Self.changed)
            let breaking = Task {
                while let connection = await transport.next() { connection.end(TransportError(.interrupted, "cut")) }
            }
            // Growing pauses need minutes for twenty attempts; constant ones of a millisecond do not.
            try await eventually { transport.attemptCount >= 2 }
            try await Task.sleep(for: .milliseconds(300))
            #expect(transport.attemptCount < 20)
            breaking.cancel()
            withExtendedLifetime(subscription) {}
        }
    }
}

/// A network that counts how often it is looked at.
private final class WatchedConnectivity: Connectivity {
    let switched = SwitchedConnectivity()
    private let looks = Mutex(0)
    private let observers = Mutex<[@Sendable (Bool) -> Void]>([])

    var lookCount: Int { looks.withLock { $0 } }

    var isConnected: Bool {
        looks.withLock { $0 += 1 }
        return switched.isConnected
    }

    func observe(_ change: @escaping @Sendable (Bool) -> Void) -> ConnectivityObservation {
        observers.withLock { $0.append(change) }
        return switched.observe(change)
    }

    /// Tells the observers what is so already.
    func tellAgain() { for observer in observers.withLock({ $0 }) { observer(switched.isConnected) } }
}
