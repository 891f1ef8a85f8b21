import Foundation
import Testing

@testable import LarderOperations

@Suite("Dead letters", .timeLimit(.minutes(10)))
struct DeadLetterTests {
    @Test("Dead letters are listed with their reasons, edited, and replayed at their old place")
    func replayed() async throws {
        try await withOperations { database in
            let first = try await database.enqueue(draft())
            let second = try await database.enqueue(draft())
            try await database.setAside(first)
            let listed = try database.mutations.list(MutationFilter(partition: app, states: [.deadLetter]))
            #expect(listed.map(\.id) == [first])
            #expect(listed.first?.failure == rejected)
            try await database.mutations.edit(first, Revision(variables: json(#"{"name":"stew"}"#)))
            try await database.mutations.replay(first, now: noon)
            #expect(try database.heads() == [first])
            #expect(try await database.begin(first).content.variables == json(#"{"name":"stew"}"#))
            #expect(try database.state(second) == .pending)
        }
    }

    @Test("A mutation that was put off and set aside can be sent at once when it is replayed")
    func replayedAtOnce() async throws {
        try await withOperations { database in
            let id = try await database.enqueue(draft())
            let attempt = try await database.begin(id).attempt
            try await database.mutations.retryLater(attempt, at: after(60), offline, now: noon)
            try await database.setAside(id)
            try await database.mutations.replay(id, now: after(1))
            #expect(try database.mutation(id)?.notBefore == nil)
            #expect(try database.heads(now: after(1)) == [id])
        }
    }

    @Test("The keys that an edited mutation touches are no longer known")
    func editedTouches() async throws {
        try await withOperations { database in
            var known = draft()
            known.touched = [1, 2, 3]
            let id = try await database.enqueue(known)
            #expect(try database.mutation(id)?.touched == [1, 2, 3])
            try await database.setAside(id)
            try await database.mutations.edit(id, Revision(variables: json(#"{"name":"stew"}"#)))
            #expect(try database.mutation(id)?.touched == nil)
        }
    }

    @Test("Variables that are no JSON object are refused", arguments: ["", "[1]", "{", #"{"a":}"#, "nonsense"])
    func edited(_ text: String) async throws {
        try await withOperations { database in
            let id = try await database.enqueue(draft())
            try await database.setAside(id)
            await expectFailure(.invalid) { try await database.mutations.edit(id, Revision(variables: json(text))) }
            #expect(try database.mutation(id)?.content == rename)
        }
    }

    @Test("A key that another mutation of the queue has is refused, and the mutation keeps its own")
    func editedKey() async throws {
        try await withOperations { database in
            let id = try await database.enqueue(draft(key: "own"))
            _ = try await database.enqueue(draft(key: "taken"))
            try await database.setAside(id)
            let error = await failure {
                try await database.mutations.edit(id, Revision(idempotencyKey: "taken"))
            }
            #expect(error?.code == .duplicate)
            let named = ", mutation \(id.uuidString.lowercased()) [operations.duplicate]"
            #expect(error?.description.hasSuffix(named) == true, "\(error?.description ?? "")")
            #expect(try database.mutation(id)?.idempotencyKey == "own")
            // No server can know the key of one that was never sent.
            try await database.mutations.edit(id, Revision(variables: json("{}")))
            #expect(try database.mutation(id)?.idempotencyKey == "own")
            try await database.mutations.edit(id, Revision(idempotencyKey: "new"))
            #expect(try database.mutation(id)?.idempotencyKey == "new")
        }
    }

    @Test("A mutation that is edited after an attempt began gets a new key, also where the attempt had no effect")
    func editedAfterAttempt() async throws {
        try await withOperations { database in
            let id = try await database.enqueue(draft(key: "old"))
            try await database.mutations.retryLater(database.begin(id).attempt, at: nil, offline, now: noon)
            try await database.setAside(id)
            try await database.mutations.edit(id, Revision(variables: json("{}")))
            let edited = try #require(try database.mutation(id))
            #expect(edited.idempotencyKey != "old")
        }
    }

    @Test("A mutation that is edited after an attempt began has the key that the caller gives with the edit")
    func editedWithKey() async throws {
        try await withOperations { database in
            let id = try await database.enqueue(draft(key: "old"))
            try await database.mutations.retryLater(database.begin(id).attempt, at: nil, offline, now: noon)
            try await database.setAside(id)
            try await database.mutations.edit(id, Revision(variables: json("{}"), idempotencyKey: "given"))
            #expect(try database.mutation(id)?.idempotencyKey == "given")
        }
    }

    @Test("A discarded mutation leaves an outcome with the reason")
    func discarded() async throws {
        try await withOperations { database in
            let id = try await database.enqueue(draft())
            try await database.setAside(id)
            try await database.mutations.discard(id, dependents: .release, now: after(1))
            let outcome = try #require(try database.outcome(id))
            #expect(outcome.kind == .discarded && outcome.settled == after(1))
            #expect(outcome.failure?.class == .rejected && outcome.failure?.message == rejected.message)
            #expect(outcome.failure?.code == rejected.code)
        }
    }

    @Test("Dependents of a discarded mutation are set aside with the reason, and the mutations behind them wait")
    func dependentsSetAside() async throws {
        try await withOperations { database in
            let bad = try await database.enqueue(draft())
            let child = try await database.enqueue(draft(dependencies: [bad]))
            let grandchild = try await database.enqueue(draft(dependencies: [child]))
            try await database.setAside(bad)
            let affected = try await database.mutations.discard(
                bad, dependents: .setAside(reason: "the user gave up"), now: noon)
            #expect(affected == [child])
            #expect(try database.mutation(child)?.failure?.class == .dependencyDiscarded)
            #expect(try database.mutation(child)?.failure?.message == "the user gave up")
            #expect(try database.mutation(grandchild)?.isStalled == true)
            try await database.mutations.replay(child, now: noon)
            #expect(try database.heads() == [child])
        }
    }

    @Test("A dependent that is a dead letter for another reason keeps it, and is not among those set aside")
    func dependentSetAsideBefore() async throws {
        try await withOperations { database in
            let bad = try await database.enqueue(draft())
            let dead = try await database.enqueue(draft(dependencies: [bad]))
            let pending = try await database.enqueue(draft(dependencies: [bad]))
            try await database.setAside(dead)
            try await database.setAside(bad)
            let affected = try await database.mutations.discard(
                bad, dependents: .setAside(reason: "the user gave up"), now: noon)
            #expect(affected == [pending])
            #expect(try database.mutation(dead)?.failure == rejected)
        }
    }

    @Test("Dependents of a discarded mutation go on without it, if the caller says so")
    func dependentsReleased() async throws {
        try await withOperations { database in
            let bad = try await database.enqueue(draft())
            let child = try await database.enqueue(draft(dependencies: [bad]))
            let grandchild = try await database.enqueue(draft(dependencies: [child]))
            try await database.setAside(bad)
            #expect(try await database.mutations.discard(bad, dependents: .release, now: noon) == [])
            #expect(try database.heads() == [child])
            #expect(try database.mutation(grandchild)?.isStalled == false)
        }
    }

    @Test("Pending mutations expire at their time and can be replayed; mutations in flight never expire")
    func expired() async throws {
        try await withOperations { database in
            let flying = try await database.enqueue(draft("a", expires: after(10)))
            let waiting = try await database.enqueue(draft("b", expires: after(10)))
            _ = try await database.enqueue(draft("c"))
            let attempt = try await database.begin(flying).attempt
            #expect(try database.mutations.runnable(in: app, now: noon).lookAgain == after(10))
            let late = try database.mutations.runnable(in: app, now: after(10))
            #expect(late.mustExpire && late.heads.map(\.lane) == ["c"])
            await expectFailure(.expired) {
                _ = try await database.mutations.begin(waiting, owner: "me", now: after(10))
            }
            #expect(try await database.mutations.expire(in: app, now: after(9.999)) == [])
            #expect(try await database.mutations.expire(in: app, now: after(1_000_000)) == [waiting])
            #expect(try database.mutation(waiting)?.failure?.class == .expired)
            #expect(try database.state(flying) == .inFlight)
            try await database.mutations.answer(attempt, json("{}"), now: after(1_000_000))
            try await database.mutations.replay(waiting, expires: after(2_000_000), now: noon)
            #expect(try database.mutation(waiting)?.expires == after(2_000_000))
            #expect(try await database.mutations.expire(in: app, now: after(1_000_000)) == [])
        }
    }

    @Test("A replayed mutation keeps its expiry, unless that is over: then it has none", arguments: [9.999, 10])
    func replayedExpiry(_ time: Double) async throws {
        try await withOperations { database in
            let id = try await database.enqueue(draft("a", expires: after(10)))
            try await database.setAside(id)
            try await database.mutations.replay(id, now: after(time))
            #expect(try database.mutation(id)?.expires == (time < 10 ? after(10) : nil))
        }
    }

    @Test("Unsent work is what is pending, in flight or a dead letter, of the partition that is asked for")
    func unsent() async throws {
        try await withOperations { database in
            #expect(try !database.mutations.hasUnsent(in: app))
            _ = try await database.enqueue(draft(in: "other"))
            #expect(try !database.mutations.hasUnsent(in: app))
            let id = try await database.enqueue(draft())
            #expect(try database.mutations.hasUnsent(in: app))
            let attempt = try await database.begin(id).attempt
            #expect(try database.mutations.hasUnsent(in: app))
            try await database.mutations.answer(attempt, json("{}"), now: noon)
            #expect(try !database.mutations.hasUnsent(in: app))
            try await database.mutations.setAside(id, expecting: .acknowledged, rejected, now: noon)
            #expect(try database.mutations.hasUnsent(in: app))
        }
    }

    @Test("A partition whose mutations were all set aside is not forgotten without a word")
    func forgotten() async throws {
        try await withOperations { database in
            try await database.enter(environment("a"), as: "first")
            let id = try await database.enqueue(draft(in: "first"))
            try await database.setAside(id)
            try await database.enter(environment("b"), as: "second")
            await expectFailure(.unsentWork) {
                try await database.environments.forget(environment: "a", losingUnsent: false)
            }
            #expect(try database.state(id) == .deadLetter)
            try await database.environments.forget(environment: "a", losingUnsent: true)
            #expect(try database.state(id) == nil)
        }
    }

    @Test("A partition whose mutations were all answered is forgotten, though an answer is not stored yet")
    func forgottenAnswered() async throws {
        try await withOperations { database in
            try await database.enter(environment("a"), as: "first")
            let id = try await database.enqueue(draft(in: "first"))
            try await database.mutations.answer(try await database.begin(id).attempt, json("{}"), now: noon)
            try await database.enter(environment("b"), as: "second")
            let forgotten = try await database.environments.forget(environment: "a", losingUnsent: false)
            #expect(forgotten.mutations == 1)
            #expect(try database.state(id) == nil)
        }
    }

    @Test("Giving up all leaves an outcome for each, and gives up none while one may be taking effect")
    func discardAll() async throws {
        try await withOperations { database in
            let flying = try await database.enqueue(draft("x"))
            let attempt = try await database.begin(flying).attempt
            let token = TemporaryID()
            let maker = try await database.enqueue(draft("y", temporaryIDs: [token]))
            let user = try await database.enqueue(draft("z", variables: #"{"id":"\#(token.text)"}"#))
            let dead = try await database.enqueue(draft("z"))
            try await database.setAside(dead)
            let other = try await database.enqueue(draft(in: "other"))
            await expectFailure(.unsentWork) { try await database.mutations.discardAll(in: app, now: noon) }
            #expect(try database.mutations.list().count == 5)
            try await database.mutations.answer(attempt, json("{}"), now: noon)
            #expect(try await database.mutations.discardAll(in: app, now: noon) == 3)
            #expect(try database.mutations.list().map(\.id) == [flying, other])
            for id in [maker, user, dead] { #expect(try database.outcome(id)?.kind == .discarded) }
        }
    }

    @Test("Giving up all gives up what depends on a mutation before it, and no outcome says that anything was lost")
    func discardAllBackward() async throws {
        try await withOperations { database in
            let token = TemporaryID()
            let maker = try await database.enqueue(draft("y", temporaryIDs: [token]))
            let user = try await database.enqueue(draft("z", variables: #"{"id":"\#(token.text)"}"#))
            #expect(try await database.mutations.discardAll(in: app, now: noon) == 2)
            for id in [maker, user] {
                let outcome = try #require(try database.outcome(id))
                #expect(outcome.kind == .discarded)
                #expect(outcome.failure == nil)
            }
        }
    }

    @Test("Mutations are counted by partition and state, and paged by sequence")
    func counted() async throws {
        try await withOperations { database in
            var ids: [UUID] = []
            for index in 0..<10 { ids.append(try await database.enqueue(draft("\(index % 2)"))) }
            try await database.setAside(ids[3])
            _ = try await database.begin(ids[0])
            _ = try await database.enqueue(draft(in: "other"))
            let expected: [MutationState: Int] = [.pending: 8, .inFlight: 1, .deadLetter: 1]
            #expect(try database.mutations.counts(in: app) == expected)
            #expect(try database.mutations.counts() == [app: expected, "other": [.pending: 1]])
            var (seen, last): ([UUID], Int64) = ([], 0)
            while case let page = try database.mutations.list(MutationFilter(partition: app), after: last, limit: 3),
                let end = page.last
            {
                seen += page.map(\.id)
                last = end.sequence
            }
            #expect(seen == ids)
            #expect(try database.mutations.list(MutationFilter(partition: app, lane: "1")).count == 5)
            #expect(try database.mutations.list(MutationFilter(states: [])).isEmpty)
            #expect(try database.mutations.list(limit: 0).isEmpty)
            #expect(try database.mutations.list(limit: -1).isEmpty)
            #expect(try database.mutations.list(MutationFilter(partition: "none")).isEmpty)
        }
    }

    @Test("Outcomes are kept until they are pruned")
    func pruned() async throws {
        try await withOperations { database in
            let id = try await database.enqueue(draft())
            try await database.complete(id)
            #expect(try await database.mutations.prune(before: noon) == 0)
            #expect(try database.outcome(id) != nil)
            #expect(try await database.mutations.prune(before: after(1)) == 1)
            #expect(try database.mutations.find(id) == .unknown)
        }
    }

    @Test("The outcomes of the last mutations are kept, whatever the clock says")
    func keptByNumber() async throws {
        try await withOperations { database in
            var ids: [UUID] = []
            for _ in 0..<5 {
                ids.append(try await database.enqueue(draft()))
                try await database.complete(ids[ids.count - 1])
            }
            let other = try await database.enqueue(draft(in: "other"))
            try await database.complete(other)
            #expect(try await database.mutations.prune(keeping: 5, in: app) == 0)
            #expect(try await database.mutations.prune(keeping: 2, in: app) == 3)
            #expect(try await database.mutations.prune(keeping: 2, in: "none") == 0)
            for id in ids[..<3] { #expect(try database.mutations.find(id) == .unknown) }
            for id in ids[3...] + [other] { #expect(try database.outcome(id) != nil) }
        }
    }

    @Test("An idempotency key that is empty is refused")
    func emptyKey() async throws {
        try await withOperations { database in
            await expectFailure(.invalid) { _ = try await database.enqueue(draft(key: "")) }
        }
    }

    @Test("Giving up all of a partition does not wait for a mutation that is under way in another")
    func discardAllBesideAnother() async throws {
        try await withOperations { database in
            let flying = try await database.enqueue(draft(in: "other"))
            _ = try await database.begin(flying)
            let waiting = try await database.enqueue(draft())
            #expect(try await database.mutations.discardAll(in: app, now: noon) == 1)
            #expect(try database.outcome(waiting)?.kind == .discarded)
            #expect(try database.state(flying) == .inFlight)
        }
    }
}
