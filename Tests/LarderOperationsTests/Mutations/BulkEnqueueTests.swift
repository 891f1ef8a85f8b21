import Foundation
import Testing

@testable import LarderOperations

@Suite("Queueing many at once", .timeLimit(.minutes(10)))
struct BulkEnqueueTests {
    @Test("Many are queued in one commit, in the order in which they are given")
    func order() async throws {
        try await withOperations { database in
            let drafts = (0..<50).map { draft("\($0 % 3)", key: "\($0)") }
            let before = database.commitCount
            let stored = try await database.mutations.enqueue(drafts)
            #expect(database.commitCount == before + 1)
            #expect(stored.map(\.id) == drafts.map(\.id))
            #expect(stored.map(\.sequence) == stored.map(\.sequence).sorted())
            #expect(try database.mutations.list() == stored)
            #expect(try database.heads() == drafts.prefix(3).map(\.id))
        }
    }

    @Test("No number is given again to many, though those that had it are gone")
    func newNumbers() async throws {
        try await withOperations { database in
            let first = try await database.mutations.enqueue((0..<90).map { draft("\($0)") })
            #expect(try await database.mutations.discardAll(in: app, now: noon) == 90)
            let second = try await database.mutations.enqueue((0..<90).map { draft("\($0)") })
            #expect(try #require(first.last).sequence < #require(second.first).sequence)
        }
    }

    @Test("A mutation that cannot be queued is named, and none is queued")
    func allOrNone() async throws {
        try await withOperations { database in
            let taken = try await database.enqueue(draft(key: "taken"))
            var noObject = draft()
            noObject.content.variables = json("[]")
            let bad: [(MutationDraft, OperationsError.Code)] = [
                (draft(key: "taken"), .duplicate), (noObject, .invalid), (draft(key: ""), .invalid),
                (draft(variables: #"{"id":"\#(TemporaryID().text)"}"#), .unknownTemporaryID),
            ]
            for (draft, code) in bad {
                let drafts = [LarderOperationsTests.draft(), draft, LarderOperationsTests.draft(in: "new")]
                await expectFailure(code) { _ = try await database.mutations.enqueue(drafts) }
            }
            #expect(try database.mutations.list().map(\.id) == [taken])
            #expect(try await database.pool.read { try $0.partition("new") } == nil)
        }
    }

    @Test("Mutations that refer to others lie between many that do not, each at its place")
    func mixed() async throws {
        try await withOperations { database in
            let drafts = (0..<90).map { number in
                switch number {
                case 7: draft("7", key: "its own")
                case 40: draft("\(number)", temporaryIDs: [TemporaryID()])
                case 77: draft("\(number)", in: "another", expires: after(9))
                default: draft("\(number)", variables: #"{"number":\#(number)}"#)
                }
            }
            let stored = try await database.mutations.enqueue(drafts)
            #expect(stored.map(\.id) == drafts.map(\.id))
            #expect(zip(stored, stored.dropFirst()).allSatisfy { $0.sequence < $1.sequence })
            #expect(stored.map(\.lane) == drafts.map(\.lane))
            #expect(stored.map(\.content) == drafts.map(\.content))
            #expect(try database.mutations.list() == stored)
            // The next one's place is behind them.
            let next = try await database.mutations.enqueue(draft())
            #expect(try #require(stored.last).sequence < next.sequence)
        }
    }

    @Test("Of very many mutations that are queued at once, each keeps which objects it touches")
    func touched() async throws {
        try await withOperations { database in
            var drafts = (0..<60).map { draft("\($0)") }
            for index in drafts.indices { drafts[index].touched = [UInt8(index), 7] }
            _ = try await database.mutations.enqueue(drafts)
            #expect(try database.mutations.list().map(\.touched) == drafts.map(\.touched))
        }
    }

    @Test("Very many mutations that are queued at once expire at their times")
    func expiries() async throws {
        try await withOperations { database in
            let drafts = (0..<60).map { draft("\($0)", expires: after(9)) }
            _ = try await database.mutations.enqueue(drafts)
            #expect(try await database.mutations.expire(in: app, now: after(8)) == [])
            #expect(try await database.mutations.expire(in: app, now: after(9)) == drafts.map(\.id))
        }
    }

    @Test("Of very many the one is named that is queued already, or settled", arguments: [3, 30, 59], [true, false])
    func known(place: Int, isSettled: Bool) async throws {
        try await withOperations { database in
            var drafts = (0..<60).map { draft("\($0)") }
            let taken = try await database.enqueue(drafts[place])
            if isSettled { try await database.complete(taken) }
            drafts[place].lane = "again"
            let error = await failure { _ = try await database.mutations.enqueue(drafts) }
            #expect(error?.code == .duplicate)
            #expect(error?.mutation == taken)
            #expect(try database.mutations.list().map(\.id) == (isSettled ? [] : [taken]))
        }
    }

    @Test("The same id or key twice among them is refused, and none is queued")
    func twice() async throws {
        try await withOperations { database in
            let one = draft()
            await expectFailure(.duplicate) { _ = try await database.mutations.enqueue([one, one]) }
            await expectFailure(.duplicate) {
                _ = try await database.mutations.enqueue([draft(key: "k"), draft(key: "k")])
            }
            let queued = try database.mutations.list()
            #expect(queued.isEmpty)
        }
    }

    @Test("Later ones wait for earlier ones, and use their temporary ids")
    func dependent() async throws {
        try await withOperations { database in
            let token = TemporaryID()
            let maker = draft("a", temporaryIDs: [token])
            let user = draft("b", variables: #"{"id":"\#(token.text)"}"#)
            let waiter = draft("c", dependencies: [maker.id])
            let stored = try await database.mutations.enqueue([maker, user, waiter])
            #expect(stored.map(\.dependencies) == [[], [maker.id], [maker.id]])
            #expect(try database.heads() == [maker.id])
            try await database.complete(maker.id, temporaryIDs: [token: "7"])
            #expect(try database.mutation(user.id)?.content.variables == json(#"{"id":"7"}"#))
            #expect(try database.heads() == [user.id, waiter.id])
        }
    }

    @Test("In a parked partition none is queued, and none of another's with it")
    func parked() async throws {
        try await withOperations { database in
            try await database.enter(environment("a"), as: "pa")
            try await database.enter(environment("b"), as: "pb")
            await expectFailure(.parked) {
                _ = try await database.mutations.enqueue([draft(in: "pb"), draft(in: "pa")])
            }
            await expectFailure(.parked) {
                _ = try await database.mutations.enqueue([draft(in: "pb"), draft(in: "unheard of")])
            }
            #expect(try database.mutations.list().count == 0)
        }
    }

    @Test("None at all is no commit")
    func none() async throws {
        try await withOperations { database in
            let before = database.commitCount
            let stored = try await database.mutations.enqueue([])
            #expect(stored.isEmpty)
            #expect(database.commitCount == before)
        }
    }
}
