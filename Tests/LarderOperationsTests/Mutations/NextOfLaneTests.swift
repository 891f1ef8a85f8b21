import Foundation
import Testing

@testable import LarderOperations

/// What may have happened between an answer's coming and its being noted: the next is looked at where it is begun.
@Suite("The next of a lane", .timeLimit(.minutes(10)))
struct NextOfLaneTests {
    /// Queues two, begins the first, lets something happen, and notes the answer of the first.
    private func next(
        _ second: MutationDraft = draft(), at now: Date = noon,
        after event: (OperationsDatabase, UUID) async throws -> Void = { _, _ in }
    ) async throws -> (state: MutationState?, begun: Bool) {
        var result: (MutationState?, Bool) = (nil, false)
        try await withOperations { database in
            let first = draft(second.lane, in: second.partition)
            _ = try await database.mutations.enqueue([first, second])
            let attempt = try await database.begin(first.id).attempt
            try await event(database, second.id)
            let next = try await database.mutations.answer(
                attempt, json("{}"), temporaryIDs: [:], beginningNextAs: "me", now: now)
            #expect(try database.state(first.id) == .acknowledged)
            if let next { #expect(try database.mutation(second.id) == next) }
            result = (try database.state(second.id), next != nil)
        }
        return result
    }

    @Test("The next mutation is begun as it stands now")
    func begun() async throws {
        #expect(try await next() == (.inFlight, true))
    }

    @Test("The next mutation is not begun where it was set aside meanwhile")
    func setAside() async throws {
        #expect(try await next { try await $0.setAside($1) } == (.deadLetter, false))
    }

    @Test("The next mutation is not begun when its time is over, or has not come")
    func time() async throws {
        #expect(try await next(draft(expires: after(5)), at: after(5)) == (.pending, false))
        for (time, isBegun) in [(4.0, false), (5, true)] {
            let result = try await next(at: after(time)) { database, _ in
                let pause = "not_before = \(after(5).milliseconds), not_before_set = \(noon.milliseconds)"
                try database.writeNow { try $0.execute(sql: "UPDATE mutation SET \(pause) WHERE state = 0") }
            }
            #expect(result == (isBegun ? .inFlight : .pending, isBegun))
        }
    }

    @Test("The next mutation is not begun where another partition has become current; the answer is noted all the same")
    func parked() async throws {
        let result = try await next { database, _ in try await database.enter(environment("b"), as: "pb") }
        #expect(result == (.pending, false))
    }

    @Test("The next mutation is not begun where no partition is to be current any more")
    func left() async throws {
        let result = try await next { database, _ in
            try await database.enter(environment("b"), as: "pb")
            _ = try await database.environments.leave(.park, now: noon)
        }
        #expect(result == (.pending, false))
    }

    @Test("A replayed mutation, which comes before it, is begun in its place")
    func replayed() async throws {
        try await withOperations { database in
            let drafts = [draft(), draft(), draft()]
            _ = try await database.mutations.enqueue(drafts)
            try await database.setAside(drafts[0].id)
            let attempt = try await database.begin(drafts[1].id).attempt
            try await database.mutations.replay(drafts[0].id, now: noon)
            let next = try await database.mutations.answer(
                attempt, json("{}"), temporaryIDs: [:], beginningNextAs: "me", now: noon)
            #expect(next?.id == drafts[0].id)
            #expect(try database.mutations.list().map(\.state) == [.inFlight, .acknowledged, .pending])
        }
    }

    @Test("Of two that note the same answer one is refused, and begins nothing")
    func twice() async throws {
        try await withOperations { database in
            let drafts = [draft(), draft(), draft()]
            _ = try await database.mutations.enqueue(drafts)
            let attempt = try await database.begin(drafts[0].id).attempt
            let begun = await withTaskGroup(of: Result<UUID?, any Error>.self) { group in
                for owner in ["me", "you"] {
                    group.addTask {
                        do {
                            return .success(
                                try await database.mutations.blocking.answer(
                                    attempt, json(owner), temporaryIDs: [:], beginningNextAs: owner, now: noon)?.id)
                        } catch { return .failure(error) }
                    }
                }
                return await group.reduce(into: []) { $0.append($1) }
            }
            #expect(begun.compactMap { try? $0.get() } == [drafts[1].id])
            #expect(try database.mutations.list().map(\.state) == [.acknowledged, .inFlight, .pending])
        }
    }
}
