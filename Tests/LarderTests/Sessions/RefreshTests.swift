import Foundation
import LarderFiles
import LarderOperations
import LarderTestSupport
import Synchronization
import Testing

@testable import Larder

@Suite("Refreshing", .timeLimit(.minutes(10)))
struct RefreshTests {
    @Test("Credentials that end within the margin are refreshed, once for all callers, and rotation is kept")
    func refreshed() async throws {
        try await withSessions { bench in
            let session = try await bench.signedIn()
            for round in 1...5 {
                bench.clock.advance(by: .seconds(3600 - 30))
                bench.provider.behaviour = .slow(.milliseconds(20))
                let given = try await withThrowingTaskGroup(of: Credentials.self) { group in
                    for _ in 0..<20 { group.addTask { try await session.credentials(within: soon) } }
                    return try await group.reduce(into: Set()) { $0.insert($1) }
                }
                #expect(given.count == 1)
                #expect(bench.provider.refreshes == round)
                #expect(try await bench.session().storedCredentials(within: soon) == given.first.map { .present($0) })
            }
            #expect(bench.provider.refusals == 0)
            #expect(session.state == .signedIn)
        }
    }

    @Test("Credentials that end exactly at the margin are refreshed, and those that end a second later are not")
    func edgeOfMargin() async throws {
        try await withSessions { bench in
            let session = try await bench.signedIn()
            bench.clock.advance(by: .seconds(3600 - 61))
            _ = try await session.credentials(within: soon)
            #expect(bench.provider.refreshes == 0)
            bench.clock.advance(by: .seconds(1))
            _ = try await session.credentials(within: soon)
            #expect(bench.provider.refreshes == 1)
        }
    }

