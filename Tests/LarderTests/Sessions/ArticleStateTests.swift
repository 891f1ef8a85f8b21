import Foundation
import LarderOperations
import LarderTestSupport
import Testing

@testable import Larder

/// The states that the article on AWSMobileClient describes, by its names: how each is entered and left.
@Suite("The article's user states", .timeLimit(.minutes(10)))
struct ArticleStateTests {
    private func federated(_ bench: SessionBench) -> Credentials {
        var credentials = bench.provider.signIn("ada")
        credentials.userPool = nil
        return credentials
    }

    @Test("guest: entered with a guest's credentials, with an identity id and no tokens; left by a sign-in")
    func guest() async throws {
        try await withSessions { bench in
            let session = bench.session()
            try await session.accept(federated(bench), as: .guest, within: soon)
            #expect(session.state == .guest)
            _ = try await session.cloudCredentials(within: soon)
            _ = try await session.identityID(within: soon)
            await expectCode(.notSignedIn) { _ = try await session.userPoolTokens(within: soon) }
            try await session.signIn(bench.provider.signIn("ada"), within: soon)
            #expect(session.state == .signedIn)
        }
    }

    @Test("signedIn to a user pool: tokens, identity id and credentials; left by signing out alone")
    func signedIn() async throws {
        try await withSessions { bench in
            let session = try await bench.signedIn()
            _ = try await session.userPoolTokens(within: soon)
            _ = try await session.identityID(within: soon)
            bench.provider.behaviour = .unreachable
            bench.clock.advance(by: .seconds(1_000_000))
            await expectCode(.init(rawValue: "identity.unreachable")) {
                _ = try await session.userPoolTokens(within: soon)
            }
            #expect(session.state == .signedIn)
            _ = try await session.signOut(within: soon)
            #expect(session.state == .signedOut)
        }
    }

    @Test("signedIn by federation: identity id and credentials, and the question for tokens has an error of its own")
    func signedInByFederation() async throws {
        try await withSessions { bench in
            let session = bench.session()
            try await session.signIn(federated(bench), within: soon)
            #expect(session.state == .signedIn)
            _ = try await session.cloudCredentials(within: soon)
            await expectCode(.notInUserPool) { _ = try await session.userPoolTokens(within: soon) }
        }
    }

    @Test("signedOut: entered by signing out, and at the start where no user ever signed in; left by a sign-in")
    func signedOut() async throws {
        try await withSessions { bench in
            let session = bench.session()
            #expect(try session.standing() == SessionStanding(state: .signedOut))
            try await session.signIn(bench.provider.signIn("ada"), within: soon)
            _ = try await session.signOut(within: soon)
            #expect(session.state == .signedOut)
            try await session.signIn(bench.provider.signIn("ada"), within: soon)
            #expect(session.state == .signedIn)
        }
    }

    @Test("signedOutFederatedTokensInvalid: only from a sign-in by federation; a call waits for the next sign-in")
    func federatedTokensInvalid() async throws {
        try await withSessions { bench in
            let session = bench.session()
            try await session.signIn(federated(bench), within: soon)
            bench.clock.advance(by: .seconds(3600))
            bench.provider.behaviour = .refusingFederated
            await expectCode(.init(rawValue: "identity.federatedRefused")) {
                _ = try await session.cloudCredentials(within: soon)
            }
            #expect(session.state == .federatedTokensInvalid && !session.isSignedIn)
            bench.provider.behaviour = .ready
            let new = federated(bench)
            async let waiting = session.credentials(within: soon)
            try await session.signIn(new, within: soon)
            #expect(try await waiting == new)
            #expect(session.state == .signedIn)
        }
    }

    @Test("A guest whom the identity pool refuses is no guest any more, until it continues as one")
    func refusedGuest() async throws {
        try await withSessions { (bench) async throws in
            let session = bench.session()
            #expect(try await session.continueAsGuest(within: soon))
            bench.clock.advance(by: .seconds(3600))
            bench.provider.behaviour = .refusingFederated
            await expectCode(.init(rawValue: "identity.federatedRefused")) {
                _ = try await session.cloudCredentials(within: soon)
            }
            #expect(session.state == .federatedTokensInvalid)
            bench.provider.behaviour = .ready
            #expect(try await session.continueAsGuest(within: soon))
            #expect(session.state == .guest)
        }
    }

