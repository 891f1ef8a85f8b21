import Foundation
import LarderTestSupport
import Synchronization
import Testing

@testable import Larder
@testable import LarderRecords

@Suite("Suspending, resuming and closing a store at the same time", .timeLimit(.minutes(10)))
struct SuspensionInterleavingTests {
    private static func options(
        waiting: Duration = .zero, looked: @escaping @Sendable () -> Void = {}
    ) -> Store.Options {
        var options = Store.Options()
        options.suspensionWait = waiting
        options.lockTimeout = .seconds(300)
        options.lookedAtOthers = looked
        return options
    }

    private let card = GraphQLFragment("fragment Card on Cook { name }")

    /// How far a suspension has come when something else happens.
    enum Stage: CaseIterable, CustomTestStringConvertible {
        /// An exchange is under way.
        case draining
        /// A read is under way.
        case closing

        var testDescription: String { self == .draining ? "while an exchange ends" : "while files are closed" }
    }

    /// Keeps a suspension at a stage while `body` runs, and for as long as `body` likes.
    private func held(
        at stage: Stage, within time: Duration = .seconds(300),
        _ body: (Store, Partition, Task<Void, any Error>, _ release: () -> Void) async throws -> Void
    ) async throws {
        let server = GatedServer(tellsRepeats: true)
        try await withOpenStore(server, options: Self.options()) { (folder, store, app) throws in
            try await app.write("Cook:1", card, ["name": "Ada"])
            let service = Task { try await app.run() }
            let (hasBegun, mayEnd) = (Flag(), Flag())
            switch stage {
            case .draining:
                try await app.enqueue(giveStars("1", 5))
                try await eventually { server.held.count == 1 }
            case .closing:
                Thread.detachNewThread {
                    try? app.records.generations.withSnapshot { _, _ in
                        hasBegun.set()
                        while !mayEnd.isSet { usleep(1_000) }
                    }
                }
                await hasBegun.wait()
            }
            let isOver = Flag()
            let suspending = Task {
                defer { isOver.set() }
                try await store.suspend(within: time)
            }
            try await eventually {
                // One that has little time may end before it is looked at.
                if isOver.isSet { return true }
                return switch stage {
                case .draining: store.suspension.isAsked
                case .closing: store.suspension.isClosing(store.suspension.count)
                }
            }
            let release = {
                mayEnd.set()
                for held in server.held { server.end(held.number, .success(GraphQLAnswer(rated("1", 5)))) }
            }
            try await body(store, app, suspending, release)
            service.cancel()
            release()
            _ = try? await service.value
            server.close()
            try store.close()
            try expectSound(folder)
        }
    }

    @Test("A store that is resumed while it is being suspended is open", arguments: Stage.allCases)
    func resumed(_ stage: Stage) async throws {
        try await held(at: stage) { store, app, suspending, release in
            try store.resume()
            await expectCode(.cancelled) { try await suspending.value }
            #expect(try app.read("Cook:1", card)["name"]?.string == "Ada")
            release()
            try await app.write("Cook:1", card, ["name": "Bea"])
            #expect(try app.read("Cook:1", card)["name"]?.string == "Bea")
            try store.resume()
            try await store.suspend(within: .seconds(300))
            await expectCode(.suspended) { _ = try app.read("Cook:1", card) }
            try store.resume()
        }
    }

    @Test("Of two calls that resume a store the second returns no sooner than the files are open")
    func resumedTwice() async throws {
        try await withOpenStore(ScriptedServer.away, options: Self.options()) { (_, store, app) throws in
            try await app.write("Cook:1", card, ["name": "Ada"])
            try await store.suspend(within: .seconds(300))
            // As a call that opens the files, and has not opened one.
            try #require(store.suspension.beginOpening() == .opening)
            let isOver = Flag()
            Thread.detachNewThread {
                try? store.resume()
                isOver.set()
            }
            // No signal reports that a call waits.
            try await Task.sleep(for: .milliseconds(100))
            #expect(!isOver.isSet)
            store.suspension.endOpening(isWhole: false)
            await isOver.wait()
            #expect(try app.read("Cook:1", card)["name"]?.string == "Ada")
        }
    }

    @Test("A task that is cancelled while it suspends a store leaves it open, at once", arguments: Stage.allCases)
    func cancelled(_ stage: Stage) async throws {
        try await held(at: stage) { store, app, suspending, release in
            suspending.cancel()
            // What holds the suspension goes on.
            await expectCode(.cancelled) { try await suspending.value }
            #expect(!store.suspension.isAsked)
            #expect(try app.read("Cook:1", card)["name"]?.string == "Ada")
            release()
            try await store.suspend(within: .seconds(300))
            try store.resume()
        }
    }

