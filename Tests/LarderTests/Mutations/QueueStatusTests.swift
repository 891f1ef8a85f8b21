import Foundation
import LarderOperations
import LarderTestSupport
import Testing

@testable import Larder

@Suite("The queue as a sequence", .timeLimit(.minutes(10)))
struct QueueStatusTests {
    private let rate = GraphQLOperation(
        #"mutation Rate($n: Int!) { rate(input: {recipe: "1", stars: $n}) { title } }"#, variables: ["n": 5])

    /// A server that is there, and refuses every mutation.
    private var refusing: ScriptedServer {
        ScriptedServer { _, _ in ScriptedServer.body(#"{"data":null,"errors":[{"message":"no"}]}"#) }
    }

    /// The first status that satisfies a condition.
    private func status(
        _ iterator: inout some AsyncIteratorProtocol<QueueStatus, Never>, _ condition: (QueueStatus) -> Bool
    ) async throws -> QueueStatus {
        while true {
            let status = try #require(await iterator.next(isolation: #isolation))
            if condition(status) { return status }
        }
    }

    @Test("What is queued, sent and set aside is counted by lane, and what was set aside newly is named once")
    func counted() async throws {
        try await withStoreFixture(refusing) { app in
            var iterator = app.queue.makeAsyncIterator()
            let empty = try #require(await iterator.next(isolation: #isolation))
            #expect(empty.lanes.isEmpty && empty.newlySetAside.isEmpty && empty.runner == .stopped)

            let first = try await app.enqueue(rate, options: MutationOptions(lane: "a"))
            let second = try await app.enqueue(rate, options: MutationOptions(lane: "b"))
            let queued = try await status(&iterator) { $0.unsentCount == 2 }
            #expect(queued.lanes == [MutationLane("a"): [.pending: 1], MutationLane("b"): [.pending: 1]])

            let service = Task { try await app.run() }
            defer { service.cancel() }
            var named: [MutationID] = []
            var runners: Set<RunnerState> = []
            _ = try await status(&iterator) { status in
                named += status.newlySetAside
                runners.insert(status.runner)
                return status.count(.deadLetter) == 2 && runners.contains(.running)
            }
            #expect(named.count == 2 && Set(named) == [first.id, second.id])

            try await app.discardMutation(first.id, dependents: .release)
            let less = try await status(&iterator) { $0.count(.deadLetter) == 1 }
            #expect(less.newlySetAside.isEmpty)
            #expect(less.lanes == [MutationLane("b"): [.deadLetter: 1]])
        }
    }

    @Test("The status counts a mutation under way as in flight in its lane, beside the pending ones")
    func underWay() async throws {
        let mayAnswer = Flag()
        let server = ScriptedServer(ScriptedServer.key) { _, request in
            await mayAnswer.wait()
            return ScriptedServer.done(request)
        }
        try await withStoreFixture(server) { app in
            for stars in 1...2 { try await app.enqueue(giveStars("1", stars), options: .init(lane: "a")) }
            let service = Task { [runner = quickRunner(app)] in try await runner.run() }
            try await eventually { server.requests.count == 1 }
            var iterator = app.queue.makeAsyncIterator()
            let status = try #require(await iterator.next(isolation: #isolation))
            #expect(status.lanes == [MutationLane("a"): [.inFlight: 1, .pending: 1]])
            #expect(status.unsentCount == 2)
            mayAnswer.set()
            service.cancel()
            try await service.value
        }
    }

    @Test("Of many runners it is the state of the one that works")
    func manyRunners() async throws {
        try await withStoreFixture(ScriptedServer.rating()) { app in
            let runners = (0..<6).map { _ in quickRunner(app) }
            let working = runners.map { runner in Task { try await runner.run() } }
            try await eventually {
                let states = runners.map(\.state)
                return states.contains(.running) && states.count { $0 == .standingBy } == 5
            }
            var iterator = app.queue.makeAsyncIterator()
            #expect(await iterator.next(isolation: #isolation)?.runner == .running)
            for task in working { task.cancel() }
            for task in working { try await task.value }
        }
    }

    @Test("A reader is told of the queue ten times a second at most")
    func atMostTen() async throws {
        try await withStoreFixture { app in
            var iterator = app.queue.makeAsyncIterator()
            _ = await iterator.next(isolation: #isolation)
            for number in 1...4 {
                try await app.enqueue(rate)
                let asked = SuspendingClock.now
                _ = try await status(&iterator) { $0.unsentCount == number }
                #expect(.now - asked >= .milliseconds(100))
            }
        }
    }

    @Test("A mutation that is replayed and set aside again between two looks is newly set aside once more")
    func again() async throws {
        try await withStoreFixture(refusing) { app in
            let receipt = try await app.enqueue(rate)
            try await MutationRunner(app).drain()
            var iterator = app.queue.makeAsyncIterator()
            #expect(await iterator.next(isolation: #isolation)?.newlySetAside == [receipt.id])
            try await app.replayMutation(receipt.id)
            try await MutationRunner(app).drain()
            #expect(await iterator.next(isolation: #isolation)?.newlySetAside == [receipt.id])
        }
    }

    @Test("The first status names what was set aside before the program was started again")
    func afterRestart() async throws {
        try await withTemporaryFolder { folder in
            let schema = try Schema(parsing: fixtureSchema)
            let store = try Store.open(at: folder, schema: schema)
            let app = try store.partition(server: refusing)
            let receipt = try await app.enqueue(rate)
            try await MutationRunner(app).drain()
            try store.close()

            let again = try Store.open(at: folder, schema: schema)
            var iterator = try again.partition().queue.makeAsyncIterator()
            #expect(await iterator.next(isolation: #isolation)?.newlySetAside == [receipt.id])
            try again.close()
            #expect(await iterator.next(isolation: #isolation) == nil)
        }
    }

    @Test("The queue's states report a mutation that another process queues, though this process queues none")
    func othersQueue() async throws {
        try await withOpenStore { folder, _, app in
            let states = QueueStates(core: app.core)
            let reader = Task {
                for await status in states where !status.lanes.isEmpty { return status.lanes }
                return [:]
            }
            let limit = Task {
                try await Task.sleep(for: .seconds(20))
                reader.cancel()
            }
            defer { limit.cancel() }
            // By then the stream has read the queue, and waits for a change.
            try await Task.sleep(for: .milliseconds(300))
            let other = try OperationsDatabase(folder: folder)
            _ = try await other.mutations.enqueue(
                MutationDraft(
                    partition: Store.unnamedPartition, lane: "other",
                    content: MutationContent(document: rate.document, variables: Array(#"{"n":5}"#.utf8)),
                    created: Date()))
            #expect(await reader.value == [MutationLane("other"): [.pending: 1]])
            try other.close()
        }
    }

    @Test("A queue that cannot be read is told of, with the counts that were read last")
    func unreadable() async throws {
        try await withTemporaryFolder { folder in
            let store = try Store.open(at: folder, schema: try Schema(parsing: fixtureSchema))
            let app = try store.partition()
            try await app.enqueue(rate)
            var iterator = app.queue.makeAsyncIterator()
            #expect(await iterator.next(isolation: #isolation)?.count(.pending) == 1)
            try OtherProgram(folder).run("ALTER TABLE mutation RENAME TO lost")
            let status = try await status(&iterator) { $0.error != nil }
            #expect(status.count(.pending) == 1)
            #expect(status.error?.code.rawValue.hasPrefix("operations.") == true)
            try OtherProgram(folder).run("ALTER TABLE lost RENAME TO mutation")
            let again = try await self.status(&iterator) { $0.error == nil }
            #expect(again.count(.pending) == 1)
            try? store.close()
        }
    }

    @Test("What a runner does is told also where nothing is queued")
    func runnerAlone() async throws {
        try await withStoreFixture(ScriptedServer.rating()) { app in
            var iterator = app.queue.makeAsyncIterator()
            #expect(await iterator.next(isolation: #isolation)?.runner == .stopped)
            let service = Task { try await app.run() }
            _ = try await status(&iterator) { $0.runner == .running }
            service.cancel()
            try await service.value
            _ = try await status(&iterator) { $0.runner == .stopped }
        }
    }

    @Test("Unsent is what waits and what is under way, and neither what was answered nor what was set aside")
    func unsent() {
        let status = QueueStatus(
            lanes: ["a": [.pending: 1, .acknowledged: 4], "b": [.inFlight: 2, .deadLetter: 8]], newlySetAside: [],
            runner: .stopped)
        #expect(status.unsentCount == 3)
        #expect(status.count(.acknowledged) == 4 && status.count(.applied) == 0)
    }

    @Test("Mutations are listed by their states: those of none are none")
    func byState() async throws {
        try await withStoreFixture { app in
            let receipt = try await app.enqueue(rate)
            #expect(try app.mutations().map(\.id) == [receipt.id])
            #expect(try app.mutations(in: [.pending, .deadLetter]).map(\.id) == [receipt.id])
            for states in [[], [.deadLetter], [.applied]] as [Set<MutationStatus.State>] {
                #expect(try app.mutations(in: states).isEmpty, "\(states)")
            }
        }
    }

    @Test("The status tells of the queue of its own partition alone, whatever waits or was set aside in another one")
    func ownPartition() async throws {
        try await withTemporaryFolder { folder in
            let store = try Store.open(at: folder, schema: try Schema(parsing: fixtureSchema))
            let parked = try await store.switch(to: backend("a"), server: refusing).partition
            try await parked.enqueue(rate)
            try await MutationRunner(parked).drain()
            #expect(try parked.mutations().map(\.state) == [.deadLetter])
            let app = try await store.switch(to: backend("b")).partition
            try await app.enqueue(rate, options: MutationOptions(lane: "b"))
            var iterator = app.queue.makeAsyncIterator()
            let status = try #require(await iterator.next(isolation: #isolation))
            #expect(status.lanes == [MutationLane("b"): [.pending: 1]])
            #expect(status.newlySetAside.isEmpty)
            try store.close()
        }
    }

    @Test("The first status names what was set aside in the order in which the mutations were queued")
    func setAsideInOrder() async throws {
        try await withStoreFixture(refusing) { app in
            var ids: [MutationID] = []
            for _ in 0..<3 { ids.append(try await app.enqueue(rate).id) }
            try await MutationRunner(app).drain()
            var iterator = app.queue.makeAsyncIterator()
            #expect(await iterator.next(isolation: #isolation)?.newlySetAside == ids)
        }
    }
}
