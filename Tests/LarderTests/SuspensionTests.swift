import Foundation
import LarderOperations
import LarderTestSupport
import Synchronization
import Testing

@testable import Larder
@testable import LarderRecords

@Suite("A store is suspended and resumed", .timeLimit(.minutes(10)))
struct SuspensionTests {
    private static func options(waiting: Duration = .zero) -> Store.Options {
        var options = Store.Options()
        options.suspensionWait = waiting
        options.lockTimeout = .seconds(300)
        return options
    }

    /// Works on the store as another process would, while it is suspended.
    private func elsewhere(_ folder: URL, _ body: (Partition) async throws -> Void) async throws {
        let store = try Store.open(at: folder, schema: try Schema(parsing: fixtureSchema), options: Self.options())
        try await body(try store.partition())
        try store.close()
    }

    private let card = GraphQLFragment("fragment Card on Cook { name }")

    #if os(Linux)
    @Test("A suspended store has no file open, although runners, watchers and a session are there")
    func descriptors() async throws {
        try await withOpenStore(ScriptedServer.rating(), options: Self.options()) { (folder, store, app) throws in
            let service = Task { try await app.run(RunOptions(storage: MemoryStorage())) }
            var watch = try app.watch(recipeList).makeAsyncIterator()
            _ = try await next(&watch)
            _ = try app.session.state
            let receipt = try await app.enqueue(giveStars("1", 5))
            _ = try await receipt.outcome(within: .seconds(300))
            _ = try app.read(recipeList, allowsPartial: true)
            #expect(try !openFiles(below: folder).isEmpty)
            try await store.suspend(within: .seconds(300))
            #expect(try openFiles(below: folder) == [])
            try store.resume()
            let second = try await app.enqueue(giveStars("1", 4))
            #expect(try await second.outcome(within: .seconds(300)).isApplied)
            service.cancel()
            try await service.value
            try store.close()
            try expectSound(folder)
        }
    }
    #endif

    @Test("A refresh that has ended keeps no suspension waiting")
    func refreshed() async throws {
        let identities = InMemoryIdentityProvider(lifetime: .zero)
        var options = Store.Options()
        options.keys = InMemoryKeyProvider()
        options.identityProvider = { _ in identities }
        try await withOpenStore(options: options) { (_, store, app) throws in
            try await app.session.signIn(identities.signIn("ada"), within: soon)
            _ = try await app.session.credentials(within: soon)
            #expect(identities.refreshes == 1)
            try await store.suspend(within: .seconds(60))
            try store.resume()
        }
    }

    @Test("Reads and writes of a suspended store throw suspended, and go on after resume")
    func refused() async throws {
        try await withOpenStore(ScriptedServer.rating(), options: Self.options()) { (folder, store, app) throws in
            try await app.write("Cook:1", card, ["name": "Ada"])
            try await app.enqueue(giveStars("1", 5))
            try await store.suspend(within: .seconds(300))
            await expectCode(.suspended) { _ = try app.read("Cook:1", card) }
            await expectCode(.suspended) { try await app.write("Cook:1", card, ["name": "Bea"]) }
            await expectCode(.suspended) { try await app.enqueue(giveStars("1", 4)) }
            await expectCode(.suspended) { _ = try app.mutations(in: [.pending]) }
            await expectCode(.suspended) { _ = try await app.fetch(recipeList) }
            await expectCode(.suspended) { _ = try store.partition() }
            await expectCode(.suspended) { try await store.suspend() }
            try store.resume()
            try store.resume()
            #expect(try app.read("Cook:1", card)["name"]?.string == "Ada")
            #expect(try app.mutations(in: [.pending]).count == 1)
            try await app.write("Cook:1", card, ["name": "Bea"])
            #expect(try app.read("Cook:1", card)["name"]?.string == "Bea")
            try store.close()
            await expectCode(.parked) { try await store.suspend() }
            try expectSound(folder)
        }
    }

    @Test("Calls wait for resume where the program has chosen that")
    func waiting() async throws {
        try await withOpenStore(options: Self.options(waiting: .seconds(300))) { (_, store, app) throws in
            try await app.write("Cook:1", card, ["name": "Ada"])
            try await store.suspend(within: .seconds(300))
            let begun = Flag()
            // The call keeps its thread, which must be none of Swift's few.
            let reading = Task(executorPreference: OutsideExecutor()) { [card] in
                begun.set()
                return try app.read("Cook:1", card)["name"]?.string
            }
            let queueing = Task { try await app.enqueue(giveStars("1", 5)) }
            let writing = Task { [card] in try await app.write("Cook:2", card, ["name": "Bea"]) }
            await begun.wait()
            try store.resume()
            #expect(try await reading.value == "Ada")
            try await writing.value
            let receipt = try await queueing.value
            #expect(try receipt.status()?.state == .pending)
        }
    }