    @Test("A store that cannot be suspended in time is open", arguments: Stage.allCases)
    func late(_ stage: Stage) async throws {
        try await held(at: stage, within: .milliseconds(20)) { store, app, suspending, release in
            let error = await #expect(throws: LarderError.self) { try await suspending.value }
            // The runner may be late as well.
            let codes: [LarderError.Code] = stage == .draining ? [.timedOut] : [.timedOut, .recordsBusy]
            #expect(codes.contains { $0 == error?.code })
            #expect(!store.suspension.isAsked)
            #expect(try app.read("Cook:1", card)["name"]?.string == "Ada")
            release()
            try await store.suspend(within: .seconds(300))
            try store.resume()
        }
    }

    @Test("Closing a store that is being suspended ends the suspension with parked", arguments: Stage.allCases)
    func closed(_ stage: Stage) async throws {
        try await held(at: stage) { store, app, suspending, release in
            // What is under way ends as it would have.
            let closing = Task(executorPreference: OutsideExecutor()) { try store.close() }
            await expectCode(.parked) { try await suspending.value }
            release()
            try await closing.value
            await expectCode(.parked) { _ = try app.read("Cook:1", card) }
            await expectCode(.parked) { try await store.suspend() }
            try store.resume()
            await expectCode(.parked) { _ = try app.read("Cook:1", card) }
        }
    }

    @Test("A runner of a suspended store that is closed ends with parked, never with suspended")
    func closedRunners() async throws {
        for _ in 0..<8 {
            try await withOpenStore(ScriptedServer.rating(), options: Self.options()) { (_, store, app) throws in
                try await app.enqueue(giveStars("1", 5))
                let runners = (0..<4).map { _ in MutationRunner(app) }
                let services = runners.map { runner in Task { try await runner.run() } }
                try await eventually { runners.contains { $0.state == .running } }
                try await store.suspend(within: .seconds(300))
                try await eventually { runners.allSatisfy { $0.state == .suspended } }
                // Other tasks wake the runners all the time.
                let waking = Task {
                    while !Task.isCancelled {
                        store.operationsStore.changeSignal.notify()
                        await Task.yield()
                    }
                }
                try store.close()
                for service in services { await expectCode(.parked) { try await service.value } }
                waking.cancel()
                await waking.value
            }
        }
    }

    @Test("A runner that begins while the store is suspended goes on when it is resumed, or ends when it is closed")
    func begunRunners() async throws {
        let server = ScriptedServer.rating()
        try await withOpenStore(server, options: Self.options()) { (folder, store, app) throws in
            let receipt = try await app.enqueue(giveStars("1", 5))
            let storage = MemoryStorage()
            func begin() async throws -> (MutationRunner, Task<Void, any Error>, Task<Void, any Error>) {
                try await store.suspend(within: .seconds(300))
                let (runner, transfers) = (MutationRunner(app), TransferRunner(app, storage: storage))
                let services = (Task { try await runner.run() }, Task { try await transfers.run() })
                try await eventually { runner.state == .suspended && transfers.state == .suspended }
                return (runner, services.0, services.1)
            }
            let (runner, mutating, transferring) = try await begin()
            try store.resume()
            #expect(try await receipt.outcome(within: .seconds(300)).isApplied)
            try await eventually { runner.state == .running }
            mutating.cancel()
            transferring.cancel()
            try await mutating.value
            try await transferring.value
            // One that is cancelled ends without an error, as it does elsewhere.
            let (_, second, third) = try await begin()
            second.cancel()
            try await second.value
            try store.close()
            await expectCode(.parked) { try await third.value }
            try expectSound(folder)
        }
    }

    @Test("A runner that a suspension holds goes on when that is taken back, or given up", arguments: [true, false])
    func heldRunner(isTakenBack: Bool) async throws {
        let time = Duration.seconds(isTakenBack ? 300 : 2)
        try await held(at: .draining, within: time) { store, app, suspending, _ in
            let transfers = TransferRunner(app, storage: MemoryStorage())
            let transferring = Task { try await transfers.run() }
            // The suspension may be given up before the runner begins.
            try await eventually { transfers.state != .stopped }
            if isTakenBack { try store.resume() }
            await expectCode(isTakenBack ? .cancelled : .timedOut) { try await suspending.value }
            try await eventually { transfers.state == .running }
            transferring.cancel()
            try await transferring.value
        }
    }

    @Test("Resuming a store before a file was closed wakes a runner that nothing else wakes")
    func wokenRunner() async throws {
        let hasLooked = Flag()
        let options = Self.options(looked: { hasLooked.set() })
        try await withOpenStore(ScriptedServer.rating(), options: options) { (_, store, app) throws in
            _ = try store.operationsStore.database()
            // A look at what was committed wakes runners as well: the only one is over before there is a runner.
            app.core.followOthers()
            try await eventually { hasLooked.isSet }
            let work = try #require(store.suspension.begin())
            let suspending = Task { try await store.suspend(within: .seconds(300)) }
            try await eventually { store.suspension.isAsked }
            let transfers = TransferRunner(app, storage: MemoryStorage())
            let transferring = Task { try await transfers.run() }
            try await eventually { transfers.state == .suspended }
            try store.resume()
            await expectCode(.cancelled) { try await suspending.value }
            try await eventually { transfers.state == .running }
            transferring.cancel()
            try await transferring.value
            store.suspension.end(work)
        }
    }

