import Foundation
import LarderFiles
import LarderOperations
import LarderTestSupport
import Testing

@testable import Larder

/// Waits of the library's that callers give a deadline, each for what does not come about.
@Suite("Deadlines", .timeLimit(.minutes(10)))
struct DeadlineTests {
    private func requireCode(
        _ code: LarderError.Code, naming holder: String? = nil, sourceLocation: SourceLocation = #_sourceLocation,
        _ body: (_ deadline: SuspendingClock.Instant) async throws -> Void
    ) async throws {
        let error = try await requireEnd(naming: holder, body) as? LarderError
        #expect(error?.code == code, sourceLocation: sourceLocation)
    }

    @Test("A caller who is cancelled waits for no lock")
    func cancelledLock() async throws {
        try await withTemporaryFolder { folder in
            let (files, isWaiting) = (FileSystem(), Flag())
            let held = try await HeldLock.acquire("l", in: folder, files, for: "a", label: "b", until: .now + soon)
            let waiting = Task {
                try await HeldLock.acquire(
                    "l", in: folder, files, for: "c", label: "d", until: .now + .seconds(5)
                ) { _ in isWaiting.set() }
            }
            await isWaiting.wait()
            waiting.cancel()
            await expectCode(.cancelled) { _ = try await waiting.value }
            held.release()
        }
    }