    @Test("A mutation that is under way is answered before the store is suspended, and not sent again")
    func answered() async throws {
        let server = GatedServer(tellsRepeats: false)
        try await withOpenStore(server, options: Self.options()) { (folder, store, app) throws in
            let service = Task { try await app.run() }
            let receipts = [
                try await app.enqueue(giveStars("1", 5)), try await app.enqueue(giveStars("2", 4)),
            ]
            try await eventually { server.held.count == 1 }
            let isSuspended = Flag()
            let suspending = Task {
                try await store.suspend(within: .seconds(300))
                isSuspended.set()
            }
            try await eventually { store.suspension.isAsked }
            #expect(!isSuspended.isSet)
            server.end(try #require(server.held.first).number, .success(GraphQLAnswer(rated("1", 5))))
            try await suspending.value
            #expect(server.held.isEmpty)
            let outcome = Task { try await receipts[1].outcome(within: .seconds(300)) }
            try store.resume()
            try await eventually { server.held.count == 1 }
            server.end(try #require(server.held.first).number, .success(GraphQLAnswer(rated("2", 4))))
            #expect(try await outcome.value.isApplied)
            #expect(try receipts[0].status()?.state == .applied)
            service.cancel()
            try await service.value
            try store.close()
            try expectSound(folder)
        }
    }

    @Test("An exchange that does not end in time is broken off, and sent again with the same key")
    func brokenOff() async throws {
        let server = hangingFirst(.header(name: "Idempotency-Key"))
        try await withOpenStore(server, options: Self.options()) { (_, store, app) throws in
            let service = Task { try await app.run() }
            let receipt = try await app.enqueue(giveStars("1", 5))
            try await eventually { server.requests.count == 1 }
            try await store.suspend(within: .seconds(40))
            try store.resume()
            #expect(try await receipt.outcome(within: .seconds(300)).isApplied)
            let sent = server.requests.map { $0.headers.first { $0.name == "Idempotency-Key" }?.value }
            #expect(sent.count == 2 && sent[0] != nil && sent[0] == sent[1])
            service.cancel()
            try await service.value
        }
    }

    @Test("A suspension breaks work off when half of its time is over, and not before")
    func brokenOffByHalf() async throws {
        let suspension = Suspension()
        let brokenOff = Mutex<SuspendingClock.Instant?>(nil)
        let begunWork = suspension.begin { brokenOff.withLock { $0 = SuspendingClock.now } }
        let work = try #require(begunWork)
        let number = try await suspension.ask()
        let begun = SuspendingClock.now
        let hasEnded = try await suspension.workHasEnded(number, within: .milliseconds(400))
        #expect(!hasEnded)
        let found = brokenOff.withLock { $0 }
        let end = try #require(found)
        #expect(end - begun >= .milliseconds(200))
        suspension.end(work)
    }

    @Test("After resume watchers and runners find what another process has written, queued and compacted")
    func changedElsewhere() async throws {
        let server = ScriptedServer.rating()
        try await withOpenStore(server, options: Self.options()) { (folder, store, app) throws in
            try await app.write(recipeList, json: Array(#"{"recipes":[{"id":"1","title":"Soup","author":null}]}"#.utf8))
            try await app.enqueue(giveStars("9", 1))
            let service = Task { try await app.run() }
            var watch = try app.watch(recipeList).makeAsyncIterator()
            #expect(title(try await next(&watch)) == "Soup")
            try await store.suspend(within: .seconds(300))
            var queued: MutationReceipt?
            try await elsewhere(folder) { other in
                try await other.write(
                    recipeList, json: Array(#"{"recipes":[{"id":"1","title":"Bread","author":null}]}"#.utf8))
                queued = try await other.enqueue(giveStars("2", 4))
                _ = try await other.records.compact()
            }
            try store.resume()
            var last: WatchState?
            repeat { last = try await next(&watch) } while title(last) != "Bread"
            let id = try #require(queued).id
            #expect(try await app.mutation(id).outcome(within: .seconds(300)).isApplied)
            #expect(server.effects.contains("2 4"))
            service.cancel()
            try await service.value
            try store.close()
            try expectSound(folder)
        }
    }

    private func title(_ state: WatchState?) -> String? {
        state?.response?["recipes"]?.elements.first?["title"]?.string
    }

    @Test("After resume a watcher of a cache that was cleared elsewhere shows the empty cache")
    func clearedElsewhere() async throws {
        try await withOpenStore(options: Self.options()) { (folder, store, app) throws in
            try await app.write("Cook:1", card, ["name": "Ada"])
            var watch = try app.watch("Cook:1", card).makeAsyncIterator()
            #expect(try await next(&watch)?.response?["name"]?.string == "Ada")
            try await store.suspend(within: .seconds(300))
            try await elsewhere(folder) { other in _ = try await other.records.clear() }
            try store.resume()
            var last: WatchState?
            repeat { last = try await next(&watch) } while last?.response?["name"]?.string == "Ada"
            #expect(last?.error == nil)
        }
    }

    @Test("A watcher that begins while the store is suspended says so, and shows the data after resume")
    func watchedMeanwhile() async throws {
        try await withOpenStore(options: Self.options()) { (_, store, app) throws in
            try await app.write("Cook:1", card, ["name": "Ada"])
            try await store.suspend(within: .seconds(300))
            var watch = try app.watch("Cook:1", card).makeAsyncIterator()
            #expect(try await next(&watch)?.error?.code == .suspended)
            try store.resume()
            var last: WatchState?
            repeat { last = try await next(&watch) } while last?.response?["name"]?.string != "Ada"
            #expect(last?.error == nil)
        }
    }

    @Test("A read that is under way keeps the store from being suspended, which then goes on")
    func busy() async throws {
        try await withOpenStore(options: Self.options()) { (_, store, app) throws in
            try await app.write("Cook:1", card, ["name": "Ada"])
            let (hasBegun, mayEnd) = (Flag(), Flag())
            Thread.detachNewThread {
                try? app.records.generations.withSnapshot { _, _ in
                    hasBegun.set()
                    while !mayEnd.isSet { usleep(1_000) }
                }
            }
            await hasBegun.wait()
            await expectCode(.recordsBusy) { try await store.suspend(within: .milliseconds(10)) }
            mayEnd.set()
            #expect(try app.read("Cook:1", card)["name"]?.string == "Ada")
        }
    }

    @Test("The runners and watchers of a suspended store look for nothing")
    func idle() async throws {
        let looks = Mutex(0)
        var options = Store.Options()
        // Whatever looks for something to do asks for the time.
        options.now = {
            looks.withLock { $0 += 1 }
            return Date()
        }
        // A runner with something to carry out looks again and again.
        let server = ScriptedServer { _, _ in .failure(.away) }
        try await withOpenStore(server, options: options) { (_, store, app) throws in
            try await app.enqueue(giveStars("1", 5))
            let service = Task { try await app.run(RunOptions(storage: MemoryStorage())) }
            var watch = try app.watch(recipeList).makeAsyncIterator()
            _ = try await next(&watch)
            try await eventually { looks.withLock { $0 > 8 } }
            try await store.suspend(within: .seconds(300))
            let before = looks.withLock { $0 }
            // Four of the pauses after which each runner looks while the store is open.
            try await Task.sleep(for: .seconds(1))
            #expect(looks.withLock { $0 } == before)
            service.cancel()
            try await service.value
        }
    }

    @Test("Closing a suspended store ends its runners with parked")
    func closed() async throws {
        try await withOpenStore(ScriptedServer.rating(), options: Self.options()) { (folder, store, app) throws in
            try await app.enqueue(giveStars("1", 5))
            let runner = MutationRunner(app)
            let service = Task { try await runner.run() }
            try await eventually { runner.state == .running }
            try await store.suspend(within: .seconds(300))
            try await eventually { runner.state == .suspended }
            try store.close()
            await expectCode(.parked) { try await service.value }
            await expectCode(.parked) { _ = try app.read(recipeList) }
            try expectSound(folder)
        }
    }

    @Test("A runner that is cancelled while the store is suspended ends")
    func cancelled() async throws {
        try await withOpenStore(ScriptedServer.rating(), options: Self.options()) { (_, store, app) throws in
            try await app.enqueue(giveStars("1", 5))
            let runner = MutationRunner(app)
            let service = Task { try await runner.run() }
            try await eventually { runner.state == .running }
            try await store.suspend(within: .seconds(300))
            service.cancel()
            try await service.value
            try store.resume()
        }
    }

    @Test("A wait is told how long it has sat out a suspension")
    func deadlines() async throws {
        // On a loaded machine the opening may come before the wait begins; a later try meets it.
        for _ in 0..<50 {
            let suspension = Suspension()
            _ = try await suspension.ask()
            let opening = Task {
                try await Task.sleep(for: .milliseconds(50))
                _ = suspension.beginOpening()
            }
            let start = SuspendingClock.now
            let told = await suspension.sitOut()
            #expect(told <= SuspendingClock.now - start)
            try await opening.value
            if told >= .milliseconds(25) { return }
        }
        Issue.record("no wait was told how long it had sat out the suspension")
    }

    @Test("The time of a wait for the end of a mutation or a transfer stands still while the store is suspended")
    func waits() async throws {
        try await withTransferFixture { fixture in
            let (file, _) = try fixture.file(bytes: 100)
            let upload = try await fixture.app.transfers.upload(file, to: TransferFixture.location)
            let receipt = try await fixture.app.enqueue(giveStars("1", 5))
            try await fixture.store.suspend(within: .seconds(300))
            func end(_ code: LarderError.Code, _ wait: @escaping @Sendable () async throws -> Void)
                -> Task<SuspendingClock.Instant, Never>
            {
                Task {
                    await expectCode(code, wait)
                    return .now
                }
            }
            let ends = [
                end(.unsettled) { _ = try await receipt.outcome(within: .seconds(1)) },
                end(.unfinishedTransfer) { _ = try await upload.outcome(within: .seconds(1)) },
            ]
            try await Task.sleep(for: .seconds(1))
            let resumption = SuspendingClock.now
            try fixture.store.resume()
            // At once, were their time over.
            for end in ends { #expect(await end.value - resumption > .milliseconds(500)) }
        }
    }
}

@Suite(
    "A suspended process beside others", .enabled(if: ChildProgram.isBuilt, "\(ChildProgram.requirement)"),
    .timeLimit(.minutes(10)))
struct SuspendedProcessTests {
    @Test("Another process finds no lock of a suspended one, which is killed, and the next opening walks nothing")
    func killed() async throws {
        try await withTemporaryFolder { folder in
            let (place, said) = (folder.appending(path: "store"), folder.appending(path: "said"))
            let ledger = folder.appending(path: "ledger")
            let child = try ChildProgram.start(
                place, ["suspend", ledger.path, "telling", "7", "3", "0"], output: said)
            try await eventually { try ChildProgram.lines(of: said).contains("suspended") }
            #if os(Linux)
            let locks = try String(contentsOfFile: "/proc/locks", encoding: .utf8).split(separator: "\n")
            #expect(!locks.contains { $0.split(separator: " ").contains("\(child.processIdentifier)") })
            let descriptors = "/proc/\(child.processIdentifier)/fd"
            for number in try FileManager.default.contentsOfDirectory(atPath: descriptors) {
                let path = try? FileManager.default.destinationOfSymbolicLink(atPath: "\(descriptors)/\(number)")
                #expect(path?.hasPrefix(place.resolvingSymlinksInPath().path) != true)
            }
            #endif
            var options = Store.Options()
            options.lockTimeout = .zero
            let schema = try Schema(parsing: Self.schema)
            let store = try Store.open(at: place, schema: schema, options: options)
            let app = try store.partition()
            #expect(!app.records.generations.current.environment.wasVerified)
            #expect(try app.mutations(in: [.pending]).count == 3)
            _ = try await app.records.compact()
            // The locks of the runner and of all that changes the store as a whole.
            let runner = MutationRunner(try store.partition(server: ScriptedServer.away))
            let service = Task { try await runner.run() }
            try await eventually { ![.standingBy, .stopped].contains(runner.state) }
            service.cancel()
            try await service.value
            try store.close()
            let backup = folder.appending(path: "backup")
            _ = try StoreBackup.make(of: place, into: backup)
            kill(child.processIdentifier, SIGKILL)
            await child.ended()
            let again = try Store.open(at: place, schema: schema)
            let reopened = try again.partition()
            #expect(!reopened.records.generations.current.environment.wasVerified)
            #expect(try reopened.mutations(in: [.pending]).count == 3)
            try again.close()
            try expectSound(place)
        }
    }

    private static let schema = """
        type Recipe { id: ID! stars: Int! }
        type Query { recipe(id: ID!): Recipe }
        type Mutation { rate(recipe: ID!, stars: Int!): Recipe! }
        """

    @Test("A store that was not closed cleanly is stamped when it is suspended, also where nothing was written since")
    func stamped() async throws {
        try await withTemporaryFolder { folder in
            let said = folder.appending(path: "said")
            let place = folder.appending(path: "store")
            let child = try ChildProgram.start(place, "count", "5", output: said)
            try await eventually { try ChildProgram.lines(of: said).count > 3 }
            kill(child.processIdentifier, SIGKILL)
            await child.ended()
            // It may have been killed right after a compaction, which leaves a stamp.
            let caches = place.appending(path: "records")
            for path in try FileManager.default.subpathsOfDirectory(atPath: caches.path)
            where path.hasSuffix("clean.stamp") {
                try FileManager.default.removeItem(at: caches.appending(path: path))
            }
            let schema = try Schema(
                parsing: """
                    type Book { id: ID! title: String! pages: [Page!]! }
                    type Page { text: String! }
                    type Query { books: [Book!]! }
                    """)
            let store = try Store.open(at: place, schema: schema)
            let app = try store.partition()
            #expect(app.records.generations.current.environment.wasVerified)
            try await store.suspend(within: .seconds(300))
            try store.resume()
            #expect(!app.records.generations.current.environment.wasVerified)
            let isEpochDue = app.records.generations.current.mayHaveLostCommits.load(ordering: .relaxed)
            #expect(!isEpochDue)
            try store.close()
        }
    }
}
