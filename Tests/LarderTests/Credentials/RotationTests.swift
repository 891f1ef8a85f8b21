import Foundation
import Larder
import LarderOperations
import LarderTestSupport
import Synchronization
import Testing

@Suite("Changing the program's key", .timeLimit(.minutes(10)))
struct RotationTests {
    private static let secret = Credentials(userPool: .init(idToken: "i", accessToken: "a", expires: nil))

    private func rotation(_ bench: SessionBench, _ keys: (any KeyProvider)? = nil) -> KeyRotation {
        KeyRotation(database: bench.database, provider: keys ?? bench.keys, locks: bench.locks, label: "test")
    }

    @Test("All partitions' keys are sealed with the new key, the old one goes, and credentials stay as they are")
    func rotated() async throws {
        try await withSessions { bench in
            let partitions = ["a", "b", "c"]
            for name in partitions {
                try await bench.makePartitions(name)
                try await bench.session(name).signIn(Self.secret, within: soon)
            }
            let (old, before) = (try await bench.keys.keys(within: soon), try bench.snapshot("a").credentials)
            let report = try await rotation(bench).run(within: soon)
            #expect(report.resealed == 3)
            #expect(report.dropped == [old.current.id])
            #expect(report.unopened == [])
            let new = try await bench.keys.keys(within: soon)
            #expect(new.current.id == report.current && new.previous == [] && new.current != old.current)
            #expect(try bench.snapshot("a").credentials == before)
            for name in partitions {
                #expect(try await bench.session(name).storedCredentials(within: soon) == .present(Self.secret))
                #expect(try bench.session(name).status().sealedWith == new.current.id)
            }
        }
    }

    @Test("A rotation makes no new key in a key file that lies in the store's folder")
    func keyInside() async throws {
        try await withSessions { bench in
            let provider = FileKeyProvider(file: bench.folder.appending(path: "k"))
            let key = try await provider.makeKey(within: soon)
            await expectCode(.init(rawValue: "keys.exposed")) {
                _ = try await rotation(bench, provider).run(within: soon)
            }
            #expect(try await provider.keys(within: soon) == key)
        }
    }

    @Test("A session that was open before goes on after it")
    func open() async throws {
        try await withSessions { bench in
            let session = bench.session()
            try await session.signIn(Self.secret, within: soon)
            for _ in 0..<3 {
                _ = try await rotation(bench).run(within: soon)
                #expect(try await session.storedCredentials(within: soon) == .present(Self.secret))
            }
        }
    }

    /// Runs a rotation within its next read, once it was told to.
    private final class RotatedKeys: KeyProvider {
        let keys: InMemoryKeyProvider
        let description = "the rotated keys"
        private let next = Mutex<(rotation: KeyRotation, isLockedAfter: Bool)?>(nil)

        init(_ keys: InMemoryKeyProvider) { self.keys = keys }

        func rotateAtNextRead(by rotation: KeyRotation, isLockedAfter: Bool = false) {
            next.withLock { $0 = (rotation, isLockedAfter) }
        }

        func keys(within time: Duration) async throws(KeyError) -> MasterKeys {
            let due = next.withLock { $0.take() }
            do { _ = try await due?.rotation.run(within: soon) } catch {
                throw KeyError(.unreadable, "The rotation failed", cause: error)
            }
            let answer = try await keys.keys(within: time)
            if due?.isLockedAfter == true { keys.behaviour = .locked }
            return answer
        }

        func makeKey(within time: Duration) async throws(KeyError) -> MasterKeys {
            try await keys.makeKey(within: time)
        }

        func addKey(within time: Duration) async throws(KeyError) -> MasterKeys { try await keys.addKey(within: time) }

        func dropKeys(_ ids: Set<String>, within time: Duration) async throws(KeyError) {
            try await keys.dropKeys(ids, within: time)
        }
    }

    @Test("A session reads credentials whose key is rotated while it asks for it, and gives up none")
    func readMeanwhile() async throws {
        for missingKey in [Session.MissingKey.staySignedIn, .startAnew] {
            try await withSessions { bench in
                try await bench.session().signIn(Self.secret, within: soon)
                let keys = RotatedKeys(bench.keys)
                let session = bench.session(keys: keys) { $0.missingKey = missingKey }
                keys.rotateAtNextRead(by: rotation(bench))
                #expect(try await session.storedCredentials(within: soon) == .present(Self.secret))
                #expect(try session.status().quarantined == [])
                let reads = bench.keys.reads
                #expect(try await session.storedCredentials(within: soon) == .present(Self.secret))
                #expect(bench.keys.reads == reads)
            }
        }
    }

