import Foundation
import LarderOperations
import LarderTestSupport
import Synchronization
import Testing

@testable import Larder
@testable import LarderRecords

/// Answers on their way from the lanes to the task that stores them, by themselves.
@Suite("Answers wait to be stored together", .timeLimit(.minutes(2)))
struct AnswerBatchTests {
    /// Fills the batch, and has one lane wait for room.
    private func withWaitingLane(_ body: (AnswerBatch, Task<Void, Never>, Flag) async throws -> Void) async throws {
        try await withStoreFixture { app in
            let receipt = try await app.enqueue(giveStars("1", 1))
            guard case .present(let mutation) = try app.core.operationsStore.database().mutations.find(receipt.id.uuid)
            else { throw Silence() }
            let (batch, hasGoneOn) = (AnswerBatch(), Flag())
            // Each says that another follows, so that none of them is due.
            let answer = NotedAnswer(mutation: mutation, isFollowed: true)
            for _ in 0..<127 { await batch.add(answer) }
            let lane = Task {
                await batch.add(answer)
                hasGoneOn.set()
            }
            // The lane can be seen to wait only by its not going on.
            try await Task.sleep(for: .milliseconds(100))
            #expect(!hasGoneOn.isSet)
            try await body(batch, lane, hasGoneOn)
            await lane.value
        }
    }

    @Test("A lane that is faster than the cache waits for room, which it has when what waits is taken")
    func room() async throws {
        try await withWaitingLane { batch, _, _ in #expect(await batch.next()?.count == 128) }
    }

    @Test("The close lets lanes go on that wait for room; what waits is still given out, and then nothing")
    func close() async throws {
        try await withWaitingLane { batch, lane, _ in
            batch.close()
            await lane.value
            #expect(await batch.next()?.count == 128)
            #expect(await batch.next() == nil)
        }
    }

    private func withMutation(_ body: (Mutation) async throws -> Void) async throws {
        try await withStoreFixture { app in
            try await app.enqueue(giveStars("1", 1))
            try await body(try #require(try app.core.operationsStore.database().mutations.list().first))
        }
    }

    @Test("An answer waits twenty milliseconds for the next answer of its lane")
    func followed() async throws {
        try await withMutation { mutation in
            let batch = AnswerBatch()
            let began = SuspendingClock.now
            await batch.add(NotedAnswer(mutation: mutation, isFollowed: true))
            #expect(await batch.next()?.count == 1)
            #expect(began.duration(to: .now) >= .milliseconds(20))
        }
    }

    @Test("Answers are given out in the order in which they came")
    func ordered() async throws {
        try await withMutation { mutation in
            let batch = AnswerBatch()
            for isFollowed in [true, true, false] {
                await batch.add(NotedAnswer(mutation: mutation, isFollowed: isFollowed))
            }
            #expect(await batch.next()?.map(\.isFollowed) == [true, true, false])
        }
    }

    @Test("The last answer of a lane waits for no other")
    func last() async throws {
        try await withMutation { mutation in
            let batch = AnswerBatch()
            // The shortest of many waits counts, since the machine may be busy.
            var shortest = Duration.seconds(3600)
            for _ in 0..<20 {
                let began = SuspendingClock.now
                await batch.add(NotedAnswer(mutation: mutation))
                #expect(await batch.next()?.count == 1)
                shortest = min(shortest, began.duration(to: .now))
            }
            #expect(shortest < .milliseconds(20))
        }
    }

    @Test("Answers that wait together are stored in one commit of the cache, and settled in one of the queue")
    func oneCommit() async throws {
        try await withStoreFixture { app in
            let database = try app.core.operationsStore.database()
            let queue = database.mutations
            for stars in 1...3 {
                let lane = MutationLane("\(stars)")
                let receipt = try await app.enqueue(giveStars("1", stars), options: .init(lane: lane))
                let begun = try await queue.begin(receipt.id.uuid, owner: "me", now: Date())
                try await queue.answer(begun.attempt, Array(rated("1", stars).utf8), now: Date())
            }
            let steps = Mutex<[MutationRunner.KillPoint]>([])
            var options = MutationRunner.Options()
            options.reached = { step in steps.withLock { $0.append(step) } }
            let attempts = AttemptRunner(
                core: app.core, queue: queue, transport: ScriptedServer.away, owner: "me", options: options,
                executor: OutsideExecutor())
            for mutation in try queue.list() { await attempts.answers.add(NotedAnswer(mutation: mutation)) }
            attempts.answers.close()
            let before = database.commitCount
            let environment = app.records.generations.current.environment
            let commit = try environment.statistics().transaction
            try await attempts.storeAnswers()
            #expect(database.commitCount == before + 1)
            #expect(try environment.statistics().transaction == commit + 1)
            #expect(steps.withLock(\.self) == [.stored, .stored, .stored, .settled, .settled, .settled])
            #expect(try app.mutations().isEmpty)
        }
    }

    @Test("The errors of each mutation are kept with its outcome, also where several answers are stored together")
    func errorsOfEach() async throws {
        try await withStoreFixture(schema: schemaOfPartialFailure) { app in
            let queue = try app.core.operationsStore.database().mutations
            var receipts: [MutationReceipt] = []
            for stars in 1...3 {
                let lane = MutationLane("\(stars)")
                receipts.append(try await app.enqueue(giveStarsToTwo(stars), options: .init(lane: lane)))
                let begun = try await queue.begin(receipts[stars - 1].id.uuid, owner: "me", now: Date())
                let answer = """
                    {"data":{"first":{"__typename":"Recipe","id":"1","rating":\(stars)},"second":null},
                     "errors":[{"message":"no \(stars)","path":["second"]}]}
                    """
                try await queue.answer(begun.attempt, Array(answer.utf8), now: Date())
            }
            let attempts = AttemptRunner(
                core: app.core, queue: queue, transport: ScriptedServer.away, owner: "me",
                options: MutationRunner.Options(), executor: OutsideExecutor())
            for mutation in try queue.list() { await attempts.answers.add(NotedAnswer(mutation: mutation)) }
            attempts.answers.close()
            try await attempts.storeAnswers()
            for (stars, receipt) in zip(1...3, receipts) {
                #expect(try receipt.status()?.errors.map(\.message) == ["no \(stars)"])
            }
        }
    }
}
