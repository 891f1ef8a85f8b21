import Foundation
import LarderTestSupport
import Testing

@testable import Larder

@Suite("The states of a session", .timeLimit(.minutes(10)))
struct SessionTableTests {
    /// What the article says: rows are states, columns are events in the order of their declaration, `-` is no event.
    private static let table: [SessionState: [String]] = [
        .unknown: ["signedIn", "guest", "-", "unknown", "-", "-", "-", "signedOut"],
        .guest: ["signedIn", "guest", "guest", "guest", "-", "federatedTokensInvalid", "signedOut", "signedOut"],
        .signedIn: [
            "signedIn", "-", "signedIn", "signedIn", "userPoolTokensInvalid", "federatedTokensInvalid", "signedOut",
            "signedOut",
        ],
        .signedOut: ["signedIn", "guest", "-", "signedOut", "-", "-", "-", "signedOut"],
        .userPoolTokensInvalid: [
            "signedIn", "-", "-", "userPoolTokensInvalid", "-", "-", "signedOut", "signedOut",
        ],
        .federatedTokensInvalid: [
            "signedIn", "guest", "-", "federatedTokensInvalid", "userPoolTokensInvalid", "-", "signedOut", "signedOut",
        ],
    ]

    @Test("Every event in every state leads where the table says", arguments: SessionState.allCases)
    func transitions(_ state: SessionState) throws {
        let row = try #require(Self.table[state])
        #expect(SessionEvent.allCases.map { state.after($0)?.rawValue ?? "-" } == row)
    }

    @Test("The article has the same table")
    func article() throws {
        let text = try String(
            contentsOf: packageRoot.appending(path: "Sources/Larder/Larder.docc/Sessions.md").resolvingSymlinksInPath(),
            encoding: .utf8)
        for state in SessionState.allCases {
            let cells = try #require(Self.table[state]).map { $0 == "-" ? " - " : " `\($0)` " }
            #expect(text.contains("| `\(state.rawValue)` |" + cells.joined(separator: "|") + "|"), "\(state)")
        }
    }

