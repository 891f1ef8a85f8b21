import Foundation
import Testing

@testable import LarderOperations

@Suite("Queueing", .timeLimit(.minutes(10)))
struct EnqueueTests {
    @Test("A mutation is stored as it was given, to the millisecond")
    func stored() async throws {
        try await withOperations { database in
            var given = draft("dishes", key: "K-1", expires: after(60))
            given.content.listEdits = json(#"[{"insert":"Dish:7"}]"#)
            (given.content.updater, given.content.resolver, given.content.checkQuery) = ("u", "r", "q")
            let accepted = try await database.mutations.enqueue(given)
            #expect(try database.mutation(given.id) == accepted)
            #expect(accepted.content == given.content)
            #expect(accepted.idempotencyKey == "K-1")
            #expect(accepted.lane == "dishes")
            #expect((accepted.created, accepted.expires, accepted.notBefore) == (noon, after(60), nil))
            #expect(accepted.state == .pending && accepted.attempts == 0)
        }
    }

    @Test("The idempotency key is the id where there is no other")
    func defaultKey() async throws {
        try await withOperations { database in
            let accepted = try await database.mutations.enqueue(draft())
            #expect(accepted.idempotencyKey == accepted.id.uuidString.lowercased())
            #expect(try database.mutation(accepted.id)?.idempotencyKey == accepted.idempotencyKey)
        }
    }

    @Test("An id is used once, also when the first is settled")
    func duplicateID() async throws {
        try await withOperations { database in
            let first = draft()
            _ = try await database.enqueue(first)
            await expectFailure(.duplicate) { _ = try await database.enqueue(first) }
            try await database.complete(first.id)
            await expectFailure(.duplicate) { _ = try await database.enqueue(first) }
        }
    }

    @Test("An idempotency key is used once in a partition, unless its mutation was discarded")
    func duplicateKey() async throws {
        try await withOperations { database in
            let first = try await database.enqueue(draft(key: "k"))
            await expectFailure(.duplicate) { _ = try await database.enqueue(draft(key: "k")) }
            _ = try await database.enqueue(draft(in: "other", key: "k"))
            try await database.setAside(first)
            try await database.mutations.discard(first, dependents: .release, now: noon)
            let second = try await database.enqueue(draft(key: "k"))
            try await database.complete(second)
            await expectFailure(.duplicate) { _ = try await database.enqueue(draft(key: "k")) }
        }
    }

    @Test("Of many that share a commit one fails alone")
    func shared() async throws {
        try await withOperations { database in
            let taken = try await database.enqueue(draft(key: "taken"))
            let accepted = await withTaskGroup(of: UUID?.self) { group in
                for index in 0..<200 {
                    group.addTask { try? await database.enqueue(draft(key: index % 5 == 0 ? "taken" : nil)) }
                }
                return await group.reduce(into: Set<UUID>()) { if let id = $1 { $0.insert(id) } }
            }
            #expect(accepted.count == 160)
            #expect(try Set(database.mutations.list().map(\.id)) == accepted.union([taken]))
        }
    }

    @Test("A sequence is never used again, also when the last mutation is gone and the database was opened anew")
    func sequence() async throws {
        try await withOperations { database in
            let first = try await database.mutations.enqueue(draft())
            try await database.complete(first.id)
            let again = try OperationsDatabase(folder: database.file.deletingLastPathComponent())
            let second = try await again.mutations.enqueue(draft())
            #expect(second.sequence > first.sequence)
            try again.close()
        }
    }

    @Test("Variables that are no object are refused")
    func noObject() async throws {
        try await withOperations { database in
            await expectFailure(.invalid) { _ = try await database.enqueue(draft(variables: "")) }
            await expectFailure(.invalid) { _ = try await database.enqueue(draft(variables: "[1]")) }
            await expectFailure(.invalid) { _ = try await database.enqueue(draft(variables: #"[{"id":1}]"#)) }
            await expectFailure(.invalid) { _ = try await database.enqueue(draft(variables: #"{"id":1"#)) }
        }
    }

    @Test("Texts and bytes of any kind are kept")
    func strange() async throws {
        try await withOperations { database in
            for text in ["\u{0}", "e\u{301}", "\u{e9}", "🍲'\";--", String(repeating: "ü", count: 100_000)] {
                var given = draft(text, in: text, key: text)
                given.content.document = text
                given.content.optimisticResponse = Array(repeating: 0xFF, count: 10)
                let id = try await database.enqueue(given)
                let found = try database.mutation(id)
                #expect(found?.content == given.content)
                #expect(found?.lane.utf8.elementsEqual(text.utf8) == true)
                #expect(try database.heads(text) == [id])
            }
        }
    }
}
