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

    @Test("A switch that gives up what is pending gives up nothing of the partition that it enters, or of a third")
    func discardedOfOne() async throws {
        try await withOperations { database in
            var ids: [UUID] = []
            for name in ["c", "b", "a"] {
                try await database.enter(environment(name), as: "p\(name)")
                ids.append(try await database.enqueue(draft(in: "p\(name)")))
            }
            let report = try await database.enter(environment("b"), as: "unused", leaving: .discard)
            #expect(report.discarded == 1 && report.to?.after == SwitchReport.Work([.pending: 1]))
            #expect(try ids.map { try database.state($0) } == [.pending, .pending, nil])
        }
    }

    /// A new transfer of a partition.
    private func transfer(_ kind: TransferDraft.Kind, in partition: String) -> TransferDraft {
        TransferDraft(
            partition: partition, kind: kind, bucket: "media", key: "k", path: "/file-\(partition)-\(kind)",
            source: kind == .upload ? FileIdentity(device: 1, inode: 1, size: 1, modified: 1) : nil, created: noon)
    }

    @Test("What was parked in one partition stays there when the work of another is given up, or carried along")
    func parkedElsewhere() async throws {
        for work in [PendingWork.discard, .carry] {
            try await withOperations { database in
                try await database.enter(environment("a"), as: "pa")
                let parked = try await database.enqueue(draft(in: "pa"))
                let download = TransferDraft(
                    partition: "pa", kind: .download, bucket: "media", key: "k", path: "/file", created: noon)
                try await database.transfers.enqueue([download])
                try await database.enter(environment("b"), as: "pb")
                let left = try await database.enqueue(draft(in: "pb"))
                let report = try await database.enter(environment("c"), as: "pc", leaving: work)
                #expect(report.carried + report.discarded == 1)
                #expect(report.carriedTransfers + report.discardedTransfers == 0)
                #expect(try database.mutation(parked)?.partition == "pa")
                #expect(try database.transfers.find(download.id)?.state == .pending)
                #expect(try database.mutation(left)?.partition == (work == .carry ? "pc" : nil))
            }
        }
    }
}