    /// Has a session refresh credentials whose key is rotated while the session asks for it, to store them.
    private func withRefresh(
        isLockedAfter: Bool = false,
        _ body: (SessionBench, Session, Task<Credentials, any Error>) async throws -> Void
    ) async throws {
        try await withSessions { bench in
            let keys = RotatedKeys(bench.keys)
            let session = bench.session(keys: keys)
            let refresh = try await bench.hangingRefresh(of: session)
            // The session knows the key of before, and has to ask for that of now.
            _ = try await rotation(bench).run(within: soon)
            keys.rotateAtNextRead(by: rotation(bench), isLockedAfter: isLockedAfter)
            bench.provider.behaviour = .ready
            try await body(bench, session, refresh)
        }
    }

    @Test("A session stores refreshed credentials whose key is rotated while it asks for it, and refreshes them once")
    func refreshedMeanwhile() async throws {
        try await withRefresh { (bench, _, refresh) async throws in
            let new = try await refresh.value
            #expect(bench.provider.refreshes == 1)
            #expect(try await bench.session().storedCredentials(within: soon) == .present(new))
        }
    }

    @Test("Refreshed credentials are kept until they can be stored, where the keys are locked after a rotation")
    func lockedMeanwhile() async throws {
        try await withRefresh(isLockedAfter: true) { (bench, session, refresh) async throws in
            await expectCode(.keysLocked) { _ = try await refresh.value }
            bench.keys.behaviour = .ready
            let new = try await session.credentials(within: soon)
            #expect(bench.provider.refreshes == 1 && bench.provider.refusals == 0)
            #expect(try await bench.session().storedCredentials(within: soon) == .present(new))
        }
    }

