import Foundation
import LarderOperations
import LarderRecords
import LarderTestSupport
import Synchronization
import Testing

@testable import Larder

@Suite("The next mutation's request", .timeLimit(.minutes(10)))
struct NextRequestTests {
    /// Two mutations that are queued, and whose ids are counted as requests are made for them.
    private func withTwo(
        _ body: (OperationsDatabase, [Mutation], NextRequest, () -> [UUID]) async throws -> Void
    ) async throws {
        try await withStoreFixture(ScriptedServer.rating()) { (app) throws in
            for stars in 1...2 { try await app.enqueue(giveStars("1", stars)) }
            let database = try app.core.operationsStore.database()
            let made = Mutex<[UUID]>([])
            let core = app.core
            let requests = NextRequest(OutsideExecutor()) { (mutation) throws(LarderError) in
                made.withLock { $0.append(mutation.id) }
                guard mutation.attempts < 5 else { throw LarderError(.variables, "five are too many") }
                let operation = try PartitionCore.operation(of: mutation)
                let bound = try core.operations.boundOnce(operation)
                return MutationRequest(
                    sent: try core.request(operation, bound, headers: []), operation: bound, isAsQueued: true)
            }
            try await body(database, try database.mutations.list(), requests) { made.withLock { $0 } }
        }
    }

    @Test("Is made once where it was expected, and where another comes, or another attempt, for that one")
    func expected() async throws {
        try await withTwo { _, queued, requests, made in
            requests.expect(queued[0])
            let first = try await requests.of(queued[0])
            #expect(String(decoding: first.sent.variables, as: UTF8.self).contains(#""stars":1"#))
            #expect(made() == [queued[0].id])
            requests.expect(queued[0])
            let second = try await requests.of(queued[1])
            #expect(String(decoding: second.sent.variables, as: UTF8.self).contains(#""stars":2"#))
            requests.expect(queued[0])
            var again = queued[0]
            again.attempts += 1
            again.content.variables = Array(#"{"recipe":"1","stars":4}"#.utf8)
            let third = try await requests.of(again)
            #expect(String(decoding: third.sent.variables, as: UTF8.self).contains(#""stars":4"#))
            // What was expected last counts.
            requests.expect(queued[0])
            requests.expect(again)
            let fourth = try await requests.of(again)
            #expect(String(decoding: fourth.sent.variables, as: UTF8.self).contains(#""stars":4"#))
        }
    }

    @Test("Throws what its making throws, expected or not")
    func unmakeable() async throws {
        try await withTwo { _, queued, requests, _ in
            var bad = queued[0]
            bad.attempts = 5
            for isExpected in [true, false] {
                if isExpected { requests.expect(bad) }
                let error = await #expect(throws: LarderError.self) { _ = try await requests.of(bad) }
                #expect(error?.code == .variables)
            }
        }
    }

    @Test("Is expected anew where the commit is made again, and in vain where there is none")
    func madeAgain() async throws {
        try await withTwo { database, queued, _, _ in
            let queue = database.mutations
            let first = try await queue.begin(queued[0].id, owner: "me", now: Date())
            let seen = Mutex<[Attempt]>([])
            let note: @Sendable (Mutation) -> Void = { next in seen.withLock { $0.append(next.attempt) } }
            // One that fails in the same transaction: the others are made again, each by itself.
            let next = try await withThrowingTaskGroup(of: Mutation?.self) { group in
                for _ in 0..<20 {
                    group.addTask {
                        try? await queue.settle(UUID(), now: Date())
                        return nil
                    }
                }
                group.addTask {
                    try await queue.answer(
                        first.attempt, Array("{}".utf8), temporaryIDs: [:], beginningNextAs: "me", now: Date(),
                        expecting: note)
                }
                var found: Mutation?
                for try await next in group { found = next ?? found }
                return found
            }
            #expect(next?.id == queued[1].id)
            #expect(seen.withLock { Set($0) } == [try #require(next).attempt])
            await #expect(throws: OperationsError.self) {
                _ = try await queue.answer(
                    first.attempt, Array("{}".utf8), temporaryIDs: [:], beginningNextAs: "me", now: Date(),
                    expecting: { _ in Issue.record("nothing was begun") })
            }
        }
    }
}
