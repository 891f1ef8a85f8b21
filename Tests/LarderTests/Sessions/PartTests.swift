import Foundation
import Larder
import LarderOperations
import LarderTestSupport
import Synchronization
import Testing

/// Gives each part by itself, and says of each what it was told to say.
private final class PartedProvider: IdentityProvider {
    struct State {
        var failures: [Credentials.Part: IdentityError.Code] = [:]
        var given: [Credentials.Part] = []
        /// Called before a part is given.
        var before: [Credentials.Part: @Sendable () async -> Void] = [:]
        /// The id token that cloud credentials were asked for with.
        var idToken: String?
    }

    let state = Mutex(State())
    let now: @Sendable () -> Date
    let parts: Set<Credentials.Part>

    init(parts: Set<Credentials.Part> = [.userPool, .cloud], now: @escaping @Sendable () -> Date) {
        self.parts = parts
        self.now = now
    }

    func refresh(
        _ part: Credentials.Part, of credentials: Credentials, within time: Duration
    ) async throws(IdentityError) -> Credentials {
        await state.withLock { $0.before[part] }?()
        if let code = state.withLock({ $0.failures[part] }) { throw IdentityError(code, "as told") }
        let number = state.withLock { state in
            state.given.append(part)
            if part == .cloud { state.idToken = credentials.userPool?.idToken }
            return state.given.count
        }
        let expires = now().addingTimeInterval(3600)
        switch part {
        case .userPool:
            return Credentials(
                userPool: .init(
                    idToken: "id\(number)", accessToken: "access\(number)", refreshToken: "r\(number)", expires: expires
                ))
        case .cloud:
            return Credentials(
                cloud: .init(
                    identityID: credentials.cloud?.identityID ?? "region:\(number)", accessKeyID: "AK\(number)",
                    secretAccessKey: "s", sessionToken: "t\(number)", expires: expires))
        }
    }

    func signOut(_ credentials: Credentials, within time: Duration) async throws(IdentityError) {}

    var given: [Credentials.Part] { state.withLock { $0.given } }
    func fail(_ part: Credentials.Part, _ code: IdentityError.Code?) { state.withLock { $0.failures[part] = code } }
}

extension SessionBench {
    fileprivate func tokens(_ refreshToken: String? = "r") -> Credentials.UserPoolTokens {
        .init(
            idToken: "id", accessToken: "access", refreshToken: refreshToken,
            expires: clock.now.addingTimeInterval(3600)
        )
    }
}

@Suite("Tokens, cloud credentials and the identity id are three questions", .timeLimit(.minutes(10)))
struct PartTests {
    private func withParts(
        of parts: Set<Credentials.Part> = [.userPool, .cloud],
        _ body: (SessionBench, PartedProvider, Session) async throws -> Void
    ) async throws {
        try await withSessions { bench in
            let provider = PartedProvider(parts: parts) { [clock = bench.clock] in clock.now }
            try await body(bench, provider, bench.session(by: provider))
        }
    }

    /// Runs `body` with a session whose user has tokens and no cloud credentials.
    private func withTokens(_ body: (SessionBench, PartedProvider, Session) async throws -> Void) async throws {
        try await withParts { bench, provider, session in
            try await session.signIn(Credentials(userPool: bench.tokens()), within: soon)
            try await body(bench, provider, session)
        }
    }

    @Test("An identity pool that is away, or refuses, keeps no good token from a caller")
    func poolAway() async throws {
        try await withTokens { (bench, provider, session) async throws in
            provider.fail(.cloud, .unreachable)
            await expectCode(.init(rawValue: "identity.unreachable")) {
                _ = try await session.cloudCredentials(within: soon)
            }
            #expect(try await session.userPoolTokens(within: soon) == bench.tokens())
            provider.fail(.cloud, .federatedRefused)
            await expectCode(.init(rawValue: "identity.federatedRefused")) {
                _ = try await session.cloudCredentials(within: soon)
            }
            #expect(session.state == .signedIn)
            // Others may be taken, since the pool may know better than this clock.
            #expect(provider.given == [.userPool])
            bench.clock.advance(by: .seconds(3600))
            #expect(try await session.userPoolTokens(within: soon).accessToken == "access2")
            #expect(provider.given == [.userPool, .userPool])
        }
    }