    /// Runs `body` on a thread of its own, which it may keep.
    private static func thread(_ body: @escaping @Sendable () throws -> Void) -> Task<Void, any Error> {
        Task {
            try await withCheckedThrowingContinuation { continuation in
                Thread.detachNewThread { continuation.resume(with: Result(catching: body)) }
            }
        }
    }

    @Test("Reads that wait while a store cannot be suspended find the cache as it was")
    func waitingReads() async throws {
        let options = Self.options(waiting: .seconds(300))
        try await withOpenStore(ScriptedServer.rating(), options: options) { (folder, store, app) throws in
            try await app.write("Cook:1", card, ["name": "Ada"])
            let generation = app.records.generations.current.identity
            let (hasBegun, mayEnd, isOver) = (Flag(), Flag(), Flag())
            let holding = Self.thread {
                try app.records.generations.withSnapshot { _, _ in
                    hasBegun.set()
                    while !mayEnd.isSet { usleep(1_000) }
                }
            }
            await hasBegun.wait()
            // Threads of their own: Swift and Dispatch have few, which these would keep.
            let reading = (0..<2).map { _ in
                Self.thread { [card] in
                    while !isOver.isSet {
                        let name = try app.read("Cook:1", card)["name"]?.string
                        #expect(name == "Ada")
                    }
                }
            }
            for _ in 0..<5 {
                _ = await #expect(throws: LarderError.self) { try await store.suspend(within: .milliseconds(100)) }
            }
            isOver.set()
            for reader in reading { try await reader.value }
            mayEnd.set()
            try await holding.value
            #expect(app.records.generations.current.identity == generation)
            try store.close()
            try expectSound(folder)
        }
    }

    // MARK: Random interleavings

    private static let randomRuns = ProcessInfo.processInfo.environment["LARDER_SUSPENSIONS"].flatMap(Int.init) ?? 4

    @Test(
        "Random suspensions, resumptions, cancellations and reads leave a store that can be used",
        arguments: 0..<randomRuns)
    func random(_ index: Int) async throws {
        let seed = TestSeed.of("suspensions", index)
        let server = ScriptedServer.rating()
        do {
            try await withOpenStore(server, options: Self.options()) { (folder, store, app) throws in
                try await app.write("Cook:1", card, ["name": "Ada"])
                let service = Task { try await app.run() }
                try await withThrowingTaskGroup(of: Void.self) { group in
                    for number in 0..<4 {
                        group.addTask {
                            try await act(SeededNumbers(seed: seed, "\(number)"), store, app)
                        }
                    }
                    try await group.waitForAll()
                }
                try store.resume()
                #expect(try app.read("Cook:1", card)["name"]?.string != nil)
                let receipt = try await app.enqueue(giveStars("1", 5))
                #expect(try await receipt.outcome(within: .seconds(300)).isApplied)
                try await store.suspend(within: .seconds(300))
                #if os(Linux)
                #expect(try openFiles(below: folder) == [])
                #endif
                if index.isMultiple(of: 2) { try store.resume() }
                try store.close()
                await expectCode(.parked) { try await service.value }
                try expectSound(folder)
            }
        } catch {
            Issue.record("seed \(seed)")
            throw error
        }
    }

    /// Does random things, each of which may be refused for the reasons that are documented.
    private func act(_ numbers: SeededNumbers, _ store: Store, _ app: Partition) async throws {
        var numbers = numbers
        for _ in 0..<40 {
            let pause = Duration.microseconds(Int.random(in: 0...3_000, using: &numbers))
            do {
                switch Int.random(in: 0..<8, using: &numbers) {
                case 0, 1: try await store.suspend(within: .milliseconds(Int.random(in: 1...200, using: &numbers)))
                case 2:
                    let suspending = Task { try await store.suspend(within: .seconds(300)) }
                    try await Task.sleep(for: pause)
                    suspending.cancel()
                    try await suspending.value
                case 3, 4: try store.resume()
                case 5: _ = try app.read("Cook:1", card)
                case 6: try await app.write("Cook:1", card, ["name": "Bea"])
                default: try await app.enqueue(giveStars("1", 5))
                }
            } catch let error as LarderError
                where [.suspended, .cancelled, .timedOut, .recordsBusy, .operationsBusy].contains(error.code)
            {}
            try await Task.sleep(for: pause)
        }
    }
}
