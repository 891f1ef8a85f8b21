import Foundation
import Larder
import LarderTestSupport
import Testing

@Suite("Waiting for a sign-in", .timeLimit(.minutes(5)))
struct SignInWaitTests {
    @Test("A release ends the waits that are under way, and no later one")
    func laterWait() async throws {
        try await withSessions { bench in
            let session = bench.session()
            session.releaseWaiters()
            await expectCode(.notSignedIn) { try await session.signedIn(within: .zero) }
            await expectCode(.notSignedIn) { _ = try await session.credentials(within: .zero) }
        }
    }

    @Test("Tokens, cloud credentials and the identity id are not waited for where no user is signed in")
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