    @Test("A refresh during which the partition's key is destroyed brings nothing back")
    func keyDestroyedMeanwhile() async throws {
        try await withTokens { (bench, provider, session) async throws in
            bench.clock.advance(by: .seconds(3600))
            provider.state.withLock { state in
                state.before[.userPool] = {
                    _ = try? await bench.database.credentials.destroyKey(of: "main", until: .now + soon)
                }
            }
            await expectCode(.notSignedIn) { _ = try await session.userPoolTokens(within: .seconds(2)) }
            #expect(provider.given == [.userPool] && session.state == .signedOut)
            #expect(try bench.snapshot().credentials.isEmpty)
        }
    }

    @Test("Where the identity pool refuses tokens and the user pool gives no others, the end of the session is told")
    func bothRefuse() async throws {
        try await withTokens { bench, provider, session in
            provider.fail(.cloud, .federatedRefused)
            provider.fail(.userPool, .userPoolRefused)
            await expectCode(.notSignedIn) { _ = try await session.cloudCredentials(within: soon) }
            #expect(session.state == .userPoolTokensInvalid)
        }
    }

    @Test("While a process waits for the identity pool, another one refreshes the tokens")
    func hangingPool() async throws {
        try await withTokens { bench, provider, session in
            let (isAsked, mayAnswer) = (Flag(), Flag())
            provider.state.withLock { state in
                state.before[.cloud] = {
                    isAsked.set()
                    await mayAnswer.wait()
                }
            }
            let waiting = Task { try await session.cloudCredentials(within: soon) }
            await isAsked.wait()
            let refused = try await session.userPoolTokens(within: soon)
            let other = bench.session(by: provider)
            #expect(try await other.userPoolTokens(within: soon, refused: refused) != refused)
            mayAnswer.set()
            _ = try await waiting.value
        }
    }

    @Test("Cloud credentials are got when they are asked for first, and kept with their identity id")
    func firstCloud() async throws {
        try await withTokens { (bench, provider, session) async throws in
            #expect(try await session.cloudCredentials(within: soon).accessKeyID == "AK1")
            #expect(try await session.identityID(within: soon) == "region:1")
            bench.clock.advance(by: .seconds(3600))
            // Another process, or after a restart.
            let other = bench.session(by: provider)
            #expect(try await other.cloudCredentials(within: soon).accessKeyID == "AK3")
            #expect(try await other.identityID(within: soon) == "region:1")
            #expect(provider.given == [.cloud, .userPool, .cloud])
            #expect(provider.state.withLock { $0.idToken } == "id2")
        }
    }

    @Test("A session requests no cloud credentials until a caller asks for them")
    func unasked() async throws {
        try await withTokens { bench, provider, session in
            #expect(try await session.credentials(within: soon).cloud == nil)
            bench.clock.advance(by: .seconds(3600))
            _ = try await session.credentials(within: soon)
            #expect(provider.given == [.userPool])
        }
    }

    @Test("Tokens of which a server has refused one are replaced, whichever of them it knows")
    func refusedToken() async throws {
        try await withTokens { bench, provider, session in
            var number = 0
            for token in ["access", "id1"] {
                number += 1
                let refused = Credentials.UserPoolTokens(idToken: token, accessToken: token, expires: nil)
                let tokens = try await session.userPoolTokens(within: soon, refused: refused)
                #expect(tokens.idToken == "id\(number)" && tokens.accessToken == "access\(number)")
            }
            #expect(provider.given == [.userPool, .userPool])
        }
    }