    @Test("Parts that an answer leaves out stay as they were")
    func completed() async throws {
        let sparse = ScriptedProvider { _ in
            Credentials(userPool: .init(idToken: "i2", accessToken: "a2", expires: .distantFuture))
        }
        try await withSessions { bench in
            let cloud = Credentials.CloudCredentials(
                identityID: "region:1", accessKeyID: "AK", secretAccessKey: "s", expires: .distantFuture)
            let session = bench.session(by: sparse)
            try await session.signIn(
                Credentials(
                    userPool: .init(
                        idToken: "i", accessToken: "a", refreshToken: "r", deviceKey: "d", expires: .distantPast),
                    cloud: cloud), within: soon)
            let new = try await session.credentials(within: soon)
            #expect(
                new
                    == Credentials(
                        userPool: .init(
                            idToken: "i2", accessToken: "a2", refreshToken: "r", deviceKey: "d", expires: .distantFuture
                        ),
                        cloud: cloud))
        }
    }

    @Test("Cloud credentials whose answer does not repeat the identity keep it")
    func keptIdentity() async throws {
        let sparse = ScriptedProvider { _ in
            Credentials(cloud: .init(accessKeyID: "AK2", secretAccessKey: "s2", expires: .distantFuture))
        }
        try await withSessions { bench in
            let session = bench.session(by: sparse)
            try await session.signIn(
                Credentials(
                    userPool: .init(idToken: "i", accessToken: "a", refreshToken: "r", expires: .distantFuture),
                    cloud: .init(
                        identityID: "region:1", accessKeyID: "AK", secretAccessKey: "s", expires: .distantPast)),
                within: soon)
            let new = try await session.cloudCredentials(within: soon)
            #expect(new.accessKeyID == "AK2" && new.identityID == "region:1")
            #expect(try await session.identityID(within: soon) == "region:1")
        }
    }

    @Test("A session gives valid cloud credentials although the user's tokens have expired and cannot be refreshed")
    func goodCloud() async throws {
        try await withSessions { bench in
            let session = bench.session()
            var mine = bench.provider.signIn("ada")
            mine.cloud?.expires = .distantFuture
            try await session.signIn(mine, within: soon)
            bench.clock.advance(by: .seconds(3600))
            bench.provider.behaviour = .unreachable
            await expectCode(.identityUnreachable) { _ = try await session.userPoolTokens(within: soon) }
            let asked = bench.provider.attempts
            #expect(try await session.cloudCredentials(within: soon) == mine.cloud)
            #expect(bench.provider.attempts == asked)
        }
    }

    @Test("Token refreshes race, and none signs the user out: two that hold the same file, many times")
    func race() async throws {
        try await withSessions { bench in
            let other = try OperationsDatabase(folder: bench.folder)
            let sessions = [bench.session(), bench.session(database: other), bench.session()]
            try await sessions[0].signIn(bench.provider.signIn("ada"), within: soon)
            for round in 1...20 {
                bench.clock.advance(by: .seconds(3600))
                let given = try await withThrowingTaskGroup(of: Credentials.self) { group in
                    for session in sessions { group.addTask { try await session.credentials(within: soon) } }
                    return try await group.reduce(into: Set()) { $0.insert($1) }
                }
                #expect(given.count == 1)
                #expect(bench.provider.refreshes == round)
            }
            #expect(bench.provider.refusals == 0)
            try other.close()
        }
    }

    @Test("A refresh goes on when its caller has given up, and its result is stored and used")
    func givenUp() async throws {
        try await withSessions { bench in
            let session = try await bench.signedInAnHourAgo()
            bench.provider.behaviour = .hanging
            let error = await #expect(throws: LarderError.self) {
                _ = try await session.credentials(within: .seconds(2))
            }
            #expect(error?.code == .timedOut)
            #expect(error?.message.contains("the identity provider") == true)
            let cancelled = Task { try await session.credentials(within: soon) }
            cancelled.cancel()
            await expectCode(.cancelled) { _ = try await cancelled.value }
            bench.provider.behaviour = .ready
            _ = try await session.credentials(within: soon)
            #expect(bench.provider.refreshes == 1)
            #expect(bench.provider.refusals == 0)
        }
    }

    @Test("A part that came along with another is not asked for again, however short a time it is good")
    func shortLived() async throws {
        try await withSessions { bench in
            let session = try await bench.signedInAnHourAgo()
            bench.provider.lifetime = .seconds(30)
            _ = try await session.credentials(within: soon)
            #expect(bench.provider.refreshes == 1)
        }
    }

    @Test("Credentials that live for less than the margin are asked for once by each call")
    func belowMargin() async throws {
        try await withSessions { bench in
            bench.provider.lifetime = .seconds(30)
            let session = try await bench.signedIn()
            for count in 1...3 {
                _ = try await session.userPoolTokens(within: soon)
                #expect(bench.provider.attempts == count)
            }
        }
    }

    @Test("A caller who has given up gets no credentials, also where they are good still")
    func givenUpWithinMargin() async throws {
        try await withSessions { bench in
            let session = try await bench.signedIn()
            bench.clock.advance(by: .seconds(3600 - 30))
            bench.provider.behaviour = .hanging
            let refresh = Task { try await session.credentials(within: soon) }
            try await eventually { bench.provider.attempts == 1 }
            refresh.cancel()
            await expectCode(.cancelled) { _ = try await refresh.value }
            bench.provider.behaviour = .ready
        }
    }

    @Test("A provider that never answers keeps others from refreshing, and they learn which process does")
    func hangingElsewhere() async throws {
        try await withSessions { bench in
            let (one, two) = (bench.session { $0.label = "one" }, bench.session())
            try await one.signIn(bench.provider.signIn("ada"), within: soon)
            // The key is known, so that nothing but the lock is waited for.
            _ = try await two.storedCredentials(within: soon)
            bench.clock.advance(by: .seconds(3600))
            bench.provider.behaviour = .hanging
            await expectCode(.timedOut) { _ = try await one.credentials(within: .milliseconds(50)) }
            try await eventually { bench.provider.attempts == 1 }
            let error = await #expect(throws: LarderError.self) {
                _ = try await two.credentials(within: .seconds(2))
            }
            #expect(error?.code == .timedOut)
            let pid = ProcessInfo.processInfo.processIdentifier
            #expect(error?.message.contains("process \(pid) (one), refreshing credentials, since ") == true)
            bench.provider.behaviour = .ready
            #expect(try await two.credentials(within: soon) == one.credentials(within: soon))
            #expect(bench.provider.refreshes == 1)
        }
    }

    @Test("A refresh asks no provider once another process has found the user refused")
    func refusedElsewhere() async throws {
        try await withSessions { bench in
            let session = try await bench.signedInAnHourAgo()
            let lock = try await HeldLock.acquire(
                "main" + Session.lockSuffix(of: .userPool), in: bench.locks, FileSystem(), for: "a test",
                label: "other", until: .now + soon)
            let refresh = Task { try await session.userPoolTokens(within: soon) }
            await expectCode(.timedOut) { _ = try await session.userPoolTokens(within: .milliseconds(100)) }
            _ = try await bench.database.credentials.changeSession(of: "main") { [clock = bench.clock] _ in
                StoredSession(state: SessionState.userPoolTokensInvalid.rawValue, changed: clock.now)
            }
            lock.release()
            await expectCode(.notSignedIn) { _ = try await refresh.value }
            #expect(bench.provider.attempts == 0)
        }
    }

    @Test("A refresh whose answer comes after a sign-out brings no user back")
    func lateAnswer() async throws {
        try await withSessions { bench in
            let session = bench.session()
            let refresh = try await bench.hangingRefresh(of: session)
            let answer = try await session.signOut(within: .milliseconds(50))
            #expect(answer.isServerTold == false)
            bench.provider.behaviour = .ready
            // Whichever of the two it hears first.
            try await eventually { bench.provider.refreshes + bench.provider.refusals == 1 }
            let released = Task {
                while !Task.isCancelled {
                    session.releaseWaiters()
                    try await Task.sleep(for: .milliseconds(5))
                }
            }
            await expectCode(.waitReleased) { _ = try await refresh.value }
            released.cancel()
            #expect(session.state == .signedOut)
            #expect(try bench.snapshot().credentials == [])
        }
    }

    @Test("A refresh whose answer comes after another sign-in leaves the new user's credentials")
    func lateAnswerAfterSignIn() async throws {
        try await withSessions { bench in
            let session = bench.session()
            let refresh = try await bench.hangingRefresh(of: session)
            let new = bench.provider.signIn("bob")
            try await session.signIn(new, within: soon)
            bench.provider.behaviour = .ready
            #expect(try await refresh.value == new)
            #expect(try await session.storedCredentials(within: soon) == .present(new))
        }
    }

    @Test(
        "A refresh that cannot make or take its lock fails, with the file error as its cause",
        arguments: [FileCall.Kind.open, .lock])
    func unusableLock(kind: FileCall.Kind) async throws {
        try await withSessions { bench in
            try await bench.session().signIn(bench.provider.signIn("ada"), within: soon)
            bench.clock.advance(by: .seconds(3600))
            let session = bench.session { options in
                options.files = FileSystem(injecting: { call in
                    call.kind == kind && call.path.contains("/locks/") ? .failure(EIO) : nil
                })
            }
            let error = await larderError { try await session.userPoolTokens(within: soon) }
            #expect(error?.code == .lock && error?.cause is FileError, "\(error as Any)")
            #expect(bench.provider.attempts == 0)
        }
    }

    @Test("The error of the identity provider is the cause of the session's, and says when to try again")
    func causeOfProvider() async throws {
        try await withSessions { bench in
            let session = try await bench.signedInAnHourAgo()
            bench.provider.behaviour = .throttled
            let error = await larderError { try await session.userPoolTokens(within: soon) }
            #expect(error?.code == .identityThrottled && (error?.cause as? IdentityError)?.code == .throttled)
            #expect(error?.remedy == .tryAgain(after: .seconds(30)))
        }
    }

    @Test("A late refusal of one user's token leaves a user who has signed in since signed in")
    func lateRefusal() async throws {
        try await withSessions { bench in
            let session = bench.session()
            // The provider never issued this refresh token, and refuses it.
            let unknown = Credentials.UserPoolTokens(
                idToken: "i", accessToken: "a", refreshToken: "r", expires: bench.clock.now)
            try await session.signIn(Credentials(userPool: unknown), within: soon)
            bench.provider.behaviour = .hanging
            let refresh = Task { try await session.credentials(within: .seconds(60)) }
            try await eventually { bench.provider.attempts == 1 }
            let new = bench.provider.signIn("bob")
            try await session.signIn(new, within: soon)
            bench.provider.behaviour = .ready
            #expect(try await refresh.value == new)
            #expect(bench.provider.refusals == 1 && session.state == .signedIn)
        }
    }

    @Test("A refresh stores and returns an answer that comes after its timeout")
    func answerAfterEnd() async throws {
        let late = ScriptedProvider { _ in
            // The end of the refresh cancels it.
            while !Task.isCancelled { try? await Task.sleep(for: .seconds(60)) }
            return Credentials(
                userPool: .init(idToken: "i2", accessToken: "a2", refreshToken: "r2", expires: .distantFuture))
        }
        try await withSessions { bench in
            let session = bench.session(by: late) { $0.refreshTimeout = .milliseconds(500) }
            let old = Credentials.UserPoolTokens(
                idToken: "i", accessToken: "a", refreshToken: "r", expires: .distantPast)
            try await session.signIn(Credentials(userPool: old), within: soon)
            let begun = SuspendingClock.now
            let new = try await session.userPoolTokens(within: soon)
            try requireNear(begun)
            #expect(new.refreshToken == "r2")
            #expect(try await session.storedCredentials(within: soon) == .present(Credentials(userPool: new)))
        }
    }

    @Test("A refresh that is under way when its session ends stores what the provider answers")
    func answerAfterClosing() async throws {
        try await withSessions { bench in
            let session = bench.session()
            let refresh = try await bench.hangingRefresh(of: session)
            session.close()
            bench.provider.behaviour = .ready
            await expectCode(.parked) { _ = try await refresh.value }
            _ = try await bench.session().userPoolTokens(within: soon)
            #expect(bench.provider.refreshes == 1 && bench.provider.refusals == 0)
        }
    }

    @Test("A refresh whose answer comes after its partition was forgotten brings nothing back")
    func lateAnswerAfterForgetting() async throws {
        try await withSessions { bench in
            try await bench.makePartitions("a")
            let session = bench.session("a")
            let refresh = try await bench.hangingRefresh(of: session)
            try await bench.database.environments.forget(partitions: ["a"], losingUnsent: true)
            bench.provider.behaviour = .ready
            let unknown = LarderError.Code(rawValue: "operations.unknownPartition")
            await expectCode(unknown) { _ = try await refresh.value }
            await expectCode(unknown) { try await session.signIn(bench.provider.signIn("ada"), within: soon) }
            await expectCode(unknown) { _ = try await session.signOut(within: soon) }
            // Nothing of it is kept to be stored later, and so its lock is not either.
            let names = try FileManager.default.contentsOfDirectory(atPath: bench.locks.path)
            let locks = names.filter { $0.hasPrefix("a.") }
            #expect(!locks.isEmpty)
            for name in locks {
                let lock = try LockFile(making: bench.locks.appending(path: name).path)
                #expect(try lock.tryLock(.exclusive), "\(name)")
            }
            #expect(try bench.database.environments.partitions() == [])
        }
    }

    @Test(
        "New credentials of a user or guest that cannot be stored are given to no caller, and stored when they can be",
        arguments: [Session.Holder.user, .guest])
    func unsaved(holder: Session.Holder) async throws {
        try await withSessions { bench in
            let session = bench.session { $0.refreshTimeout = .seconds(5) }
            let guest = try await bench.provider.guestCredentials(within: soon) ?? Credentials()
            try await session.accept(holder == .user ? bench.provider.signIn("ada") : guest, as: holder, within: soon)
            bench.clock.advance(by: .seconds(3600))
            // Nobody may write any more: the credentials can be had from the server and not be stored.
            let blocker = try OperationsDatabase(folder: bench.folder)
            let failing = try OperationsDatabase(
                folder: bench.folder,
                options: {
                    var options = OperationsDatabase.Options()
                    options.busyTimeout = .milliseconds(50)
                    return options
                }())
            let other = bench.session(database: failing)
            let (held, free) = (Flag(), Flag())
            let holding = Task.detached { try await hold(blocker, held, free) }
            try await eventually { held.isSet }
            await expectCode(.init(rawValue: "operations.busy")) { _ = try await other.credentials(within: soon) }
            #expect(bench.provider.refreshes == 1)
            // Nor does another refresh them meanwhile: the old refresh token is used.
            await expectCode(.timedOut) { _ = try await session.credentials(within: .milliseconds(300)) }
            #expect(bench.provider.attempts == 1)
            free.set()
            try await holding.value
            let new = try await other.credentials(within: soon)
            #expect(bench.provider.refreshes == 1)
            #expect(bench.provider.refusals == 0)
            #expect(try await session.credentials(within: soon) == new)
            try failing.close()
            try blocker.close()
        }
    }

    @Test("Credentials that end within the margin that the store's options say are refreshed before they are used")
    func margin() async throws {
        let provider = InMemoryIdentityProvider(lifetime: .seconds(300))
        try await withTemporaryFolder { folder in
            var options = Store.Options()
            options.keys = InMemoryKeyProvider()
            options.identityProvider = { _ in provider }
            options.session.margin = .seconds(600)
            let store = try Store.open(
                at: folder.appending(path: "store"), schema: try Schema(parsing: fixtureSchema), options: options)
            let session = try store.partition().session
            let old = provider.signIn("ada")
            try await session.signIn(old, within: soon)
            #expect(try await session.userPoolTokens(within: soon) != old.userPool)
            #expect(provider.refreshes == 1)
            try store.close()
        }
    }

    @Test("A session whose program says nothing has a margin of a minute, and gives each provider half a minute")
    func defaults() {
        let options = Session.Options()
        #expect(options.margin == .seconds(60))
        #expect(options.refreshTimeout == .seconds(30) && options.keyTimeout == .seconds(30))
    }

    @Test("A session refreshes no tokens while another process holds the lock PARTITION.refresh")
    func nameOfLock() async throws {
        try await withSessions { bench in
            let session = try await bench.signedInAnHourAgo()
            let lock = try await HeldLock.acquire(
                "main.refresh", in: bench.locks, FileSystem(), for: "a test", label: "other", until: .now + soon)
            await expectCode(.timedOut) { _ = try await session.credentials(within: .milliseconds(300)) }
            #expect(bench.provider.attempts == 0)
            lock.release()
            _ = try await session.credentials(within: soon)
            #expect(bench.provider.refreshes == 1)
        }
    }
}

/// Keeps everybody from writing until it is told otherwise.
private func hold(_ database: OperationsDatabase, _ held: Flag, _ free: Flag) async throws {
    _ = try await database.credentials.changeSession(of: "main") { _ in
        held.set()
        while !free.isSet { usleep(1000) }
        return nil
    }
}
