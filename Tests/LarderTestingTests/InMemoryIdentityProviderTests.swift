import Foundation
import Larder
import LarderTesting
import Testing

@Suite("Identities in memory", .timeLimit(.minutes(2)))
struct InMemoryIdentityProviderTests {
    private let soon = Duration.seconds(60)

    @Test(
        "What is issued ends after the lifetime, and has credentials for the cloud unless that is said",
        arguments: [true, false])
    func issued(hasCloud: Bool) async throws {
        let clock = TestClock()
        let provider = InMemoryIdentityProvider(lifetime: .seconds(300), hasCloud: hasCloud) { clock.now }
        let issued = provider.signIn("ada")
        #expect(issued.userPool?.expires == clock.now + 300)
        #expect(issued.cloud?.expires == (hasCloud ? clock.now + 300 : nil))
        #expect(try await (provider.guestCredentials(within: soon) != nil) == hasCloud)
        provider.lifetime = .seconds(600)
        let next = try await provider.refresh(.userPool, of: issued, within: soon)
        #expect(next.userPool?.expires == clock.now + 600 && provider.refreshes == 1)
    }

    @Test("A user who has signed out is refreshed no more, and the sign-out is counted")
    func signedOut() async throws {
        let provider = InMemoryIdentityProvider()
        let issued = provider.signIn("ada")
        try await provider.signOut(issued, within: soon)
        #expect(provider.signOuts == 1)
        let error = await #expect(throws: IdentityError.self) {
            try await provider.refresh(.userPool, of: issued, within: soon)
        }
        #expect(error?.code == .userPoolRefused && provider.refreshes == 0)
    }

    @Test("A user is refreshed as before when another user signs out")
    func signedOutAlone() async throws {
        let provider = InMemoryIdentityProvider()
        let (first, second) = (provider.signIn("ada"), provider.signIn("bob"))
        try await provider.signOut(first, within: soon)
        let refreshed = try await provider.refresh(.userPool, of: second, within: soon)
        #expect(refreshed.userPool != nil && refreshed.userPool != second.userPool)
        #expect(provider.refreshes == 1)
    }

    @Test("A refresh token that was used before, was revoked or was never issued is refused, and each refusal counted")
    func refusals() async throws {
        let provider = InMemoryIdentityProvider()
        let (used, revoked) = (provider.signIn("ada"), provider.signIn("bob"))
        let foreign = InMemoryIdentityProvider().signIn("eve")
        _ = try await provider.refresh(.userPool, of: used, within: soon)
        try await provider.signOut(revoked, within: soon)
        for (count, credentials) in [used, revoked, foreign].enumerated() {
            let error = await #expect(throws: IdentityError.self) {
                try await provider.refresh(.userPool, of: credentials, within: soon)
            }
            #expect(error?.code == .userPoolRefused && provider.refusals == count + 1)
        }
        #expect(provider.refreshes == 1)
    }

    @Test("A guest whose credentials are refreshed is the same guest, and another guest is another")
    func guests() async throws {
        let provider = InMemoryIdentityProvider()
        let first = try #require(try await provider.guestCredentials(within: soon))
        let second = try #require(try await provider.guestCredentials(within: soon))
        let refreshed = try await provider.refresh(.cloud, of: second, within: soon)
        #expect(refreshed.cloud?.identityID == second.cloud?.identityID)
        #expect(refreshed.cloud?.identityID != first.cloud?.identityID)
        #expect(refreshed.cloud?.accessKeyID != second.cloud?.accessKeyID)
    }

    @Test("A refresh gets a user all parts anew, whichever is asked for", arguments: Credentials.Part.allCases)
    func allParts(part: Credentials.Part) async throws {
        let provider = InMemoryIdentityProvider()
        let issued = provider.signIn("ada")
        let refreshed = try await provider.refresh(part, of: issued, within: soon)
        let (tokens, keys) = (try #require(refreshed.userPool), try #require(refreshed.cloud))
        #expect(tokens.accessToken != issued.userPool?.accessToken)
        #expect(tokens.refreshToken != issued.userPool?.refreshToken)
        #expect(keys.accessKeyID != issued.cloud?.accessKeyID)
        #expect(keys.identityID == issued.cloud?.identityID)
    }

    @Test("A slow provider answers after its time, and not at all where the call is cancelled before")
    func slow() async throws {
        let provider = InMemoryIdentityProvider()
        let issued = provider.signIn("ada")
        provider.behaviour = .slow(.milliseconds(30))
        let begun = ContinuousClock.now
        let refreshed = try await provider.refresh(.userPool, of: issued, within: soon)
        #expect(ContinuousClock.now - begun >= .milliseconds(30))
        provider.behaviour = .slow(.seconds(100))
        let asking = Task { [soon] in try await provider.refresh(.userPool, of: refreshed, within: soon) }
        asking.cancel()
        let error = await #expect(throws: IdentityError.self) { try await asking.value }
        #expect(error?.code == .cancelled && provider.refreshes == 1)
    }

    @Test("A hanging provider does not answer a cancelled call until its behaviour changes")
    func hanging() async throws {
        let provider = InMemoryIdentityProvider()
        let issued = provider.signIn("ada")
        provider.behaviour = .hanging
        let asking = Task { [soon] in try await provider.refresh(.userPool, of: issued, within: soon) }
        asking.cancel()
        // A call that heeds its cancellation would end within this time; there is no signal to wait for.
        try await Task.sleep(for: .milliseconds(50))
        #expect(provider.refreshes == 0)
        provider.behaviour = .ready
        let refreshed = try await asking.value
        #expect(refreshed.userPool != nil && provider.refreshes == 1)
    }

    @Test("The refresh of a guest's credentials is counted, and the guest's first ones are no refresh")
    func refreshedGuest() async throws {
        let provider = InMemoryIdentityProvider()
        let guest = try #require(try await provider.guestCredentials(within: soon))
        #expect(provider.refreshes == 0)
        _ = try await provider.refresh(.cloud, of: guest, within: soon)
        #expect(provider.refreshes == 1)
    }

    @Test(
        "A sign-out and a guest's first credentials fail as the provider behaves, which asks for a pause if throttled",
        arguments: [
            (.unreachable, .unreachable, false), (.throttled, .throttled, true),
            (.refusingFederated, .federatedRefused, false),
        ] as [(InMemoryIdentityProvider.Behaviour, IdentityError.Code, Bool)])
    func fails(
        behaviour: InMemoryIdentityProvider.Behaviour, code: IdentityError.Code, asksForPause: Bool
    ) async throws {
        let provider = InMemoryIdentityProvider()
        let issued = provider.signIn("ada")
        provider.behaviour = behaviour
        let errors = [
            await #expect(throws: IdentityError.self) { try await provider.signOut(issued, within: soon) },
            await #expect(throws: IdentityError.self) { _ = try await provider.guestCredentials(within: soon) },
        ]
        #expect(errors.map { $0?.code } == [code, code])
        #expect(errors.map { $0?.retryAfter != nil } == [asksForPause, asksForPause])
        #expect(provider.signOuts == 0)
    }

    @Test("A guest's credentials end after the lifetime")
    func guestLifetime() async throws {
        let clock = TestClock()
        let provider = InMemoryIdentityProvider(lifetime: .seconds(300)) { clock.now }
        let guest = try await provider.guestCredentials(within: soon)
        #expect(guest?.cloud?.expires == clock.now + 300)
    }
}