    @Test("The identity id is known also where the identity pool gives no credentials any more")
    func identityRefused() async throws {
        try await withTokens { bench, provider, session in
            _ = try await session.identityID(within: soon)
            bench.clock.advance(by: .seconds(3600))
            provider.fail(.cloud, .federatedRefused)
            await expectCode(.init(rawValue: "identity.federatedRefused")) {
                _ = try await session.cloudCredentials(within: soon)
            }
            #expect(session.state == .signedIn)
            #expect(try await session.identityID(within: soon) == "region:1")
        }
    }

    @Test("The identity id needs no server once it is known")
    func identityOffline() async throws {
        try await withTokens { bench, provider, session in
            _ = try await session.identityID(within: soon)
            bench.clock.advance(by: .seconds(1_000_000))
            provider.fail(.cloud, .unreachable)
            provider.fail(.userPool, .unreachable)
            #expect(try await session.identityID(within: soon) == "region:1")
        }
    }

    @Test("Each question has codes of its own where there is nothing to answer it with")
    func codes() async throws {
        try await withParts(of: [.userPool]) { bench, _, session in
            await expectCode(.notSignedIn) { _ = try await session.userPoolTokens(within: soon) }
            await expectCode(.notSignedIn) { _ = try await session.cloudCredentials(within: soon) }
            await expectCode(.notSignedIn) { _ = try await session.identityID(within: soon) }
            try await session.signIn(Credentials(userPool: bench.tokens()), within: soon)
            await expectCode(.noIdentityPool) { _ = try await session.cloudCredentials(within: soon) }
            await expectCode(.noIdentityPool) { _ = try await session.identityID(within: soon) }
        }
        try await withParts { _, _, session in
            let cloud = Credentials(
                cloud: .init(accessKeyID: "AK", secretAccessKey: "s", expires: .distantFuture))
            try await session.signIn(cloud, within: soon)
            await expectCode(.notInUserPool) { _ = try await session.userPoolTokens(within: soon) }
        }
        try await withParts(of: [.cloud]) { _, _, session in
            // That nobody is signed in comes first.
            await expectCode(.notSignedIn) { _ = try await session.userPoolTokens(within: soon) }
            let cloud = Credentials(
                cloud: .init(accessKeyID: "AK", secretAccessKey: "s", expires: .distantFuture))
            try await session.signIn(cloud, within: soon)
            await expectCode(.noUserPool) { _ = try await session.userPoolTokens(within: soon) }
        }
    }

    @Test("Tokens that a server refused are refreshed once, whoever says so, and not where they are others by now")
    func refused() async throws {
        try await withParts { bench, provider, session in
            let old = bench.tokens()
            try await session.signIn(Credentials(userPool: old), within: soon)
            let others = [session, bench.session(by: provider)]
            let given = try await withThrowingTaskGroup(of: String.self) { group in
                for number in 0..<20 {
                    group.addTask {
                        try await others[number % 2].userPoolTokens(within: soon, refused: old).accessToken
                    }
                }
                return try await group.reduce(into: Set()) { $0.insert($1) }
            }
            #expect(given == ["access1"])
            #expect(provider.given == [.userPool])
        }
    }

    @Test("A rotated token is not lost when cloud credentials are stored while it is on its way")
    func storedBeside() async throws {
        try await withTokens { bench, provider, session in
            let other = bench.session(by: provider)
            provider.state.withLock { state in
                state.before[.userPool] = {
                    _ = try? await other.cloudCredentials(within: soon)
                }
            }
            let tokens = try await session.userPoolTokens(within: soon, refused: bench.tokens())
            #expect(tokens.refreshToken == "r2")
            let expected = try await session.storedCredentials(within: soon)
            guard case .present(let stored) = expected else {
                Issue.record("nothing is stored")
                return
            }
            #expect(stored.userPool == tokens)
            #expect(stored.cloud?.accessKeyID == "AK1")
        }
    }

