import Foundation
import Larder
import LarderOperations
import LarderTestSupport
import Synchronization
import Testing

@Suite("Sessions", .timeLimit(.minutes(10)))
struct SessionTests {
    @Test("Fresh credentials are given as they are, without the server and without a wait")
    func fresh() async throws {
        try await withSessions { bench in
            let mine = bench.provider.signIn("ada")
            let session = bench.session()
            try await session.signIn(mine, within: soon)
            bench.provider.behaviour = .hanging
            #expect(try await session.credentials(within: soon) == mine)
            #expect(bench.provider.refreshes == 0)
            bench.provider.behaviour = .ready
        }
    }

    @Test(
        "Being offline signs no user out, for as long as it lasts",
        arguments: [
            InMemoryIdentityProvider.Behaviour.unreachable, .throttled,
        ])
    func offline(_ behaviour: InMemoryIdentityProvider.Behaviour) async throws {
        try await withSessions { bench in
            let session = try await bench.signedIn()
            bench.provider.behaviour = behaviour
            bench.clock.advance(by: .seconds(1_000_000))
            for _ in 0..<3 {
                await expectCode(
                    .init(rawValue: behaviour == .throttled ? "identity.throttled" : "identity.unreachable")
                ) {
                    _ = try await session.credentials(within: soon)
                }
            }
            #expect(session.state == .signedIn)
            bench.provider.behaviour = .ready
            _ = try await session.credentials(within: soon)
        }
    }

    @Test("Offline within the margin, what is good still is given")
    func offlineWithinMargin() async throws {
        try await withSessions { bench in
            let (session, mine) = (bench.session(), bench.provider.signIn("ada"))
            try await session.signIn(mine, within: soon)
            bench.provider.behaviour = .unreachable
            bench.clock.advance(by: .seconds(3600 - 30))
            #expect(try await session.credentials(within: soon) == mine)
        }
    }

    @Test("Signing out removes credentials from the file and from its log, sealed or not")
    func signedOutBytes() async throws {
        try await withSessions { bench in
            let session = try await bench.signedIn()
            let sealed = try #require(try bench.snapshot().credentials.first).sealed
            func holders() -> [String] {
                ["", "-wal"].filter { suffix in
                    let bytes = try? Data(contentsOf: bench.folder.appending(path: "larder.sqlite" + suffix))
                    return (bytes ?? Data()).range(of: Data(sealed.suffix(32))) != nil
                }
            }
            #expect(holders() == ["-wal"])
            try await session.signOut(within: soon)
            #expect(holders() == [])
        }
    }

    @Test("Within the margin, valid credentials are given where no provider answers, or nothing can be stored")
    func withinMarginAlone() async throws {
        try await withSessions { bench in
            let mine = bench.provider.signIn("ada")
            try await bench.session().signIn(mine, within: soon)
            bench.clock.advance(by: .seconds(3600 - 30))
            let alone = bench.session(by: nil)
            #expect(try await alone.credentials(within: soon) == mine)
            let reader = try bench.readOnlyDatabase()
            #expect(try await bench.session(database: reader).credentials(within: soon) == mine)
            bench.clock.advance(by: .seconds(60))
            await expectCode(.noIdentityProvider) { _ = try await alone.credentials(within: soon) }
            await expectCode(.noIdentityProvider) { _ = try await alone.continueAsGuest(within: soon) }
            await expectCode(.init(rawValue: "operations.notWritable")) {
                _ = try await bench.session(database: reader).credentials(within: soon)
            }
            // A refresh token that works once is not used up where the next one cannot be stored.
            #expect(bench.provider.attempts == 0)
            try reader.close()
        }
    }

    @Test(
        "The state tells that the server refuses credentials, and a sign-in heals it",
        arguments: [
            (InMemoryIdentityProvider.Behaviour.refusingUserPool, SessionState.userPoolTokensInvalid),
            (.refusingFederated, .federatedTokensInvalid),
        ])
    func refused(_ behaviour: InMemoryIdentityProvider.Behaviour, _ state: SessionState) async throws {
        try await withSessions { bench in
            let session = bench.session()
            var credentials = bench.provider.signIn("ada")
            if state == .federatedTokensInvalid { credentials.userPool = nil }
            try await session.signIn(credentials, within: soon)
            bench.clock.advance(by: .seconds(3600))
            bench.provider.behaviour = behaviour
            await expectCode(.notSignedIn) { _ = try await session.credentials(within: .milliseconds(300)) }
            #expect(session.state == state)
            #expect(try session.standing().reason?.contains("refuses") == true)
            // Kept, and not asked for again.
            #expect(try bench.snapshot().credentials.count == (state == .federatedTokensInvalid ? 1 : 2))
            bench.provider.behaviour = .ready
            await expectCode(.notSignedIn) { _ = try await session.credentials(within: .zero) }
            #expect(bench.provider.refreshes == 0)
            let new = bench.provider.signIn("ada")
            async let waiting = session.credentials(within: soon)
            try await session.signIn(new, within: soon)
            #expect(try await waiting == new)
        }
    }