    @Test("A user of the user pool stays signedIn where the identity pool refuses")
    func identityPoolRefuses() async throws {
        try await withSessions { bench in
            let session = try await bench.signedInAnHourAgo()
            bench.provider.behaviour = .refusingFederated
            await expectCode(.init(rawValue: "identity.federatedRefused")) {
                _ = try await session.credentials(within: soon)
            }
            #expect(session.state == .signedIn)
        }
    }

    @Test("That the identity pool refuses is told also where the user pool cannot be asked for other tokens")
    func refusedWithoutUserPool() async throws {
        let refusing = ScriptedProvider { (part: Credentials.Part) async throws(IdentityError) in
            throw IdentityError(part == .cloud ? .federatedRefused : .unreachable, "as told")
        }
        try await withSessions { bench in
            let session = bench.session(by: refusing)
            let tokens = Credentials.UserPoolTokens(idToken: "i", accessToken: "a", expires: .distantFuture)
            try await session.signIn(Credentials(userPool: tokens), within: soon)
            await expectCode(.identityFederatedRefused) { _ = try await session.cloudCredentials(within: soon) }
            #expect(session.state == .signedIn)
        }
    }

    @Test("What the identity pool refuses says nothing of a user's tokens, whatever state is stored")
    func tokensBesideRefusal() async throws {
        try await withSessions { bench in
            let (session, mine) = (bench.session(), bench.provider.signIn("ada"))
            try await session.signIn(mine, within: soon)
            let refused = SessionStanding.change(by: .federatedRefused, now: bench.clock.now)
            try await bench.database.credentials.changeSession(of: "main", refused)
            #expect(session.state == .federatedTokensInvalid)
            #expect(try await session.userPoolTokens(within: soon) == mine.userPool)
            await expectCode(.init(rawValue: "identity.federatedRefused")) {
                _ = try await session.cloudCredentials(within: .zero)
            }
        }
    }

    @Test("signedOutUserPoolTokensInvalid: only from a sign-in to the user pool; a call waits for the next sign-in")
    func userPoolTokensInvalid() async throws {
        try await withSessions { bench in
            let session = try await bench.signedInAnHourAgo()
            bench.provider.behaviour = .refusingUserPool
            await expectCode(.notSignedIn) { _ = try await session.userPoolTokens(within: soon) }
            #expect(session.state == .userPoolTokensInvalid)
            bench.provider.behaviour = .ready
            let new = bench.provider.signIn("ada")
            async let waiting = session.credentials(within: soon)
            try await session.signIn(new, within: soon)
            #expect(try await waiting == new)
        }
    }

    @Test("unknown: what cannot be told, and not the state of a session to which nothing has happened")
    func unknown() async throws {
        try await withSessions { bench in
            let session = bench.session()
            #expect(session.state == .signedOut)
            let now = bench.clock.now
            try await bench.database.credentials.changeSession(of: "main", expecting: []) { _ in
                StoredSession(state: "stateOfTheFuture", changed: now)
            }
            #expect(session.state == .unknown && !session.isSignedIn)
            try await session.signIn(bench.provider.signIn("ada"), within: soon)
            #expect(session.state == .signedIn)
        }
    }

    @Test("A guest is not signed in, and neither is a user whose tokens a server has refused")
    func notSignedIn() async throws {
        try await withSessions { (bench) async throws in
            let session = bench.session()
            #expect(try await session.continueAsGuest(within: soon))
            #expect(session.state == .guest && !session.isSignedIn)
            try await session.signIn(bench.provider.signIn("ada"), within: soon)
            #expect(session.isSignedIn)
            bench.clock.advance(by: .seconds(3600))
            bench.provider.behaviour = .refusingUserPool
            await expectCode(.notSignedIn) { _ = try await session.userPoolTokens(within: soon) }
            #expect(session.state == .userPoolTokensInvalid && !session.isSignedIn)
        }
    }

    @Test("guest: the identity id is known without the server once it was asked for")
    func guestOffline() async throws {
        try await withSessions { bench in
            let session = bench.session()
            #expect(try await session.continueAsGuest(within: soon))
            let id = try await session.identityID(within: soon)
            bench.clock.advance(by: .seconds(3600))
            bench.provider.behaviour = .unreachable
            #expect(try await session.identityID(within: soon) == id)
        }
    }
}
