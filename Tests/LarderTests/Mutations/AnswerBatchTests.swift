import Foundation
import LarderOperations
import LarderTestSupport
import Testing

@testable import Larder

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
}
