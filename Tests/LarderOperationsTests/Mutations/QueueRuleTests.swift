import Foundation
import GRDB
import Testing

@testable import LarderOperations

/// What is remembered of mutations that are over, and what later ones may rely on.
@Suite("What the queue remembers", .timeLimit(.minutes(10)))
struct QueueRuleTests {
    @Test("A settled mutation of another partition is no dependency either")
    func foreignSettled() async throws {
        try await withOperations { database in
            let foreign = try await database.enqueue(draft(in: "other"))
            try await database.complete(foreign)
            await expectFailure(.invalid) { _ = try await database.enqueue(draft(dependencies: [foreign])) }
            await expectFailure(.invalid) {
                _ = try await database.mutations.enqueue([draft(), draft(dependencies: [foreign])])
            }
            #expect(try database.mutations.list(MutationFilter(partition: app)) == [])
        }
    }

    @Test("A mutation of another partition that is queued there still is no dependency")
    func foreignQueued() async throws {
        try await withOperations { database in
            let foreign = try await database.enqueue(draft(in: "other"))
            await expectFailure(.invalid) { _ = try await database.enqueue(draft(dependencies: [foreign])) }
            #expect(try database.mutations.list(MutationFilter(partition: app)) == [])
        }
    }

    @Test("What a mutation touches is not known any more once a real id has taken the place of a temporary one")
    func touchedAfterRealIDs() async throws {
        try await withOperations { database in
            let id = TemporaryID()
            let first = try await database.enqueue(draft(variables: #"{"id":"\#(id.text)"}"#, temporaryIDs: [id]))
            try await database.complete(first, temporaryIDs: [id: "r1"])
            var second = draft(
                variables: #"{"id":"\#(id.text)"}"#,
                optimistic: #"{"rename":{"__typename":"Dish","id":"\#(id.text)","name":"soup"}}"#)
            second.touched = [1, 2, 3]
            let stored = try await database.mutations.enqueue(second)
            #expect(
                stored.content.optimisticResponse.map { String(decoding: $0, as: UTF8.self) }?.contains("r1") == true)
            #expect(stored.touched == nil)
            #expect(try database.mutation(stored.id)?.touched == nil)
        }
    }

    @Test("The objects that a queued mutation touches are unknown once a real id has replaced its temporary id")
    func touchedAfterAnswer() async throws {
        try await withOperations { database in
            let id = TemporaryID()
            let maker = try await database.enqueue(draft(temporaryIDs: [id]))
            var user = draft(
                variables: #"{"id":"\#(id.text)"}"#,
                optimistic: #"{"rename":{"__typename":"Dish","id":"\#(id.text)","name":"soup"}}"#)
            user.touched = [1, 2, 3]
            _ = try await database.mutations.enqueue(user)
            #expect(try database.mutation(user.id)?.touched == [1, 2, 3])
            try await database.complete(maker, temporaryIDs: [id: "r1"])
            let found = try #require(try database.mutation(user.id))
            #expect(found.touched == nil && found.state == .pending)
        }
    }

    @Test("What had failed of a mutation that took effect in part is kept with its outcome, and with no other's")
    func partialErrors() async throws {
        try await withOperations { database in
            let ids = [try await database.enqueue(draft("a")), try await database.enqueue(draft("b"))]
            for id in ids {
                try await database.mutations.answer(database.begin(id).attempt, json("{}"), now: noon)
            }
            try await database.mutations.settle(
                ids.map { ($0, json("{}")) }, errors: [ids[0]: json(#"[{"message":"m"}]"#)], now: noon)
            #expect(try database.outcome(ids[0])?.errors == json(#"[{"message":"m"}]"#))
            #expect(try database.outcome(ids[1])?.errors == nil)
        }
    }

    @Test("The doubt that an attempt leaves is of how it told its key, whatever was known of attempts before")
    func newestDoubt() async throws {
        try await withOperations { database in
            let (queue, lost) = (database.mutations, MutationFailure(.outcomeUnknown, message: "lost", time: noon))
            let header = KeyDelivery.header("Idempotency-Key")
            let id = try await database.enqueue(draft())
            _ = try await queue.begin(id, owner: "me", telling: .none, now: noon)
            try await queue.setAside(id, expecting: .inFlight, lost, now: noon)
            // The program answers for it that it is sent again; for the next attempt nobody does.
            try await queue.replay(id, now: noon)
            let attempt = try await queue.begin(id, owner: "me", telling: header, now: noon)
            try await queue.retryLater(attempt.attempt, at: nil, lost, leaving: .attempt, now: noon)
            #expect(try database.mutation(id)?.doubt == header)
            #expect(try await queue.begin(id, owner: "me", telling: .none, now: noon).telling == nil)
        }
    }

    @Test("Where a mutation and what holds its temporary id are given up together, each is so for itself")
    func givenUpTogether() async throws {
        try await withOperations { database in
            let id = TemporaryID()
            let first = try await database.enqueue(draft(variables: #"{"id":"\#(id.text)"}"#, temporaryIDs: [id]))
            let second = try await database.enqueue(draft(variables: #"{"id":"\#(id.text)"}"#))
            let third = try await database.enqueue(draft(dependencies: [second]))
            #expect(try await database.discardUnsent(in: app, now: noon))
            for mutation in [first, second, third] {
                let outcome = try #require(try database.outcome(mutation))
                #expect(outcome.kind == .discarded && outcome.failure == nil)
            }
        }
    }

    @Test("Up to which number outcomes may be forgotten is noted when they are, and never a smaller one")
    func forgottenNumbers() async throws {
        try await withOperations { database in
            func noted() throws -> Int64? {
                try database.mutations.read { transaction in
                    try transaction.db.integer("SELECT sequence FROM forgotten_outcome WHERE partition = ?", [app])
                }
            }
            var sequences: [Int64] = []
            for number in 0..<4 {
                let mutation = try await database.mutations.enqueue(draft())
                sequences.append(mutation.sequence)
                let attempt = try await database.begin(mutation.id).attempt
                try await database.mutations.answer(attempt, json("{}"), now: noon)
                // The last to be queued was settled first, by a clock that was set back.
                try await database.mutations.settle(mutation.id, now: after(Double(10 - number)))
            }
            #expect(try noted() == nil)
            try await database.mutations.prune(before: after(8))
            #expect(try noted() == sequences[3])
            try await database.mutations.prune(before: after(11))
            #expect(try noted() == sequences[3])
            let last = try await database.mutations.enqueue(draft())
            try await database.complete(last.id)
            _ = try await database.complete(database.enqueue(draft()))
            try await database.mutations.prune(keeping: 1, in: app)
            #expect(try noted() == last.sequence)
        }
    }

    @Test("Pruning removes the oldest outcomes of its own partition, and none of another partition")
    func ownOutcomes() async throws {
        try await withOperations { database in
            let foreign = try await database.enqueue(draft(in: "other"))
            try await database.complete(foreign)
            for _ in 0..<2 { try await database.complete(try await database.enqueue(draft())) }
            let count = try await database.mutations.prune(keeping: 1, in: app)
            #expect(count == 1)
            guard case .settled(let outcome) = try database.mutations.find(foreign) else {
                Issue.record("the outcome of another partition's mutation is gone")
                return
            }
            #expect(outcome.kind == .applied)
        }
    }

    @Test("A partition keeps the outcomes of its last 10,000 mutations, and of no more")
    func lastOutcomes() async throws {
        try await withOperations { database in
            for (given, pruned) in [(0, 0), (9_999, 0), (10_000, 1)] {
                // As if as many had been queued until now.
                try database.writeWithoutTransaction { db in
                    try db.execute(sql: "UPDATE sqlite_sequence SET seq = \(given) WHERE name = 'mutation'")
                }
                try await database.complete(try await database.enqueue(draft()))
                let count = try await database.mutations.prune(keeping: Outcome.kept, in: app)
                #expect(count == pruned, "after \(given)")
            }
        }
    }

    @Test("Forgetting a partition's outcomes leaves the outcomes and the real ids of another partition")
    func forgottenOfOne() async throws {
        try await withOperations { database in
            let id = TemporaryID()
            let foreign = try await database.enqueue(draft(in: "other", temporaryIDs: [id]))
            try await database.complete(foreign, temporaryIDs: [id: "7"])
            let own = try await database.enqueue(draft())
            try await database.complete(own)
            try await database.mutations.forgetOutcomes(in: app)
            #expect(try database.outcome(own) == nil)
            #expect(try database.outcome(foreign)?.kind == .applied)
            #expect(try database.mutations.realIDs(of: [id], in: "other") == [id: "7"])
        }
    }
}
