import Foundation
import LarderTestSupport
import Testing

@testable import LarderOperations

@Suite("A mutation's steps", .timeLimit(.minutes(10)))
struct TransitionTests {
    /// Brings a new mutation into a state.
    private func sample(_ state: MutationState, _ database: OperationsDatabase) async throws -> Mutation {
        let id = try await database.enqueue(draft("\(UUID())"))
        if state == .inFlight || state == .acknowledged { _ = try await database.begin(id) }
        if state == .acknowledged {
            try await database.mutations.answer(Attempt(mutation: id, number: 1), json("{}"), now: noon)
        }
        if state == .deadLetter { try await database.setAside(id) }
        return try #require(try database.mutation(id))
    }

    @Test("All the way: every step is there when the next is made, and the outcome when all are")
    func way() async throws {
        try await withOperations { database in
            let id = try await database.enqueue(draft())
            let begun = try await database.mutations.begin(id, owner: "runner-1", now: noon)
            #expect(begun.state == .inFlight && begun.owner == "runner-1" && begun.attempts == 1)
            #expect(try database.mutation(id) == begun)
            try await database.mutations.retryLater(begun.attempt, at: after(5), offline, now: noon)
            let waiting = try #require(try database.mutation(id))
            #expect(waiting.state == .pending && waiting.owner == nil && waiting.failure == offline)
            #expect(waiting.notBefore == after(5) && waiting.attempts == 1)
            let second = try await database.mutations.begin(id, owner: "runner-2", now: after(5))
            #expect(second.attempts == 2 && second.notBefore == nil)
            try await database.mutations.answer(second.attempt, json(#"{"data":1}"#), now: noon)
            let answered = try #require(try database.mutation(id))
            #expect(answered.state == .acknowledged && answered.answer == json(#"{"data":1}"#) && answered.owner == nil)
            try await database.mutations.settle(id, result: json("42"), now: after(9))
            let outcome = try #require(try database.outcome(id))
            #expect(outcome.kind == .applied && outcome.result == json("42") && outcome.settled == after(9))
            #expect(outcome.sequence == begun.sequence && outcome.partition == app)
        }
    }

    @Test("Many are settled in one transaction, each with its result; none where one is not acknowledged")
    func settledTogether() async throws {
        try await withOperations { database in
            let queue = database.mutations
            let stored = try await queue.enqueue((0..<60).map { draft("\($0)", key: $0 == 5 ? "five" : nil) })
            for mutation in stored.dropLast() {
                try await queue.answer(database.begin(mutation.id).attempt, json("{}"), now: noon)
            }
            let results = stored.enumerated().map { (mutation: $1.id, result: $0 == 9 ? nil : json("\($0)")) }
            let error = await failure { try await queue.settle(results, now: noon) }
            #expect(error?.code == .wrongState)
            #expect(error?.mutation == stored.last?.id)
            #expect(try queue.counts(in: app) == [.acknowledged: 59, .pending: 1])
            // The same one twice, in one statement and in two.
            for count in [24, 2] {
                let twice = Array(results.prefix(count)) + [results[0]]
                await expectFailure(.notFound) { try await queue.settle(twice, now: noon) }
            }
            let before = database.commitCount
            try await queue.settle(results.dropLast(), now: after(3))
            #expect(database.commitCount == before + 1)
            for (number, mutation) in stored.dropLast().enumerated() {
                let outcome = try #require(try database.outcome(mutation.id))
                #expect(outcome.sequence == mutation.sequence && outcome.settled == after(3))
                #expect(outcome.result == (number == 9 ? nil : json("\(number)")))
            }
            await expectFailure(.duplicate) { _ = try await queue.enqueue(draft(key: "five")) }
            #expect(try queue.list().map(\.id) == stored.suffix(1).map(\.id))
        }
    }

    @Test("A step from any other state than its own is refused and changes nothing", arguments: MutationState.allCases)
    func refused(_ state: MutationState) async throws {
        try await withOperations { database in
            let before = try await sample(state, database)
            let (id, queue) = (before.id, database.mutations)
            let steps: [(MutationState, () async throws -> Void)] = [
                (.pending, { _ = try await queue.begin(id, owner: "me", now: noon) }),
                (.inFlight, { try await queue.retryLater(before.attempt, at: nil, offline, now: noon) }),
                (.inFlight, { try await queue.answer(before.attempt, json("{}"), now: noon) }),
                (.inFlight, { try await queue.adopt(before.attempt, from: "me", to: "you", now: noon) }),
                (.acknowledged, { try await queue.settle(id, now: noon) }),
                (.deadLetter, { try await queue.edit(id, Revision(variables: json("{}"))) }),
                (.deadLetter, { try await queue.replay(id, now: noon) }),
                (.deadLetter, { try await queue.discard(id, dependents: .release, now: noon) }),
            ]
            for (expected, step) in steps where expected != state {
                let error = await failure { try await step() }
                #expect(error?.code == .wrongState)
                #expect(error?.mutation == id)
                #expect(error?.message.contains("\(state)") == true)
            }
            for expected in MutationState.allCases where expected != state {
                await expectFailure(.wrongState) {
                    try await queue.setAside(id, expecting: expected, rejected, now: noon)
                }
            }
            #expect(try database.mutation(id) == before)
        }
    }

    @Test("A step of a mutation that was never there, or is settled, is refused")
    func notFound() async throws {
        try await withOperations { database in
            let settled = try await database.enqueue(draft())
            try await database.complete(settled)
            for id in [settled, UUID()] {
                let (attempt, queue) = (Attempt(mutation: id, number: 1), database.mutations)
                await expectFailure(.notFound) { _ = try await queue.begin(id, owner: "me", now: noon) }
                await expectFailure(.notFound) { try await queue.retryLater(attempt, at: nil, offline, now: noon) }
                await expectFailure(.notFound) { try await queue.answer(attempt, [], now: noon) }
                await expectFailure(.notFound) { try await queue.settle(id, now: noon) }
                await expectFailure(.notFound) {
                    try await queue.setAside(id, expecting: .pending, rejected, now: noon)
                }
                await expectFailure(.notFound) { try await queue.replay(id, now: noon) }
                await expectFailure(.notFound) { try await queue.discard(id, dependents: .release, now: noon) }
            }
            #expect(try database.mutations.find(UUID()) == .unknown)
        }
    }

    @Test(
        "A mutation is set aside from every state, with the reason, and keeps what the server answered",
        arguments: [MutationState.pending, .inFlight, .acknowledged])
    func setAside(_ state: MutationState) async throws {
        try await withOperations { database in
            let before = try await sample(state, database)
            try await database.mutations.setAside(before.id, expecting: state, rejected, now: noon)
            let found = try #require(try database.mutation(before.id))
            #expect(found.state == .deadLetter && found.failure == rejected && found.owner == nil)
            #expect(found.answer == before.answer)
        }
    }

    @Test("A late answer of an earlier attempt is refused, and so is a second")
    func lateAnswer() async throws {
        try await withOperations { database in
            let id = try await database.enqueue(draft())
            let first = try await database.begin(id).attempt
            try await database.mutations.retryLater(first, at: nil, offline, now: noon)
            let second = try await database.begin(id).attempt
            let error = await failure { try await database.mutations.answer(first, json("1"), now: noon) }
            #expect(error?.code == .wrongState)
            try await database.mutations.answer(second, json("2"), now: noon)
            await expectFailure(.wrongState) { try await database.mutations.answer(second, json("3"), now: noon) }
            #expect(try database.mutation(id)?.answer == json("2"))
        }
    }

    @Test("Steps of several mutations are made all or none")
    func batch() async throws {
        try await withOperations { database in
            let first = try await database.enqueue(draft())
            let second = try await database.enqueue(draft())
            let attempt = try await database.begin(first).attempt
            await expectFailure(.notFound) {
                try await database.mutations.apply(
                    [.answer(attempt, json("{}")), .begin(second, owner: "me"), .settle(UUID())], now: noon)
            }
            #expect(try database.state(first) == .inFlight)
            #expect(try database.state(second) == .pending)
            let begun = try await database.mutations.apply(
                [.answer(attempt, json("{}")), .begin(second, owner: "me"), .settle(first)], now: noon)
            #expect(begun.map(\.id) == [second])
            #expect(try database.outcome(first) != nil)
        }
    }

    @Test("A conflict's new variables and key are what the next attempt sends")
    func revised() async throws {
        try await withOperations { database in
            let id = try await database.enqueue(draft(key: "1"))
            let attempt = try await database.begin(id).attempt
            let revision = Revision(variables: json(#"{"version":2}"#), idempotencyKey: "2")
            try await database.mutations.retryLater(attempt, at: nil, rejected, revision: revision, now: noon)
            let begun = try await database.begin(id)
            #expect(begun.content.variables == json(#"{"version":2}"#))
            #expect(begun.idempotencyKey == "2")
        }
    }

    @Test("A new key that a settled mutation had is refused, and the attempt goes on")
    func revisedKey() async throws {
        try await withOperations { database in
            try await database.complete(database.enqueue(draft(key: "1")))
            let id = try await database.enqueue(draft(key: "2"))
            let attempt = try await database.begin(id).attempt
            await expectFailure(.duplicate) {
                try await database.mutations.retryLater(
                    attempt, at: nil, offline, revision: Revision(idempotencyKey: "1"), now: noon)
            }
            #expect(try database.state(id) == .inFlight)
            #expect(try database.mutation(id)?.idempotencyKey == "2")
        }
    }

    @Test("A dead owner's mutations are found, and taken over by one process")
    func recovered() async throws {
        try await withOperations { database in
            var ids: [UUID] = []
            for lane in ["a", "b", "c"] { ids.append(try await database.enqueue(draft(lane))) }
            for (id, owner) in zip(ids, ["dead", "alive", "dead"]) {
                _ = try await database.mutations.begin(id, owner: owner, now: noon)
            }
            var asked: [String] = []
            let left = try database.mutations.recover(in: app) { owner in
                asked.append(owner)
                return owner == "alive"
            }
            #expect(left.map(\.id) == [ids[0], ids[2]])
            #expect(asked.sorted() == ["alive", "dead"])
            try await database.mutations.adopt(left[0].attempt, from: "dead", to: "me", now: noon)
            await expectFailure(.wrongState) {
                try await database.mutations.adopt(left[0].attempt, from: "dead", to: "you", now: noon)
            }
            #expect(try database.mutation(ids[0])?.owner == "me")
            #expect(try database.mutation(ids[0])?.attempts == 1)
            #expect(try database.mutations.recover(in: app) { $0 != "dead" }.map(\.id) == [ids[2]])
        }
    }

    @Test("A mutation in flight of which no owner is known is nobody's, and found")
    func ownerless() async throws {
        try await withTemporaryFolder { folder in
            let database = try OperationsDatabase(folder: folder)
            let id = try await database.enqueue(draft())
            _ = try await database.begin(id)
            // As damage leaves it: the table's own check would not let it pass.
            try database.writeWithoutTransaction { db in
                try db.run("PRAGMA ignore_check_constraints = ON")
                try db.run("UPDATE mutation SET owner = NULL")
            }
            #expect(try database.mutations.recover(in: app) { _ in true }.map(\.id) == [id])
            try database.close()
        }
    }
}