    @Test("A lock that cannot be made is told as such, by its name, and not as one that is held")
    func unusableLock() async throws {
        try await withTemporaryFolder { folder in
            let locks = folder.appending(path: "locks")
            try Data().write(to: locks)
            let error = await #expect(throws: LarderError.self) {
                _ = try await HeldLock.acquire(
                    "l", in: locks, FileSystem(), for: "a test", label: "test", until: .now + soon)
            }
            #expect(error?.code == .lock && error?.message.contains("The lock l cannot be used") == true)
            #expect(error?.cause is FileError)
        }
    }

    @Test("What does not answer in its time is cancelled")
    func unanswered() async throws {
        let isCancelled = Flag()
        await expectCode(.cancelled) {
            try await answering(within: .milliseconds(20)) {
                do { try await Task.sleep(for: .seconds(600)) } catch {
                    isCancelled.set()
                    throw error
                }
            }
        }
        try await eventually { isCancelled.isSet }
    }

    @Test("A wait for a sign-in ends at its deadline")
    func signIn() async throws {
        try await withSessions { bench in
            let session = bench.session()
            try await requireCode(.notSignedIn) { try await session.signedIn(within: .until($0)) }
            try await requireCode(.notSignedIn) { _ = try await session.credentials(within: .until($0)) }
        }
    }

    @Test("A key provider that hangs is waited for until the caller's deadline, whatever the caller wants")
    func keys() async throws {
        try await withSessions { bench in
            let mine = bench.provider.signIn("ada")
            try await bench.session().signIn(mine, within: soon)
            bench.keys.behaviour = .hanging
            let timedOut = LarderError.Code(rawValue: "keys.timedOut")
            try await requireCode(timedOut) { try await bench.session().signIn(mine, within: .until($0)) }
            try await requireCode(timedOut) { _ = try await bench.session().credentials(within: .until($0)) }
            let deadline = SuspendingClock.now + .milliseconds(50)
            _ = try await bench.session().storedCredentials(within: .until(deadline))
            try requireNear(deadline)
            try await requireCode(.timedOut, naming: "had not answered by the deadline") {
                _ = try await KeyRotation(
                    database: bench.database, provider: bench.keys, locks: bench.locks, label: "test"
                ).run(within: .until($0))
            }
            bench.keys.behaviour = .ready
        }
    }

    @Test("A first sign-in waits for a key provider that hangs until the caller's deadline, and not for longer")
    func firstKey() async throws {
        try await withSessions { bench in
            let mine = bench.provider.signIn("ada")
            bench.keys.behaviour = .hanging
            try await requireCode(LarderError.Code(rawValue: "keys.timedOut")) {
                try await bench.session { $0.keyTimeout = .seconds(60) }.signIn(mine, within: .until($0))
            }
            bench.keys.behaviour = .ready
        }
    }

    @Test("Signing out forgets the credentials although the key provider and the server hang, and ends at its deadline")
    func signOut() async throws {
        try await withSessions { bench in
            try await bench.session().signIn(bench.provider.signIn("ada"), within: soon)
            (bench.keys.behaviour, bench.provider.behaviour) = (.hanging, .hanging)
            let session = bench.session { $0.keyTimeout = .seconds(120) }
            // The server is told with what the key provider opens, which is waited for a second at most.
            let begun = SuspendingClock.now
            let locked = try await session.signOut(within: .until(begun + .seconds(120)))
            try requireNear(begun + .seconds(1), slack: .seconds(60))
            #expect(locked.isServerTold == nil)
            #expect(try bench.snapshot().credentials == [])
            bench.keys.behaviour = .ready
            try await session.signIn(bench.provider.signIn("ada"), within: soon)
            let deadline = SuspendingClock.now + .milliseconds(50)
            #expect(try await session.signOut(within: .until(deadline)).isServerTold == false)
            try requireNear(deadline)
            bench.provider.behaviour = .ready
        }
    }

    @Test("An identity provider that hangs is waited for until the caller's deadline, and named")
    func identities() async throws {
        try await withSessions { bench in
            let session = bench.session()
            bench.provider.behaviour = .hanging
            try await requireCode(.timedOut, naming: "the identity provider") {
                _ = try await session.continueAsGuest(within: .until($0))
            }
            try await session.signIn(bench.provider.signIn("ada"), within: soon)
            // The key is known, so that nothing else is waited for.
            _ = try await session.storedCredentials(within: soon)
            bench.clock.advance(by: .seconds(3600))
            try await requireCode(.timedOut) { _ = try await session.credentials(within: .until($0)) }
            try await eventually { bench.provider.attempts == 1 }
            try await requireCode(.timedOut, naming: "the identity provider") {
                _ = try await session.credentials(within: .until($0))
            }
            bench.provider.behaviour = .ready
        }
    }

    @Test("Each question to a session ends at its caller's deadline, though the refresh goes on")
    func questions() async throws {
        try await withSessions { bench in
            let session = bench.session()
            var mine = bench.provider.signIn("ada")
            mine.cloud?.identityID = nil
            try await session.signIn(mine, within: soon)
            // The key is known, so that nothing else is waited for.
            _ = try await session.storedCredentials(within: soon)
            bench.clock.advance(by: .seconds(3600))
            bench.provider.behaviour = .hanging
            try await requireCode(.timedOut) { _ = try await session.userPoolTokens(within: .until($0)) }
            try await requireCode(.timedOut) { _ = try await session.cloudCredentials(within: .until($0)) }
            try await requireCode(.timedOut) { _ = try await session.identityID(within: .until($0)) }
            bench.provider.behaviour = .ready
            _ = try await session.userPoolTokens(within: soon)
        }
    }

    @Test("Who takes another library's tokens over waits for a key provider that hangs until the caller's deadline")
    func adoption() async throws {
        try await withSessions { bench in
            let session = bench.session { $0.keyTimeout = .seconds(60) }
            let environment = try WrittenConfiguration.environment("staging")
            bench.keys.behaviour = .hanging
            try await requireCode(.keysTimedOut) {
                _ = try await session.adopt(AdoptionTests.legacy(), of: environment, within: .until($0))
            }
            bench.keys.behaviour = .ready
        }
    }

    @Test("A lock that another holds is waited for until the deadline, and the error names the holder")
    func locks() async throws {
        try await withSessions { bench in
            try await bench.session().signIn(bench.provider.signIn("ada"), within: soon)
            let holder = "process \(ProcessInfo.processInfo.processIdentifier) (holder), a test, since "
            let lock = try await HeldLock.acquire(
                CredentialVault.keyLock, in: bench.locks, FileSystem(), for: "a test", label: "holder",
                until: .now + soon)
            let rotation = KeyRotation(
                database: bench.database, provider: bench.keys, locks: bench.locks, label: "test")
            try await requireCode(.timedOut, naming: holder) { _ = try await rotation.run(within: .until($0)) }
            try await bench.makePartitions("other")
            try await requireCode(.timedOut, naming: holder) {
                try await bench.session("other").signIn(bench.provider.signIn("bob"), within: .until($0))
            }
            lock.release()
        }
    }

    @Test("A key file that another process changes is waited for until the deadline")
    func keyFile() async throws {
        try await withTemporaryFolder { folder in
            let provider = FileKeyProvider(file: folder.appending(path: "keys"))
            _ = try await provider.makeKey(within: soon)
            let other = try File.locked(provider.file.path)
            let error = try await requireEnd(naming: provider.file.path) {
                _ = try await provider.addKey(within: .until($0))
            }
            #expect((error as? KeyError)?.code == .timedOut)
            withExtendedLifetime(other) {}
        }
    }

    @Test("Forgetting waits for the migration lock until the deadline, and the error names the holder")
    func forgetting() async throws {
        try await withTemporaryFolder { folder in
            let store = try Store.open(at: folder, schema: try Schema(parsing: fixtureSchema))
            for name in ["a", "b"] {
                let url = try #require(URL(string: "https://\(name).example/graphql"))
                _ = try store.partition(of: BackendEnvironment(name: name, api: .init(url: url)), leaving: .park)
            }
            let lock = try MigrationLock.take(in: folder, for: "a backup", within: .zero)
            try await requireCode(.init(rawValue: "operations.migrationLocked"), naming: "a backup, since") {
                try await store.forget(environment: "a", within: .until($0))
            }
            let cancelled = Task { try await store.forget(environment: "a", within: .seconds(60)) }
            cancelled.cancel()
            #expect(await larderError { try await cancelled.value }?.code == .cancelled)
            lock.release()
            try await store.forget(environment: "a")
            try store.close()
        }
    }

    @Test("A wait for the end of a mutation, or of a transfer, ends when its time is over")
    func ends() async throws {
        try await withTransferFixture { fixture in
            let (file, _) = try fixture.file(bytes: 100)
            let upload = try await fixture.app.transfers.upload(file, to: TransferFixture.location)
            try await requireCode(.unfinishedTransfer) { _ in
                try await upload.finished(within: .milliseconds(50))
            }
            let receipt = try await fixture.app.enqueue(
                GraphQLOperation("mutation { rate(input: {recipe: 1, stars: 3}) { id } }"))
            try await requireCode(.unsettled) { _ in _ = try await receipt.outcome(within: .milliseconds(50)) }
        }
    }

    @Test("A caller that waits for a store's lock is told the program's name as the store's options have it")
    func label() async throws {
        let keys = InMemoryKeyProvider()
        var options = Store.Options()
        (options.keys, options.label) = (keys, "movies")
        try await withOpenStore(options: options) { (folder, store, app) throws in
            let secret = Credentials(userPool: .init(idToken: "i", accessToken: "a", expires: nil))
            try await app.session.signIn(secret, within: soon)
            keys.behaviour = .hanging
            let rotating = Task { try? await store.rotateKeys(within: soon) }
            func lock(until deadline: SuspendingClock.Instant) async throws(LarderError) -> HeldLock {
                try await HeldLock.acquire(
                    CredentialVault.keyLock, in: folder.appending(path: "locks"), FileSystem(), for: "a test",
                    label: "test", until: deadline)
            }
            while let free = try? await lock(until: .now) {
                free.release()
                try await Task.sleep(for: .milliseconds(2))
            }
            try await requireCode(.timedOut, naming: "(movies)") { _ = try await lock(until: $0) }
            keys.behaviour = .ready
            _ = await rotating.value
        }
    }

    @Test("A caller that waits for another's refresh is told the program's name as the store's options have it")
    func labelOfRefresh() async throws {
        let provider = InMemoryIdentityProvider(lifetime: .seconds(300))
        var options = Store.Options()
        (options.keys, options.label) = (InMemoryKeyProvider(), "movies")
        options.identityProvider = { _ in provider }
        options.session.margin = .seconds(600)
        try await withOpenStore(options: options) { (folder, _, app) throws in
            let session = try app.session
            try await session.signIn(provider.signIn("ada"), within: soon)
            provider.behaviour = .hanging
            let refreshing = Task { try await session.userPoolTokens(within: soon) }
            try await eventually { provider.attempts == 1 }
            let name = Store.unnamedPartition + Session.lockSuffix(of: .userPool)
            try await requireCode(.timedOut, naming: "(movies)") { deadline in
                _ = try await HeldLock.acquire(
                    name, in: folder.appending(path: "locks"), FileSystem(), for: "a test", label: "test",
                    until: deadline)
            }
            provider.behaviour = .ready
            _ = try await refreshing.value
        }
    }

    @Test("A caller whose refresh waits for another process's is told which process that is")
    func holderOfRefresh() async throws {
        try await withSessions { bench in
            let session = bench.session()
            try await session.signIn(bench.provider.signIn("ada"), within: soon)
            bench.clock.advance(by: .seconds(3600))
            let lock = try await HeldLock.acquire(
                "main" + Session.lockSuffix(of: .userPool), in: bench.locks, FileSystem(), for: "a test",
                label: "holder", until: .now + soon)
            let (holder, end) = ("which is held by process ", SuspendingClock.now + .seconds(10))
            var message = ""
            // The refresh may not have come to the lock by the first deadline.
            while !message.contains(holder), .now < end {
                let error = await larderError { try await session.userPoolTokens(within: .milliseconds(50)) }
                #expect(error?.code == .timedOut)
                message = error?.message ?? ""
            }
            #expect(message.contains(holder) && message.contains("(holder), a test, since "), "\(message)")
            lock.release()
            _ = try await session.userPoolTokens(within: soon)
        }
    }
}

extension File {
    /// Opens a file and takes the kernel's lock on it.
    fileprivate static func locked(_ path: String) throws -> File {
        let file = try FileSystem().open(path)
        try #require(try file.tryLock(.exclusive))
        return file
    }
}
