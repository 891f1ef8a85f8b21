import Foundation
import Testing

@testable import LarderOperations

@Suite("What becomes of pending work at a switch", .timeLimit(.minutes(10)))
struct PendingWorkTests {
    /// Runs `body` with a mutation whose answer is not stored, and the next of its lane.
    private func withAnswered(
        _ body: (_ database: OperationsDatabase, _ answered: UUID, _ next: UUID) async throws -> Void
    ) async throws {
        try await withOperations { database in
            try await database.enter(environment("a"), as: "pa")
            let answered = try await database.enqueue(draft("lane", in: "pa"))
            let next = try await database.enqueue(draft("lane", in: "pa"))
            let attempt = try await database.begin(answered).attempt
            try await database.mutations.answer(attempt, json("{}"), now: noon)
            try await body(database, answered, next)
        }
    }

    @Test("A mutation whose answer is not stored stays with its partition, and the rest of its lane is carried along")
    func answered() async throws {
        try await withAnswered { database, answered, next in
            let report = try await database.enter(environment("b"), as: "pb", leaving: .carry)
            #expect(report.carried == 1)
            #expect(report.from?.after == SwitchReport.Work([.acknowledged: 1]))
            #expect(try database.mutation(answered)?.partition == "pa")
            #expect(try database.mutation(next)?.partition == "pb")
            try await database.mutations.settle(answered, now: noon)
            #expect(try database.outcome(answered)?.partition == "pa")
        }
    }

    @Test("A switch that gives up what is pending leaves a mutation whose answer is not stored, which settles later")
    func answeredBesideDiscarded() async throws {
        try await withAnswered { database, answered, next in
            let report = try await database.enter(environment("b"), as: "pb", leaving: .discard)
            #expect(report.discarded == 1)
            #expect(report.from?.after == SwitchReport.Work([.acknowledged: 1]))
            #expect(try database.outcome(next)?.kind == .discarded)
            try await database.mutations.settle(answered, now: noon)
            #expect(try database.outcome(answered)?.kind == .applied)
        }
    }

    @Test("A pending mutation that an earlier attempt may have carried out is discarded, and its outcome says so")
    func doubtful() async throws {
        try await withOperations { database in
            try await database.enter(environment("a"), as: "pa")
            let id = try await database.enqueue(draft("lost", in: "pa"))
            let attempt = try await database.begin(id).attempt
            try await database.mutations.retryLater(
                attempt, at: nil, MutationFailure(.outcomeUnknown, message: "it failed", time: noon), now: noon)
            let report = try await database.enter(environment("b"), as: "pb", leaving: .discard)
            #expect(report.discarded == 1)
            #expect(report.from?.before == SwitchReport.Work([.pending: 1]))
            #expect(report.from?.after == SwitchReport.Work())
            #expect(try database.outcome(id)?.kind == .discarded)
        }
    }
}