    @Test("Being unreachable changes no state")
    func unreachable() {
        for state in SessionState.allCases { #expect(state.after(.unreachable) == state) }
    }

    @Test("The sequence of standings tells state, reason, kind of sign-in and time, of another sign-in too")
    func standings() async throws {
        try await withSessions { bench in
            let session = bench.session()
            var standings = session.standings.makeAsyncIterator()
            func told() async throws -> SessionStanding? { try await next(&standings, within: .seconds(300)) }
            #expect(try await told() == SessionStanding(state: .signedOut))
            let begin = bench.clock.now
            try await session.signIn(bench.provider.signIn("ada"), within: soon)
            #expect(try await told() == SessionStanding(state: .signedIn, kind: .userPool, since: begin))
            #expect(session.isSignedIn)
            bench.clock.advance(by: .seconds(60))
            var federated = bench.provider.signIn("ada")
            federated.userPool = nil
            try await session.signIn(federated, within: soon)
            #expect(try await told() == SessionStanding(state: .signedIn, kind: .federated, since: begin + 60))
            bench.clock.advance(by: .seconds(3600))
            bench.provider.behaviour = .refusingFederated
            await expectCode(.notSignedIn) { _ = try await session.credentials(within: .milliseconds(300)) }
            let refused = try await told()
            #expect(refused?.state == .federatedTokensInvalid && refused?.kind == .federated)
            #expect(refused?.reason?.contains("refuses") == true && refused?.since == begin + 3660)
            _ = try await session.signOut(within: soon)
            #expect(try await told() == SessionStanding(state: .signedOut, since: begin + 3660))
            #expect(!session.isSignedIn)
            session.close()
            #expect(try await told() == nil)
        }
    }

    @Test("A look at the session that finds nothing new is told to no reader")
    func nothingNew() async throws {
        try await withSessions { bench in
            let session = try await bench.signedIn()
            var standings = session.standings.makeAsyncIterator()
            #expect(try await next(&standings)?.state == .signedIn)
            session.noticeChanges()
            await #expect(throws: Silence.self) { _ = try await next(&standings, within: .milliseconds(20)) }
        }
    }

    @Test("Another sign-in is told to no reader of the state alone, where that stays as it is")
    func sameState() async throws {
        try await withSessions { bench in
            let session = try await bench.signedIn()
            var changes = session.changes.makeAsyncIterator()
            #expect(try await next(&changes) == .signedIn)
            bench.clock.advance(by: .seconds(60))
            try await session.signIn(bench.provider.signIn("ada"), within: soon)
            #expect(try session.standing().since == bench.clock.now)
            session.close()
            #expect(try await next(&changes) == nil)
        }
    }

    @Test("A sign-in is told to each of several readers of the state, and of the standing")
    func severalReaders() async throws {
        try await withSessions { bench in
            let session = bench.session()
            var (one, two) = (session.changes.makeAsyncIterator(), session.changes.makeAsyncIterator())
            var (three, four) = (session.standings.makeAsyncIterator(), session.standings.makeAsyncIterator())
            try await session.signIn(bench.provider.signIn("ada"), within: soon)
            // A reader that has not read yet gets the newest alone.
            #expect(try await next(&one) == .signedIn)
            #expect(try await next(&two) == .signedIn)
            #expect(try await next(&three)?.state == .signedIn)
            #expect(try await next(&four)?.state == .signedIn)
        }
    }

    @Test("A reader of the state or of the standing that ends leaves the others to be told", arguments: [true, false])
    func endedReader(isOfStates: Bool) async throws {
        try await withSessions { bench in
            let session = bench.session()
            var (changes, standings) = (session.changes.makeAsyncIterator(), session.standings.makeAsyncIterator())
            #expect(try await next(&changes) == .signedOut)
            #expect(try await next(&standings)?.state == .signedOut)
            // It ends with the last that holds it: at once.
            if isOfStates { _ = session.changes } else { _ = session.standings }
            try await session.signIn(bench.provider.signIn("ada"), within: soon)
            #expect(try await next(&changes, within: .seconds(60)) == .signedIn)
            #expect(try await next(&standings, within: .seconds(60))?.state == .signedIn)
        }
    }

    @Test("A refresh leaves since when a user is signed in as it is")
    func refreshed() async throws {
        try await withSessions { bench in
            let (session, begin) = (bench.session(), bench.clock.now)
            try await session.signIn(bench.provider.signIn("ada"), within: soon)
            bench.clock.advance(by: .seconds(3600))
            _ = try await session.credentials(within: soon)
            #expect(bench.provider.refreshes == 1)
            #expect(try session.standing() == SessionStanding(state: .signedIn, kind: .userPool, since: begin))
        }
    }

    @Test("The status of a session in which nothing has happened has no user, no time and no credentials")
    func statusOfNothing() async throws {
        try await withSessions { bench in
            let status = try bench.session().status()
            #expect(status.standing == SessionStanding(state: .signedOut))
            #expect(status.credentials.isEmpty && status.quarantined.isEmpty && status.sealedWith == nil)
        }
    }

    @Test("That no user is signed in is told with the state, since when it is so, and why")
    func toldStanding() async throws {
        try await withSessions { bench in
            let session = try await bench.signedInAnHourAgo()
            bench.provider.behaviour = .refusingUserPool
            let now = await #expect(throws: LarderError.self) { _ = try await session.userPoolTokens(within: soon) }
            let later = await #expect(throws: LarderError.self) { try await session.signedIn(within: .zero) }
            let reason = try #require(try session.standing().reason)
            let told = "userPoolTokensInvalid since \(bench.clock.now.ISO8601Format()) (\(reason))"
            for error in [now, later] {
                #expect(error?.code == .notSignedIn)
                #expect(error?.message.contains("the session is \(told)") == true)
            }
        }
    }

    @Test("A session that is over has no status")
    func statusOfClosed() async throws {
        try await withSessions { bench in
            let session = bench.session()
            session.close()
            await expectCode(.parked) { _ = try session.status() }
        }
    }

    @Test("The status of a session names the parts that are stored")
    func statusOfParts() async throws {
        try await withSessions { bench in
            let session = bench.session()
            let credentials = bench.provider.signIn("ada")
            try await session.signIn(credentials, within: soon)
            #expect(try Set(session.status().credentials.compactMap(\.part)) == Set(credentials.present))
        }
    }

    @Test("The status of a session names the program's key that its credentials are sealed with")
    func statusOfKey() async throws {
        try await withSessions { bench in
            let session = try await bench.signedIn()
            let keys = try await bench.keys.keys(within: soon)
            #expect(try session.status().sealedWith == keys.current.id)
        }
    }

    @Test("A session that is over gives no stored credentials, and takes no new ones")
    func closed() async throws {
        try await withSessions { bench in
            let (session, mine) = (bench.session(), bench.provider.signIn("ada"))
            try await session.signIn(mine, within: soon)
            session.close()
            await expectCode(.parked) { _ = try await session.storedCredentials(within: soon) }
            await expectCode(.parked) { try await session.signIn(bench.provider.signIn("bob"), within: soon) }
            let reading = try await bench.session().storedCredentials(within: soon)
            #expect(reading == .present(mine))
        }
    }

    @Test("Credentials with nothing in them make no guest")
    func emptyGuest() async throws {
        try await withSessions { (bench) async throws in
            let session = bench.session()
            await expectCode(.sessionState) { try await session.accept(Credentials(), as: .guest, within: soon) }
            #expect(try session.standing() == SessionStanding(state: .signedOut))
        }
    }

    @Test("A partition's session goes by the clock of its store where credentials end")
    func storeClock() async throws {
        let clock = TestClock()
        var options = Store.Options()
        options.keys = InMemoryKeyProvider()
        options.now = { clock.now }
        let store = try Store.temporary(schemaText: [fixtureSchema], options: options)
        let session = try store.partition().session
        let tokens = Credentials.UserPoolTokens(
            idToken: "i", accessToken: "a", expires: clock.now.addingTimeInterval(3600))
        try await session.signIn(Credentials(userPool: tokens), within: soon)
        #expect(try await session.userPoolTokens(within: soon) == tokens)
        clock.advance(by: .seconds(3600))
        await expectCode(.noIdentityProvider) { _ = try await session.userPoolTokens(within: soon) }
        try store.close()
    }

    @Test("A caller who gives up the wait for a guest's credentials is told so")
    func guestGivenUp() async throws {
        try await withSessions { (bench) async throws in
            let session = bench.session()
            bench.provider.behaviour = .hanging
            defer { bench.provider.behaviour = .ready }
            let waiting = Task { try await session.continueAsGuest(within: soon) }
            waiting.cancel()
            await expectCode(.cancelled) { _ = try await waiting.value }
        }
    }
}