    @Test("Cloud credentials that come after another user has signed in are thrown away")
    func lateCloud() async throws {
        try await withTokens { (bench, provider, session) async throws in
            let next = Credentials(
                userPool: .init(idToken: "bob", accessToken: "bob", refreshToken: "b", expires: .distantFuture))
            provider.state.withLock { state in
                state.before[.cloud] = {
                    provider.state.withLock { $0.before = [:] }
                    try? await session.signIn(next, within: soon)
                }
            }
            #expect(try await session.cloudCredentials(within: soon).accessKeyID == "AK2")
            #expect(provider.state.withLock { $0.idToken } == "bob")
            #expect(provider.given == [.cloud, .cloud])
        }
    }

    @Test("Credentials that are good by their time, and not refused, are given although no new can be had")
    func goodEnough() async throws {
        try await withTokens { (bench, provider, session) async throws in
            provider.fail(.userPool, .throttled)
            bench.clock.advance(by: .seconds(3600 - 30))
            #expect(try await session.userPoolTokens(within: soon).accessToken == "access")
            await expectCode(.identityThrottled) {
                _ = try await session.userPoolTokens(within: soon, refused: bench.tokens())
            }
            bench.clock.advance(by: .seconds(30))
            await expectCode(.init(rawValue: "identity.throttled")) {
                _ = try await session.userPoolTokens(within: soon)
            }
            #expect(session.state == .signedIn)
        }
    }

    @Test("Credentials of a session that has ended meanwhile are given to no caller, however good they are")
    func endedMeanwhile() async throws {
        try await withTokens { bench, provider, session in
            bench.clock.advance(by: .seconds(3600 - 30))
            provider.state.withLock { $0.before[.userPool] = { _ = try? await session.signOut(within: soon) } }
            provider.fail(.userPool, .unreachable)
            await expectCode(.init(rawValue: "identity.unreachable")) {
                _ = try await session.userPoolTokens(within: soon)
            }
        }
    }

    @Test("Cloud credentials with another session token than the refused one's are others")
    func refusedCloud() async throws {
        try await withTokens { bench, provider, session in
            let good = try await session.cloudCredentials(within: soon)
            var refused = good
            refused.sessionToken = "another"
            #expect(try await session.cloudCredentials(within: soon, refused: refused) == good)
            #expect(try await session.cloudCredentials(within: soon, refused: good) != good)
        }
    }

    @Test("Where a refresh gives what a server has refused already, there is another")
    func refusedAgain() async throws {
        try await withTokens { bench, provider, session in
            bench.clock.advance(by: .seconds(3600))
            let refused = Credentials.UserPoolTokens(idToken: "id", accessToken: "access1", expires: nil)
            let tokens = try await session.userPoolTokens(within: soon, refused: refused)
            #expect(tokens.accessToken == "access2" && provider.given == [.userPool, .userPool])
        }
    }

    @Test("Tokens that the identity pool refuses, although they are good by this clock, are refreshed once")
    func refusedTokens() async throws {
        try await withTokens { (bench, provider, session) async throws in
            provider.fail(.cloud, .federatedRefused)
            provider.state.withLock { $0.before[.userPool] = { [provider] in provider.fail(.cloud, nil) } }
            #expect(try await session.cloudCredentials(within: soon).accessKeyID == "AK2")
            #expect(provider.given == [.userPool, .cloud])
            #expect(provider.state.withLock { $0.idToken } == "id1")
        }
    }

    @Test("An identity pool that has refused says so from then on, and the identity id stays known")
    func refusedAlone() async throws {
        try await withParts(of: [.cloud]) { bench, provider, session in
            let cloud = Credentials(
                cloud: .init(
                    identityID: "region:7", accessKeyID: "AK", secretAccessKey: "s",
                    expires: bench.clock.now.addingTimeInterval(3600)))
            try await session.signIn(cloud, within: soon)
            bench.clock.advance(by: .seconds(3600))
            provider.fail(.cloud, .federatedRefused)
            for _ in 0..<2 {
                await expectCode(.init(rawValue: "identity.federatedRefused")) {
                    _ = try await session.cloudCredentials(within: soon)
                }
            }
            #expect(session.state == .federatedTokensInvalid)
            #expect(try await session.identityID(within: soon) == "region:7")
        }
    }

