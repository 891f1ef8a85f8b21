import Foundation
import Testing

@testable import LarderOperations

@Suite("Order", .timeLimit(.minutes(10)))
struct OrderTests {
    @Test("Of each lane the first can be sent, until it is in flight, and then none")
    func lanes() async throws {
        try await withOperations { database in
            let a = try await [database.enqueue(draft("a")), database.enqueue(draft("a"))]
            let b = try await database.enqueue(draft("b"))
            let other = try await database.enqueue(draft("a", in: "other"))
            #expect(try database.heads() == [a[0], b])
            #expect(try database.heads("other") == [other])
            #expect(try database.heads("none") == [])
            await expectFailure(.notItsTurn) { _ = try await database.begin(a[1]) }
            let attempt = try await database.begin(a[0]).attempt
            #expect(try database.heads() == [b])
            await expectFailure(.notItsTurn) { _ = try await database.begin(a[1]) }
            try await database.mutations.answer(attempt, json("{}"), now: noon)
            #expect(try database.heads() == [a[1], b])
        }
    }

    @Test("A mutation that backs off keeps its lane waiting, and says when to look again")
    func backoff() async throws {
        try await withOperations { database in
            let first = try await database.enqueue(draft())
            _ = try await database.enqueue(draft())
            try await database.mutations.retryLater(database.begin(first).attempt, at: after(30), offline, now: noon)
            let now = try database.mutations.runnable(in: app, now: after(1))
            #expect(now.heads.isEmpty && now.lookAgain == after(30))
            await expectFailure(.notItsTurn) {
                _ = try await database.mutations.begin(first, owner: "me", now: after(1))
            }
            #expect(try database.heads(now: after(30)) == [first])
        }
    }

    @Test("A clock that is set back ends a backoff, and does not lengthen it")
    func clockBack() async throws {
        try await withOperations { database in
            let id = try await database.enqueue(draft())
            try await database.mutations.retryLater(database.begin(id).attempt, at: after(30), offline, now: noon)
            #expect(try database.heads(now: after(-1_000_000)) == [id])
        }
    }

    @Test(
        "A stored pause is over after a day at most, and none where it is not said when it began",
        arguments: hostilePauses)
    func hostilePause(pause: HostilePause) async throws {
        try await withOperations { database in
            let id = try await database.enqueue(draft())
            try database.writeNow { try $0.execute(sql: "UPDATE mutation SET \(pause.columns)") }
            let found = try database.mutations.runnable(in: app, now: noon)
            #expect(found.heads.map(\.id) == (pause.end == nil ? [id] : []))
            #expect(found.lookAgain == pause.end)
            #expect(try database.heads(now: pause.end ?? noon) == [id])
            _ = try await database.mutations.begin(id, owner: "me", now: pause.end ?? noon)
        }
    }

    @Test("A dependency holds up its dependent until it is settled; one that is settled already does not")
    func dependencies() async throws {
        try await withOperations { database in
            let first = try await database.enqueue(draft("a"))
            let second = try await database.enqueue(draft("b", dependencies: [first, first]))
            #expect(try database.mutation(second)?.dependencies == [first])
            #expect(try database.heads() == [first])
            await expectFailure(.notItsTurn) { _ = try await database.begin(second) }
            try await database.mutations.answer(database.begin(first).attempt, json("{}"), now: noon)
            #expect(try database.heads() == [])
            try await database.mutations.settle(first, now: noon)
            #expect(try database.heads() == [second])
            let third = try await database.enqueue(draft("c", dependencies: [first]))
            #expect(try database.heads() == [second, third])
        }
    }

    @Test("A dependency that the store does not know is refused, and nothing is queued", arguments: [false, true])
    func unknownDependency(isForgotten: Bool) async throws {
        try await withOperations { database in
            var unknown = UUID()
            if isForgotten {
                unknown = try await database.enqueue(draft("a"))
                try await database.complete(unknown)
                try await database.mutations.forgetOutcomes(in: app)
            }
            await expectFailure(.notFound) { _ = try await database.enqueue(draft(dependencies: [unknown])) }
            #expect(try database.mutations.list(MutationFilter()).isEmpty)
        }
    }

    @Test("A mutation that depends on a discarded one is set aside, as if it had been queued before that")
    func discardedDependency() async throws {
        try await withOperations { database in
            let bad = try await database.enqueue(draft())
            try await database.setAside(bad)
            _ = try await database.mutations.discard(bad, dependents: .setAside(reason: "it is over"), now: noon)
            let late = try await database.enqueue(draft(dependencies: [bad]))
            let stored = try #require(try database.mutation(late))
            #expect((stored.state, stored.failure?.class) == (.deadLetter, .dependencyDiscarded))
            let next = try await database.enqueue(draft(dependencies: [late]))
            #expect(try database.heads() == [])
            try await database.mutations.replay(late, now: noon)
            #expect(try database.heads() == [late])
            #expect(try database.mutation(next)?.isStalled == false)
        }
    }

