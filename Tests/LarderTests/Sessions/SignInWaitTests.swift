import Foundation
import Larder
import LarderTestSupport
import Testing

@Suite("Waiting for a sign-in", .timeLimit(.minutes(5)))
struct SignInWaitTests {
    @Test("A release of the waiting callers does not end a later wait")
    func laterWait() async throws {
        try await withSessions { bench in
            let session = bench.session()
            session.releaseWaiters()
            await expectCode(.notSignedIn) { try await session.signedIn(within: .zero) }
            await expectCode(.notSignedIn) { _ = try await session.credentials(within: .zero) }
        }
    }

    @Test("Calls for tokens, cloud credentials and the identity id fail at once while no user is signed in")
    func atOnce() async throws {
        try await withSessions { bench in
            let session = bench.session()
            let begun = SuspendingClock.now
            await expectCode(.notSignedIn) { _ = try await session.userPoolTokens(within: .seconds(60)) }
            await expectCode(.notSignedIn) { _ = try await session.cloudCredentials(within: .seconds(60)) }
            await expectCode(.notSignedIn) { _ = try await session.identityID(within: .seconds(60)) }
            try requireNear(begun)
        }
    }

    @Test(
        "A call that says no time waits for the identity provider as long as a refresh may take",
        arguments: [true, false])
    func defaultProviderWait(isGuest: Bool) async throws {
        try await withSessions { bench in
            let session = bench.session { ($0.refreshTimeout, $0.keyTimeout) = (.seconds(2), .seconds(60)) }
            if !isGuest { try await session.signIn(bench.provider.signIn("ada"), within: soon) }
            bench.provider.behaviour = .hanging
            defer { bench.provider.behaviour = .ready }
            let begun = SuspendingClock.now
            if isGuest {
                await expectCode(.timedOut) { _ = try await session.continueAsGuest() }
            } else {
                let left = try await session.signOut()
                #expect(left.isServerTold == false && left.failure?.code == .unreachable)
            }
            try requireNear(begun)
        }
    }

    @Test("A call that says no time waits for the key provider as long as the options say")
    func defaultKeyWait() async throws {
        try await withSessions { bench in
            try await bench.session().signIn(bench.provider.signIn("ada"), within: soon)
            bench.keys.behaviour = .hanging
            defer { bench.keys.behaviour = .ready }
            func session() -> Session {
                bench.session { ($0.refreshTimeout, $0.keyTimeout) = (.seconds(60), .milliseconds(50)) }
            }
            let begun = SuspendingClock.now
            await expectCode(.keysTimedOut) { try await session().signIn(bench.provider.signIn("bob")) }
            guard case .unavailable(let error) = try await session().storedCredentials() else {
                Issue.record("they are not unavailable")
                return
            }
            #expect(error.code == .timedOut)
            try requireNear(begun)
        }
    }
}