    @Test("A partition whose key cannot be opened is left as it is, and told")
    func unopened() async throws {
        try await withSessions { bench in
            try await bench.makePartitions("a", "b")
            try await bench.session("a").signIn(Self.secret, within: soon)
            let stranger = InMemoryKeyProvider()
            try await bench.session("b", keys: stranger).signIn(Self.secret, within: soon)
            let report = try await rotation(bench).run(within: soon)
            #expect(report.unopened == ["b"])
            #expect(report.resealed == 1)
            #expect(
                try await bench.session("b", keys: stranger).storedCredentials(within: soon) == .present(Self.secret))
        }
    }

    @Test("A key with which something is sealed still is not forgotten, though it opens that no more")
    func neededKey() async throws {
        try await withSessions { bench in
            try await bench.makePartitions("a", "b")
            for name in ["a", "b"] { try await bench.session(name).signIn(Self.secret, within: soon) }
            let old = try await bench.keys.keys(within: soon).current
            _ = try await bench.database.credentials.reseal { key in
                guard key.partition == "b" else { return nil }
                var damaged = key
                damaged.sealed[20] ^= 1
                return damaged
            }
            let report = try await rotation(bench).run(within: soon)
            #expect(report.unopened == ["b"] && report.dropped == [])
            #expect(try await bench.keys.keys(within: soon).previous == [old])
        }
    }

    @Test("A key in a variable is changed by the program that sets it, and the rotation takes it into use")
    func variable() async throws {
        try await withSessions { bench in
            func provider(_ variables: [String: String]) -> EnvironmentKeyProvider {
                EnvironmentKeyProvider { variables }
            }
            let (one, two) = (
                Data(MasterKey().bytes).base64EncodedString(), Data(MasterKey().bytes).base64EncodedString()
            )
            try await bench.session(keys: provider(["LARDER_KEY": one])).signIn(Self.secret, within: soon)
            await expectCode(.init(rawValue: "keys.cannotRotate")) {
                _ = try await rotation(bench, provider(["LARDER_KEY": one])).run(within: soon)
            }
            // Without the old key beside it, nothing could be sealed with the new one.
            await expectCode(.keysCannotRotate) {
                _ = try await rotation(bench, provider(["LARDER_KEY": two])).run(within: soon)
            }
            let both = provider(["LARDER_KEY": two, "LARDER_PREVIOUS_KEYS": one])
            #expect(try await bench.session(keys: both).storedCredentials(within: soon) == .present(Self.secret))
            #expect(try await rotation(bench, both).run(within: soon).resealed == 1)
            let after = bench.session(keys: provider(["LARDER_KEY": two]))
            #expect(try await after.storedCredentials(within: soon) == .present(Self.secret))
        }
    }

    @Test("A provider that hangs ends the rotation at its deadline, with nothing lost")
    func hanging() async throws {
        try await withSessions { bench in
            try await bench.session().signIn(Self.secret, within: soon)
            bench.keys.behaviour = .hanging
            await expectCode(.timedOut) { _ = try await rotation(bench).run(within: .milliseconds(30)) }
            // The first is under way still, and the next is told so.
            let error = await #expect(throws: LarderError.self) {
                _ = try await rotation(bench).run(within: .milliseconds(30))
            }
            #expect(error?.message.contains("rotating keys, since") == true)
            bench.keys.behaviour = .ready
            #expect(try await bench.session().storedCredentials(within: soon) == .present(Self.secret))
        }
    }

    @Test("A rotation whose caller is cancelled says so, and one that is run again ends it")
    func cancelled() async throws {
        try await withSessions { bench in
            try await bench.session().signIn(Self.secret, within: soon)
            bench.keys.behaviour = .hanging
            let isBegun = Flag()
            var begun = rotation(bench)
            begun.reached = { _ in isBegun.set() }
            let rotating = Task { [begun] in try await begun.run(within: soon) }
            await isBegun.wait()
            rotating.cancel()
            await expectCode(.cancelled) { _ = try await rotating.value }
            bench.keys.behaviour = .ready
            #expect(try await rotation(bench).run(within: soon).unopened == [])
            #expect(try await bench.session().storedCredentials(within: soon) == .present(Self.secret))
        }
    }

    @Test("A rotation waits for a sign-in that makes a partition's key, and names it")
    func makingMeanwhile() async throws {
        try await withSessions { bench in
            bench.keys.behaviour = .hanging
            let session = bench.session()
            let signingIn = Task { try await session.signIn(Self.secret, within: soon) }
            try await eventually { bench.keys.reads > 0 }
            let error = await #expect(throws: LarderError.self) {
                _ = try await rotation(bench).run(within: .milliseconds(30))
            }
            #expect(error?.message.contains("making a partition's key, since") == true, "\(error as Any)")
            bench.keys.behaviour = .ready
            try await signingIn.value
            #expect(try await session.storedCredentials(within: soon) == .present(Self.secret))
        }
    }

    /// What the program of the other process said it had stored, and that it can all be read now.
    private func expectReadable(_ store: URL, _ said: URL, _ comment: Comment) async throws {
        let database = try OperationsDatabase(folder: store)
        for line in try ChildProgram.lines(of: said) {
            let words = line.split(separator: " ").map(String.init)
            guard words.count == 2, let stored = Int(words[1]) else { continue }
            let session = Session(
                database: database, partition: words[0], identity: "identity", keys: FileKeyProvider(besides: store),
                provider: nil, locksFolder: store.appending(path: "locks"))
            guard case .present(let credentials) = try await session.storedCredentials(within: soon) else {
                Issue.record("\(words[0]) cannot be read: \(comment)")
                continue
            }
            #expect(Int(credentials.userPool?.idToken ?? "").map { $0 >= stored } == true, comment)
            #expect(try session.status().quarantined == [], comment)
        }
        #expect(try database.check().problems == [], comment)
        try database.close()
    }

    private func rotateAgain(_ store: URL) async throws {
        let database = try OperationsDatabase(folder: store)
        let keys = FileKeyProvider(besides: store)
        let report = try await KeyRotation(
            database: database, provider: keys, locks: store.appending(path: "locks"), label: "test"
        ).run(within: soon)
        #expect(report.unopened == [])
        #expect(try await keys.keys(within: soon).previous == [])
        try database.close()
    }

    @Test(
        "Killed at each step, every credential is readable, and running it again ends it",
        .enabled(if: ChildProgram.isBuilt, Comment(rawValue: ChildProgram.requirement)),
        arguments: KeyRotation.KillPoint.allCases)
    func killedAtStep(_ step: KeyRotation.KillPoint) async throws {
        try await withTemporaryFolder { folder in
            let (store, said) = (folder.appending(path: "store"), folder.appending(path: "said"))
            let child = try ChildProgram.start(store, "rotate", step.rawValue, output: said)
            await child.ended()
            #expect(child.terminationReason == .uncaughtSignal)
            #expect(try ChildProgram.lines(of: said).count == 3)
            try await expectReadable(store, said, "\(step)")
            try await rotateAgain(store)
            try await expectReadable(store, said, "\(step)")
        }
    }

    @Test(
        "Killed at any moment, every credential is readable",
        .enabled(if: ChildProgram.isBuilt, Comment(rawValue: ChildProgram.requirement)))
    func killed() async throws {
        try await withTemporaryFolder { folder in
            let (store, said) = (folder.appending(path: "store"), folder.appending(path: "said"))
            for round in 0..<12 {
                let child = try ChildProgram.start(store, "rotate", "", output: said)
                defer { if child.isRunning { kill(child.processIdentifier, SIGKILL) } }
                // The first one makes the key, without which there is nothing to change in the end.
                while round == 0, child.isRunning, try ChildProgram.lines(of: said).isEmpty {
                    try await Task.sleep(for: .milliseconds(5))
                }
                try await Task.sleep(for: .milliseconds(Int.random(in: 30...250)))
                kill(child.processIdentifier, SIGKILL)
                await child.ended()
                try #require(child.terminationReason == .uncaughtSignal, "round \(round): it ended by itself")
                try await expectReadable(store, said, "round \(round)")
            }
            try await rotateAgain(store)
            let left = try FileManager.default.contentsOfDirectory(atPath: folder.path)
            #expect(left.contains("store.key"))
        }
    }

    @Test("A store takes a new key of its provider into use, which is a file beside it unless the options say another")
    func ofStore() async throws {
        for isOfOptions in [true, false] {
            try await withTemporaryFolder { parent in
                let folder = parent.appending(path: "store")
                var options = Store.Options()
                if isOfOptions { options.keys = InMemoryKeyProvider() }
                let keys = options.keys ?? FileKeyProvider(besides: folder)
                let store = try Store.open(at: folder, schema: try Schema(parsing: fixtureSchema), options: options)
                let app = try store.partition()
                try await app.session.signIn(Self.secret, within: soon)
                let old = try await keys.keys(within: soon).current.id
                let report = try await store.rotateKeys(within: soon)
                #expect(report.resealed == 1 && report.dropped == [old] && report.current != old)
                #expect(try await keys.keys(within: soon).current.id == report.current)
                #expect(try app.session.status().sealedWith == report.current)
                #expect(try await app.session.storedCredentials(within: soon) == .present(Self.secret))
                try store.close()
            }
        }
    }

    @Test("A key that has outlived its store is replaced by a new one, though nothing is sealed with it any more")
    func nothingSealed() async throws {
        let keys = InMemoryKeyProvider()
        let old = try await keys.makeKey(within: soon).current.id
        try await withSessions { bench in
            let report = try await rotation(bench, keys).run(within: soon)
            #expect(report.current != old && report.resealed == 0 && report.dropped == [old])
            let new = try await keys.keys(within: soon)
            #expect(new.current.id == report.current && new.previous == [])
        }
    }

    @Test("A rotation whose provider is locked says so, and leaves the keys and what they seal as they were")
    func locked() async throws {
        try await withSessions { bench in
            try await bench.session().signIn(Self.secret, within: soon)
            let (old, before) = (try await bench.keys.keys(within: soon), try bench.snapshot())
            bench.keys.behaviour = .locked
            await expectCode(.keysLocked) { _ = try await rotation(bench).run(within: soon) }
            bench.keys.behaviour = .ready
            #expect(try await bench.keys.keys(within: soon) == old)
            #expect(try bench.snapshot() == before)
        }
    }

    @Test("A rotation whose provider cannot forget the old key says so, and one that is run again forgets it")
    func undropped() async throws {
        try await withSessions { bench in
            try await bench.session().signIn(Self.secret, within: soon)
            var hindered = rotation(bench)
            hindered.reached = { [keys = bench.keys] point in
                if point == .resealed { keys.behaviour = .locked }
            }
            let first = hindered
            await expectCode(.keysLocked) { _ = try await first.run(within: soon) }
            bench.keys.behaviour = .ready
            #expect(try await bench.keys.keys(within: soon).previous.count == 1)
            #expect(try await bench.session().storedCredentials(within: soon) == .present(Self.secret))
            _ = try await rotation(bench).run(within: soon)
            #expect(try await bench.keys.keys(within: soon).previous == [])
        }
    }
}