    @Test("A mutation that depends on a discarded one, and then on one that took effect, is set aside")
    func discardedBesideApplied() async throws {
        try await withOperations { database in
            let (bad, done) = (try await database.enqueue(draft()), try await database.enqueue(draft("b")))
            try await database.setAside(bad)
            _ = try await database.mutations.discard(bad, dependents: .setAside(reason: "it is over"), now: noon)
            try await database.complete(done)
            let late = try await database.enqueue(draft(dependencies: [bad, done]))
            let stored = try #require(try database.mutation(late))
            #expect((stored.state, stored.failure?.class) == (.deadLetter, .dependencyDiscarded))
        }
    }

    @Test("A dependency of another partition is refused")
    func foreignDependency() async throws {
        try await withOperations { database in
            let first = try await database.enqueue(draft(in: "other"))
            await expectFailure(.invalid) { _ = try await database.enqueue(draft(dependencies: [first])) }
        }
    }

    @Test("A bad mutation at the head holds up its dependents, however remote, and no other mutation")
    func deadLetter() async throws {
        try await withOperations { database in
            let bad = try await database.enqueue(draft())
            let child = try await database.enqueue(draft(dependencies: [bad]))
            let grandchild = try await database.enqueue(draft(dependencies: [child]))
            let other = try await database.enqueue(draft())
            try await database.setAside(bad)
            #expect(try database.heads() == [other])
            #expect(try database.mutation(grandchild)?.isStalled == true)
            let late = try await database.enqueue(draft(dependencies: [grandchild]))
            try await database.complete(other)
            #expect(try database.heads() == [])
            let behind = try await database.enqueue(draft())
            #expect(try database.heads() == [behind])
            try await database.complete(behind)
            try await database.mutations.replay(bad, now: noon)
            #expect(try database.heads() == [bad])
            for id in [bad, child, grandchild, late] {
                #expect(try database.heads() == [id])
                try await database.complete(id)
            }
        }
    }

    @Test("A mutation replayed while another of its lane is in flight waits for that")
    func replayedBeside() async throws {
        try await withOperations { database in
            let first = try await database.enqueue(draft())
            let second = try await database.enqueue(draft())
            try await database.setAside(first)
            let attempt = try await database.begin(second).attempt
            try await database.mutations.replay(first, now: noon)
            #expect(try database.heads() == [])
            await expectFailure(.notItsTurn) { _ = try await database.begin(first) }
            try await database.mutations.retryLater(attempt, at: nil, offline, now: noon)
            #expect(try database.heads() == [first])
        }
    }

    @Test("With a limit a program comes to all lanes in turn")
    func limit() async throws {
        try await withOperations { database in
            for lane in 0..<10 { _ = try await database.enqueue(draft("\(lane)")) }
            var (seen, last): ([String], String?) = ([], nil)
            while case let part = try database.mutations.runnable(in: app, now: noon, after: last, limit: 3),
                let end = part.heads.last
            {
                #expect(part.heads.count <= 3)
                seen += part.heads.map(\.lane)
                last = end.lane
            }
            #expect(seen == (0..<10).map(String.init))
        }
    }

    @Test("An answer that makes its lane another's, where one is in flight, is noted, and begins nothing there")
    func mergedLane() async throws {
        try await withOperations { database in
            let token = TemporaryID()
            let maker = try await database.enqueue(draft("Todo:\(token.text)", temporaryIDs: [token]))
            let attempt = try await database.begin(maker).attempt
            let other = try await database.enqueue(draft("Todo:42"))
            _ = try await database.begin(other)
            let next = try await database.mutations.answer(
                attempt, json("{}"), temporaryIDs: [token: "42"], beginningNextAs: "me", now: noon)
            #expect(next == nil)
            #expect(try database.mutations.list().map(\.state) == [.acknowledged, .inFlight])
            #expect(try database.mutations.list().map(\.lane) == ["Todo:42", "Todo:42"])
        }
    }

    @Test("An answer that makes its lane another's begins the first that waits there")
    func joinedLane() async throws {
        try await withOperations { database in
            let token = TemporaryID()
            let maker = try await database.enqueue(draft("Todo:\(token.text)", temporaryIDs: [token]))
            let attempt = try await database.begin(maker).attempt
            let waiting = try await database.enqueue(draft("Todo:42"))
            let next = try await database.mutations.answer(
                attempt, json("{}"), temporaryIDs: [token: "42"], beginningNextAs: "me", now: noon)
            #expect(next?.id == waiting)
        }
    }

    @Test("An answer is noted and the next of the lane begun in one step, if that can be sent now")
    func next() async throws {
        try await withOperations { database in
            let first = try await database.enqueue(draft("a"))
            let second = try await database.enqueue(draft("a"))
            _ = try await database.enqueue(draft("a", dependencies: [second]))
            let one = try await database.begin(first).attempt
            let before = database.commitCount
            let next = try #require(
                try await database.mutations.answer(
                    one, json("{}"), temporaryIDs: [:], beginningNextAs: "me", now: noon))
            #expect(next.id == second)
            #expect(next.state == .inFlight)
            #expect(database.commitCount == before + 1)
            // The third waits until the second is settled.
            #expect(
                try await database.mutations.answer(
                    next.attempt, json("{}"), temporaryIDs: [:], beginningNextAs: "me", now: noon) == nil)
        }
    }
}