    @Test("A caller waits for a sign-in that never comes, and is released, cancelled or told at its deadline")
    func waiting() async throws {
        try await withSessions { bench in
            let session = bench.session()
            let waiters = (0..<20).map { index in
                Task {
                    if index % 2 == 0 {
                        try await session.signedIn(within: soon)
                    } else {
                        _ = try await session.credentials(within: soon)
                    }
                }
            }
            let cancelled = Task { try await session.signedIn(within: soon) }
            try await Task.sleep(for: .milliseconds(20))
            cancelled.cancel()
            await expectCode(.cancelled) { try await cancelled.value }
            // Who has not come yet is not released, and is by a later call.
            let released = Task {
                while !Task.isCancelled {
                    session.releaseWaiters()
                    try await Task.sleep(for: .milliseconds(5))
                }
            }
            for waiter in waiters { await expectCode(.waitReleased) { try await waiter.value } }
            released.cancel()
        }
    }

    @Test(
        "A wait for a sign-in for which no time is given ends at the refresh timeout", arguments: [true, false])
    func defaultWait(wantsCredentials: Bool) async throws {
        try await withSessions { bench in
            let session = bench.session { ($0.refreshTimeout, $0.keyTimeout) = (.milliseconds(50), .seconds(60)) }
            let begun = SuspendingClock.now
            await expectCode(.notSignedIn) {
                if wantsCredentials { _ = try await session.credentials() } else { try await session.signedIn() }
            }
            try requireNear(begun)
        }
    }

    @Test("A waiting caller goes on when another process signs in")
    func otherProcess() async throws {
        try await withSessions { bench in
            let other = try OperationsDatabase(folder: bench.folder)
            let session = bench.session()
            async let waiting = session.credentials(within: soon)
            let mine = bench.provider.signIn("ada")
            try await bench.session(database: other).signIn(mine, within: soon)
            #expect(try await waiting == mine)
            try other.close()
        }
    }