    @Test(
        "Whatever keeps new tokens away signs no user out, unless it is the pool's refusal",
        arguments: [IdentityError.Code.unreachable, .throttled, .cancelled, .unusable])
    func signedInStill(code: IdentityError.Code) async throws {
        try await withTokens { bench, provider, session in
            bench.clock.advance(by: .seconds(3600))
            provider.fail(.userPool, code)
            await expectCode(.init(rawValue: code.rawValue)) {
                _ = try await session.userPoolTokens(within: soon)
            }
            #expect(session.state == .signedIn)
        }
    }

    @Test("A caller that says no time waits for the providers as long as a refresh may take", arguments: [true, false])
    func defaultWait(isCloud: Bool) async throws {
        try await withSessions { bench in
            let session = bench.session { ($0.refreshTimeout, $0.keyTimeout) = (.seconds(2), .seconds(60)) }
            try await session.signIn(bench.provider.signIn("ada"), within: soon)
            bench.clock.advance(by: .seconds(3600))
            bench.provider.behaviour = .hanging
            let begun = SuspendingClock.now
            await expectCode(.timedOut) {
                if isCloud { _ = try await session.cloudCredentials() } else { _ = try await session.userPoolTokens() }
            }
            try requireNear(begun)
            bench.provider.behaviour = .ready
            _ = try await session.userPoolTokens(within: soon)
        }
    }

    /// Answers every refresh with cloud credentials that name no identity.
    private let cloudAlone = ScriptedProvider { _ in
        Credentials(cloud: .init(accessKeyID: "AK", secretAccessKey: "s", expires: .distantFuture))
    }

    @Test("Of an answer that lacks the part that was asked for nothing is stored")
    func otherPart() async throws {
        try await withSessions { bench in
            let session = bench.session(by: cloudAlone)
            let tokens = Credentials.UserPoolTokens(idToken: "i", accessToken: "a", expires: .distantPast)
            try await session.signIn(Credentials(userPool: tokens), within: soon)
            await expectCode(.init(rawValue: "identity.unusable")) {
                _ = try await session.userPoolTokens(within: soon)
            }
            #expect(try bench.snapshot().credentials.map(\.kind) == ["userPool"])
        }
    }

    @Test("A call for the identity id fails when the cloud credentials name no identity")
    func nameless() async throws {
        try await withSessions { bench in
            let session = bench.session(by: cloudAlone)
            let tokens = Credentials.UserPoolTokens(idToken: "i", accessToken: "a", expires: .distantFuture)
            try await session.signIn(Credentials(userPool: tokens), within: soon)
            await expectCode(.identityUnusable) { _ = try await session.identityID(within: soon) }
        }
    }

    @Test("Where both parts have ended the tokens are refreshed first, and cloud credentials are got for the new ones")
    func tokensFirst() async throws {
        try await withTokens { bench, provider, session in
            _ = try await session.cloudCredentials(within: soon)
            bench.clock.advance(by: .seconds(3600))
            _ = try await session.credentials(within: soon)
            #expect(provider.given == [.cloud, .userPool, .cloud])
            #expect(provider.state.withLock { $0.idToken } == "id2")
        }
    }

    @Test("Where one part has ended, and no new one can be had, the other part is not given alone")
    func onePartEnded() async throws {
        try await withTokens { bench, provider, session in
            _ = try await session.cloudCredentials(within: soon)
            bench.clock.advance(by: .seconds(3600))
            provider.fail(.cloud, .unreachable)
            await expectCode(.identityUnreachable) { _ = try await session.credentials(within: soon) }
        }
    }
}
