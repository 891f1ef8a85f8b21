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
}
