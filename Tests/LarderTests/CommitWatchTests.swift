import Foundation
import LarderFiles
import LarderOperations
import LarderTestSupport
import Logging
import Synchronization
import Testing

@testable import Larder

@Suite("Looking for what other processes commit", .timeLimit(.minutes(10)))
struct CommitWatchTests {
    /// Options by which what no notification tells of is not found while a test waits.
    private static func options(looked: @escaping @Sendable () -> Void = {}) -> Store.Options {
        var options = Store.Options()
        options.lookedAtOthers = looked
        options.longestWait = .seconds(3600)
        return options
    }

    private static func open(
        _ folder: URL, _ server: ScriptedServer? = nil, looked: @escaping @Sendable () -> Void = {}
    ) throws -> (Store, Partition) {
        let options = options(looked: looked)
        let store = try Store.open(at: folder, schema: try Schema(parsing: fixtureSchema), options: options)
        return (store, try store.partition(server: server))
    }

    /// Waits until a number has stayed the same for a second. One that a poll raises never does.
    private func requireRest(_ number: () -> Int) async throws {
        for _ in 0..<120 {
            let before = number()
            try await Task.sleep(for: .seconds(1))
            if before > 0, before == number() { return }
        }
        Issue.record("it looked again and again")
    }

    private func queue(_ other: OperationsDatabase, _ recipe: String) async throws {
        _ = try await other.mutations.enqueue(
            MutationDraft(
                partition: Store.unnamedPartition, lane: "other",
                content: MutationContent(
                    document:
                        "mutation Rate($recipe: ID!, $stars: Int!) { rate(input: {recipe: $recipe, stars: $stars})"
                        + " { id rating } }",
                    variables: Array(#"{"recipe":"\#(recipe)","stars":1}"#.utf8)),
                created: Date()))
    }

    @Test("A store in which nothing happens looks for nothing, and notices what others queue")
    func idle() async throws {
        try await withTemporaryFolder { folder in
            let other = try OperationsDatabase(folder: folder)
            let left = Countdown(1_000_000)
            let (store, app) = try Self.open(folder) { _ = left.take() }
            func looks() -> Int { 1_000_000 - left.count }
            try await requireRest(looks)
            let before = looks()
            try await queue(other, "1")
            try await eventually { looks() > before }
            try await eventually { try app.mutations(in: [.pending]).count == 1 }
            try await requireRest(looks)
            try await store.suspend()
            try store.resume()
            try await requireRest(looks)
            let resumed = looks()
            try await queue(other, "2")
            try await eventually { looks() > resumed }
            try other.close()
            try store.close()
        }
    }

    @Test("A store notices each of five commits of another connection within seconds, one after the other")
    func soonAfter() async throws {
        try await withTemporaryFolder { folder in
            let other = try OperationsDatabase(folder: folder)
            let left = Countdown(1_000_000)
            let (store, app) = try Self.open(folder) { _ = left.take() }
            let begun = SuspendingClock.now
            for round in 1...5 {
                let before = left.count
                try await queue(other, "\(round)")
                try await eventually { left.count < before }
            }
            // A notice takes about a tenth of a second; the rest is room for a busy machine.
            #expect(SuspendingClock.now - begun < .seconds(8))
            #expect(try app.mutations(in: [.pending]).count == 5)
            try other.close()
            try store.close()
        }
    }

    @Test("What a look itself reads in the folder brings about no other look")
    func ownLooks() async throws {
        try await withTemporaryFolder { folder in
            // A database that could not be made: each look asks the folder of locks whether it was one.
            try FileManager.default.createDirectory(
                at: folder.appending(path: "locks"), withIntermediateDirectories: true)
            try Data().write(to: folder.appending(path: OperationsDatabase.fileName))
            let left = Countdown(1_000_000)
            let (store, app) = try Self.open(folder) { _ = left.take() }
            var states = try app.watch(GraphQLOperation("{ recipe(id: 1) { id } }")).makeAsyncIterator()
            _ = await states.next()
            try await requireRest { 1_000_000 - left.count }
            try store.close()
        }
    }

    @Test("Runners that have nothing to carry out look for nothing, and send what others queue")
    func idleRunners() async throws {
        try await withTemporaryFolder { folder in
            let other = try OperationsDatabase(folder: folder)
            let server = ScriptedServer.rating()
            let (store, app) = try Self.open(folder, server)
            let (mutating, transferring) = (CountedConnectivity(), CountedConnectivity())
            let runner = quickRunner(app) { $0.connectivity = mutating }
            var options = TransferRunner.Options()
            options.connectivity = transferring
            let storage = MemoryStorage()
            let transferRunner = TransferRunner(app, storage: storage, options: options)
            let running = Task { try await runner.run() }
            let carrying = Task { try await transferRunner.run() }
            try await requireRest { mutating.looks }
            try await requireRest { transferring.looks }
            try await queue(other, "1")
            let file = folder.appending(path: "file")
            try Data("bytes".utf8).write(to: file)
            let place = ObjectLocation(bucket: "b", key: "k")
            try await other.transfers.enqueue([
                TransferDraft(
                    partition: Store.unnamedPartition, kind: .upload, bucket: "b", key: "k", path: file.path,
                    source: try FileIdentity(ofSource: file.path), created: Date())
            ])
            try await eventually { server.requests.count == 1 }
            try await eventually { storage.object(place) != nil }
            try await requireRest { mutating.looks }
            try await requireRest { transferring.looks }
            running.cancel()
            carrying.cancel()
            try await running.value
            try await carrying.value
            try other.close()
            try store.close()
        }
    }

    /// Options of a store whose clock counts its readings: every search for something to do reads the clock.
    private static func counting(_ left: Countdown) -> Store.Options {
        var options = Self.options()
        options.now = {
            _ = left.take()
            return Date()
        }
        return options
    }

    @Test(
        "A runner with mutations looks for nothing while it has no network, or waits for a sign-in",
        arguments: [false, true])
    func waitingRunner(isSignedOut: Bool) async throws {
        let left = Countdown(1_000_000)
        let refusing = ScriptedServer { _, _ in ScriptedServer.status(401) }
        try await withOpenStore(refusing, options: Self.counting(left)) { (_, _, app) throws in
            try await app.enqueue(giveStars("1", 5))
            let network = SwitchedConnectivity()
            network.set(isSignedOut)
            let runner = quickRunner(app) { $0.connectivity = network }
            let running = Task { try await runner.run() }
            try await eventually { runner.state == (isSignedOut ? .waitingForSignIn : .offline) }
            try await requireRest { 1_000_000 - left.count }
            running.cancel()
            try await running.value
        }
    }

    @Test("A runner with transfers looks for nothing while it has no network")
    func waitingTransfers() async throws {
        try await withTemporaryFolder { folder in
            let left = Countdown(1_000_000)
            let options = Self.counting(left)
            let store = try Store.open(
                at: folder.appending(path: "store"), schema: try Schema(parsing: fixtureSchema), options: options)
            let app = try store.partition()
            let file = folder.appending(path: "file")
            try Data("bytes".utf8).write(to: file)
            _ = try await app.transfers.upload(file, to: ObjectLocation(bucket: "b", key: "k"))
            let network = SwitchedConnectivity()
            network.set(false)
            var transferring = TransferRunner.Options()
            transferring.connectivity = network
            let runner = TransferRunner(app, storage: MemoryStorage(), options: transferring)
            let running = Task { try await runner.run() }
            try await eventually { runner.state == .offline }
            try await requireRest { 1_000_000 - left.count }
            running.cancel()
            try await running.value
            try store.close()
        }
    }

    @Test("A runner at rest sends each mutation that another connection queues, one after the other")
    func each() async throws {
        try await withTemporaryFolder { folder in
            let other = try OperationsDatabase(folder: folder)
            let server = ScriptedServer.rating()
            let (store, app) = try Self.open(folder, server)
            let runner = quickRunner(app) { _ in }
            let running = Task { try await runner.run() }
            for round in 1...50 {
                try await queue(other, "1")
                try await eventually { server.requests.count == round }
            }
            running.cancel()
            try await running.value
            try other.close()
            try store.close()
        }
    }

    @Test("What keeps a store from looking is logged when it begins, and when it has ended, and not at each look")
    func loggedOnce() async throws {
        try await withTemporaryFolder { folder in
            let log = RecordedLog(from: .notice)
            let looks = Mutex(0)
            var options = Self.options { looks.withLock { $0 += 1 } }
            options.longestWait = .milliseconds(50)
            options.logger = log.logger
            let store = try Store.open(at: folder, schema: try Schema(parsing: fixtureSchema), options: options)
            try await store.partition().enqueue(giveStars("1", 5))
            func count(_ text: String) -> Int { log.texts.withLock { texts in texts.count { $0.contains(text) } } }
            let (failure, end) = ("what other processes queue cannot be read", "queue can be read again")
            try OtherProgram(folder).run("ALTER TABLE mutation RENAME TO lost")
            try await eventually { count(failure) > 0 }
            let before = looks.withLock(\.self)
            try await eventually { looks.withLock(\.self) > before + 2 }
            #expect(count(failure) == 1 && count(end) == 0)
            try OtherProgram(folder).run("ALTER TABLE lost RENAME TO mutation")
            try await eventually { count(end) > 0 }
            #expect(count(failure) == 1)
            try store.close()
        }
    }

    @Test("A store looks for changes without a notification once a minute by default")
    func onceMinute() {
        #expect(Store.Options().longestWait == .seconds(60))
    }

    /// Lets a store that the system tells of no changes look for them until `isOver`; it calls `looked` after each look.
    private func followUnwatched(looked: @escaping @Sendable () -> Void, until isOver: () -> Bool) async throws {
        try await withTemporaryFolder { folder in
            let operations = OperationsStore(
                folder: folder, options: OperationsDatabase.Options(), longestWait: .seconds(3600))
            let partitions = OpenPartitions(
                operationsStore: operations, logger: Logger(label: "test"), openWatch: { _, _ in nil },
                lookedAtOthers: looked)
            partitions.followOthers()
            try await eventually { isOver() }
            await partitions.endFollowing()
            try operations.close()
        }
    }

    @Test("Where the system watches no folder a store looks again and again")
    func unwatched() async throws {
        let left = Countdown(5)
        try await followUnwatched(looked: { _ = left.take() }, until: { left.count == 0 })
    }

    @Test("A store looks for changes twelve times a second where the system watches no folder")
    func unwatchedPace() async throws {
        let looks = Mutex<[SuspendingClock.Instant]>([])
        try await followUnwatched(
            looked: { looks.withLock { $0.append(.now) } }, until: { looks.withLock { $0.count > 12 } })
        let times = looks.withLock(\.self)
        // A busy machine lengthens some of the pauses, so the shortest one counts.
        let shortest = try #require(zip(times, times.dropFirst()).map { $0.duration(to: $1) }.min())
        #expect(shortest > .milliseconds(60) && shortest < .milliseconds(140))
    }

    #if os(Linux)
    @Test(
        "What another process commits between a look and the wait after it is looked at",
        .enabled(if: ChildProgram.isBuilt, "\(ChildProgram.requirement)"))
    func between() async throws {
        try await withTemporaryFolder { folder in
            try OperationsDatabase(folder: folder).close()
            let left = Countdown(8)
            let failure = Mutex<(any Error)?>(nil)
            let (store, _) = try Self.open(folder) {
                guard left.take() else { return }
                do {
                    let child = try ChildProgram.start(folder, "drain", "1", input: Pipe.uninherited())
                    child.waitUntilExit()
                } catch { failure.withLock { $0 = error } }
            }
            try await eventually { left.count == 0 }
            if let error = failure.withLock({ $0 }) { throw error }
            try store.close()
        }
    }

    @Test(
        "What another process writes to the cache is told to a watcher, also where that process is killed",
        .enabled(if: ChildProgram.isBuilt, "\(ChildProgram.requirement)"), arguments: [true, false])
    func otherCache(hasQueue: Bool) async throws {
        try await withTemporaryFolder { folder in
            let place = folder.appending(path: "store")
            if hasQueue { try OperationsDatabase(folder: place).close() }
            let schema =
                "type Book { id: ID! title: String! pages: [Page!]! } type Page { text: String! } "
                + "type Query { books: [Book!]! }"
            let store = try Store.open(at: place, schema: try Schema(parsing: schema), options: Self.options())
            let app = try store.partition()
            let shelf = GraphQLOperation("{ books { id title pages { text } } }")
            var states = try app.watch(shelf).makeAsyncIterator()
            let said = folder.appending(path: "said")
            var seen: String?
            for round in 0..<5 {
                let child = try ChildProgram.start(place, "count", "\(round)", output: said)
                let lines = try ChildProgram.lines(of: said).count
                try await eventually { try ChildProgram.lines(of: said).count > lines + 3 }
                kill(child.processIdentifier, SIGKILL)
                await child.ended()
                let answer = try app.read(shelf, allowsPartial: true)
                let last = answer["books"]?[0]?["title"]?.string
                // The watcher comes to what is there now.
                while seen != last, let state = try await next(&states) {
                    seen = state.response?["books"]?[0]?["title"]?.string
                }
                #expect(seen == last)
            }
            try store.close()
        }
    }

    @Test("A process has the folder open while it commits, so that the kernel notifies others if it is killed")
    func openedBefore() async throws {
        try await withTemporaryFolder { folder in
            let (store, app) = try Self.open(folder)
            try await app.write(recipeList, json: soupAndBread("Soup"))
            let path = folder.resolvingSymlinksInPath().path
            let wasOpen = Mutex(false)
            // The closure runs before the commit ends.
            try await app.update(recipeList) { _ in
                let isOpen = try openFiles(below: folder).contains(path)
                wasOpen.withLock { $0 = isOpen }
            }
            #expect(wasOpen.withLock { $0 })
            #expect(try !openFiles(below: folder).contains(path))
            try store.close()
        }
    }

    @Test("A store looks for changes at most twelve times a second, however often other processes commit")
    func bounded() async throws {
        try await withTemporaryFolder { folder in
            try OperationsDatabase(folder: folder).close()
            let left = Countdown(1_000_000)
            let (store, _) = try Self.open(folder) { _ = left.take() }
            let begun = ContinuousClock.now
            let before = left.count
            for _ in 0..<100 {
                FolderNotice(folder.path).tell()
                try await Task.sleep(for: .milliseconds(3))
            }
            let looks = before - left.count
            let time = ContinuousClock.now - begun
            // The first look may come without a pause.
            #expect(looks <= 1 + Int(time / .milliseconds(80)))
            try await eventually { left.count < before }
            try store.close()
        }
    }

    @Test("A watch tells of notices once, and again after it was armed again")
    func armed() async throws {
        try await withTemporaryFolder { folder in
            let left = Countdown(1_000_000)
            let watch = try #require(CommitWatch(folder.path) { _ = left.take() })
            watch.arm()
            for _ in 0..<100 { FolderNotice(folder.path).tell() }
            try await eventually { left.count < 1_000_000 }
            FolderNotice(folder.path).tell()
            // The notice before is not told of.
            watch.arm()
            FolderNotice(folder.path).tell()
            try await eventually { left.count == 999_998 }
            await watch.close()
            await watch.close()
            #expect(CommitWatch(folder.appending(path: "missing").path, {}) == nil)
        }
    }

    @Test("A watch tells of a process that is killed between its commit and its notice")
    func killed() async throws {
        try await withTemporaryFolder { folder in
            let left = Countdown(1_000_000)
            let watch = try #require(CommitWatch(folder.path) { _ = left.take() })
            let (child, said) = (Process(), Pipe.uninherited())
            child.executableURL = URL(filePath: "/bin/sh")
            // A notice that was taken is an open folder.
            child.arguments = ["-c", "exec 3<\"$0\" && echo taken && exec sleep 3600", folder.path]
            child.standardOutput = said
            try child.start()
            try #require(String(decoding: said.fileHandleForReading.availableData, as: UTF8.self) == "taken\n")
            watch.arm()
            kill(child.processIdentifier, SIGKILL)
            await child.ended()
            try await eventually { left.count == 999_999 }
            await watch.close()
        }
    }
    #endif
}