    @Test(
        "What was read once is given while nothing changes, and what another process changes is seen by the next call")
    func readOnce() async throws {
        try await withSessions { bench in
            let other = try OperationsDatabase(folder: bench.folder)
            let (here, there) = (bench.session(), bench.session(database: other))
            let first = bench.provider.signIn("ada")
            try await here.signIn(first, within: soon)
            for _ in 0..<2 { #expect(try await here.userPoolTokens(within: soon) == first.userPool) }
            // Commits that are about something else change nothing.
            _ = try await other.watchers.put("w", in: "main", document: "{ a }", now: bench.clock.now)
            #expect(try await here.userPoolTokens(within: soon) == first.userPool)
            let second = try await there.userPoolTokens(within: soon, refused: first.userPool)
            #expect(second != first.userPool)
            #expect(try await here.userPoolTokens(within: soon) == second)
            _ = try await there.signOut(within: soon)
            await expectCode(.notSignedIn) { _ = try await here.userPoolTokens(within: soon) }
            #expect(here.state == .signedOut)
            let third = bench.provider.signIn("bob")
            try await there.signIn(third, within: soon)
            #expect(try await here.userPoolTokens(within: soon) == third.userPool)
            #expect(bench.provider.refreshes == 1)
            here.close()
            await expectCode(.parked) { _ = try await here.userPoolTokens(within: soon) }
            try other.close()
        }
    }

    @Test("Credentials are got once for all who wait, and for none who waits for a user who has signed out meanwhile")
    func sharedRefresh() async throws {
        try await withSessions { bench in
            let session = bench.session()
            let first = bench.provider.signIn("ada")
            try await session.signIn(first, within: soon)
            bench.provider.behaviour = .hanging
            let calls = (0..<300).map { _ in
                Task { try await session.userPoolTokens(within: soon, refused: first.userPool) }
            }
            bench.provider.behaviour = .ready
            for call in calls { #expect(try await call.value != first.userPool) }
            #expect(bench.provider.refreshes == 1)
            bench.provider.behaviour = .hanging
            let second = try await session.userPoolTokens(within: soon)
            let late = Task { try await session.userPoolTokens(within: soon, refused: second) }
            try await Task.sleep(for: .milliseconds(20))
            _ = try await session.signOut(within: .milliseconds(20))
            bench.provider.behaviour = .ready
            await expectCode(.notSignedIn) { _ = try await late.value }
        }
    }

    @Test("Changes reach this process and others, the newest a slow reader, and end when the session is closed")
    func changes() async throws {
        try await withSessions { bench in
            let other = try OperationsDatabase(folder: bench.folder)
            let (here, there) = (bench.session(), bench.session(database: other))
            var (mine, theirs) = (here.changes.makeAsyncIterator(), there.changes.makeAsyncIterator())
            #expect(try await next(&mine, within: .seconds(300)) == .signedOut)
            #expect(try await next(&theirs, within: .seconds(300)) == .signedOut)
            try await here.signIn(bench.provider.signIn("ada"), within: soon)
            #expect(try await next(&mine, within: .seconds(300)) == .signedIn)
            there.noticeChanges()
            there.noticeChanges()
            #expect(try await next(&theirs, within: .seconds(300)) == .signedIn)
            _ = try await here.signOut(within: soon)
            try await here.signIn(bench.provider.signIn("ada"), within: soon)
            _ = try await here.signOut(within: soon)
            #expect(try await next(&mine, within: .seconds(300)) == .signedOut)
            there.noticeChanges()
            #expect(try await next(&theirs, within: .seconds(300)) == .signedOut)
            let late = Task { try await here.signedIn(within: soon) }
            here.close()
            #expect(try await next(&mine, within: .seconds(300)) == nil)
            await expectCode(.parked) { try await late.value }
            await expectCode(.parked) { _ = try await here.credentials(within: soon) }
            try other.close()
        }
    }

    @Test("A state that cannot be read is not reported as unknown")
    func unreadable() async throws {
        try await withSessions { bench in
            let other = try OperationsDatabase(folder: bench.folder)
            let session = bench.session(database: other)
            try await session.signIn(bench.provider.signIn("ada"), within: soon)
            var before = session.changes.makeAsyncIterator()
            #expect(try await next(&before, within: .seconds(300)) == .signedIn)
            try other.close()
            session.noticeChanges()
            var after = session.changes.makeAsyncIterator()
            #expect(try await next(&after, within: .seconds(300)) == .signedIn)
            let fresh = bench.session(database: other)
            var never = fresh.changes.makeAsyncIterator()
            session.close()
            fresh.close()
            #expect(try await next(&before, within: .seconds(300)) == nil)
            #expect(try await next(&never, within: .seconds(300)) == nil)
        }
    }

    @Test("Signing out forgets the credentials, says what is pending, and works offline")
    func signOut() async throws {
        try await withSessions { bench in
            let session = try await bench.signedIn()
            for _ in 0..<3 { try await bench.enqueueMutation() }
            for kind in [TransferDraft.Kind.upload, .upload, .download] {
                let draft = TransferDraft(
                    partition: "main", kind: kind, bucket: "media", key: "a", path: "/a", created: bench.clock.now)
                try await bench.database.transfers.enqueue([draft])
            }
            bench.provider.behaviour = .unreachable
            let answer = try await session.signOut(within: soon)
            #expect(answer.unsentMutations == 3)
            #expect(answer.unsentUploads == 2)
            #expect(answer.deadLetters == 0)
            #expect(answer.isServerTold == false)
            #expect(answer.failure?.code == .unreachable)
            #expect(session.state == .signedOut)
            #expect(try bench.snapshot().credentials == [])
            #expect(try bench.database.mutations.counts(in: "main") == [.pending: 3])
            #expect(try bench.database.transfers.counts(in: "main") == [.pending: 3])
            bench.provider.behaviour = .ready
            try await session.signIn(bench.provider.signIn("ada"), within: soon)
            #expect(try await session.signOut(within: soon).isServerTold == true)
            #expect(bench.provider.signOuts == 1)
        }
    }

    @Test("A user whose credentials cannot be read can sign out nevertheless")
    func signOutLocked() async throws {
        try await withSessions { bench in
            try await bench.session().signIn(bench.provider.signIn("ada"), within: soon)
            bench.keys.behaviour = .hanging
            let session = bench.session()
            let answer = try await session.signOut(within: .milliseconds(50))
            #expect(answer.isServerTold == nil)
            #expect(session.state == .signedOut)
            bench.keys.behaviour = .ready
        }
    }

    @Test("A guest has credentials, keeps their identity, and takes no signed-in user's place")
    func guest() async throws {
        try await withSessions { bench in
            let session = bench.session()
            #expect(try await session.continueAsGuest(within: soon))
            #expect(try session.standing().state == .guest && session.standing().kind == .guest)
            let first = try await session.credentials(within: soon)
            bench.clock.advance(by: .seconds(3600))
            let second = try await session.credentials(within: soon)
            #expect(first != second)
            #expect(first.cloud?.identityID == second.cloud?.identityID)
            #expect(second.userPool == nil)
            await expectCode(.notSignedIn) { try await session.signedIn(within: .zero) }
            try await session.signIn(bench.provider.signIn("ada"), within: soon)
            // Before a provider is asked, or a key.
            bench.provider.behaviour = .hanging
            await expectCode(.sessionState) { _ = try await session.continueAsGuest(within: .milliseconds(200)) }
            bench.provider.behaviour = .ready
            let locked = bench.session(keys: InMemoryKeyProvider(behaviour: .locked))
            await expectCode(.sessionState) { try await locked.accept(first, as: .guest, within: soon) }
            await expectCode(.sessionState) { try await session.signIn(Credentials(), within: soon) }
            #expect(session.state == .signedIn)
        }
    }

    @Test("A guest whose key comes late takes no place of a user who has signed in meanwhile")
    func lateGuest() async throws {
        try await withSessions { bench in
            let session = try await bench.signedIn()
            _ = try await session.signOut(within: soon)
            let slow = InMemoryKeyProvider(try await bench.keys.keys(within: soon), behaviour: .hanging)
            let late = bench.session(keys: slow)
            let guest = try #require(try await bench.provider.guestCredentials(within: soon))
            let accepting = Task { try await late.accept(guest, as: .guest, within: soon) }
            try await eventually { slow.reads == 1 }
            let mine = bench.provider.signIn("bob")
            try await session.signIn(mine, within: soon)
            slow.behaviour = .ready
            await expectCode(.sessionState) { try await accepting.value }
            #expect(session.state == .signedIn)
            #expect(try await session.storedCredentials(within: soon) == .present(mine))
        }
    }

    @Test("A guest may be given other credentials")
    func guestAgain() async throws {
        try await withSessions { bench in
            let session = bench.session()
            #expect(try await session.continueAsGuest(within: soon))
            let first = try await session.credentials(within: soon)
            #expect(try await session.continueAsGuest(within: soon))
            #expect(try await session.credentials(within: soon) != first)
            #expect(session.state == .guest)
        }
    }

    @Test("Signing out where nothing ever happened is noted as well")
    func signOutFirst() async throws {
        try await withSessions { bench in
            let session = bench.session()
            try await session.signOut(within: soon)
            #expect(try session.standing().since == bench.clock.now)
        }
    }

    @Test("A state that cannot be read is unknown, and no sign-in")
    func unknown() async throws {
        try await withSessions { bench in
            let other = try OperationsDatabase(folder: bench.folder)
            let session = bench.session(database: other)
            try await session.signIn(bench.provider.signIn("ada"), within: soon)
            try other.close()
            #expect(session.state == .unknown && !session.isSignedIn)
        }
    }

    @Test("A key provider that never answers delays a sign-out by a moment, however long the server may be waited for")
    func signOutPatience() async throws {
        try await withSessions { bench in
            try await bench.session().signIn(bench.provider.signIn("ada"), within: soon)
            bench.keys.behaviour = .hanging
            let session = bench.session()
            let out = Task { try await session.signOut(within: .seconds(36_000)) }
            try await eventually { session.state == .signedOut }
            bench.keys.behaviour = .ready
            #expect(try await out.value.isServerTold == nil)
        }
    }

    @Test("Dead letters are among the mutations that signing out leaves unsent")
    func unsentDeadLetters() async throws {
        try await withSessions { bench in
            let session = try await bench.signedIn()
            let id = try await bench.enqueueMutation().id
            try await bench.database.mutations.setAside(
                id, expecting: .pending, MutationFailure(.rejected, message: "no", time: bench.clock.now),
                now: bench.clock.now)
            let answer = try await session.signOut(within: soon)
            #expect(answer.unsentMutations == 1 && answer.deadLetters == 1)
        }
    }

    @Test("Credentials say when the user signed in and when they were refreshed last")
    func times() async throws {
        try await withSessions { bench in
            let (session, start) = (bench.session(), bench.clock.now)
            try await session.signIn(bench.provider.signIn("ada"), within: soon)
            bench.clock.advance(by: .seconds(3600))
            _ = try await session.credentials(within: soon)
            for kind in try session.status().credentials {
                #expect(kind.created == start && kind.updated == bench.clock.now)
            }
        }
    }

    @Test("Another sign-in has a time of its own, also where no user has signed out before")
    func signedInAgain() async throws {
        try await withSessions { bench in
            let session = try await bench.signedIn()
            bench.clock.advance(by: .seconds(60))
            try await session.signIn(bench.provider.signIn("ada"), within: soon)
            let times = try session.status().credentials.map(\.created)
            #expect(times == [bench.clock.now, bench.clock.now])
        }
    }

    @Test("A mutation that is under way is among those that signing out leaves unsent")
    func unsentUnderWay() async throws {
        try await withSessions { bench in
            let session = try await bench.signedIn()
            let id = try await bench.enqueueMutation().id
            _ = try await bench.database.mutations.begin(id, owner: "a runner", now: bench.clock.now)
            let answer = try await session.signOut(within: soon)
            #expect(answer.unsentMutations == 1 && answer.deadLetters == 0)
        }
    }
}
