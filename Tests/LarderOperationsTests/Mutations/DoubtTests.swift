import Foundation
import Testing

@testable import LarderOperations

private let lost = MutationFailure(.outcomeUnknown, message: "lost", time: noon)

@Suite("Doubts on disk", .timeLimit(.minutes(10)))
struct DoubtTests {
    private static let header = KeyDelivery.header("Idempotency-Key")

    private func begin(
        _ id: UUID, _ telling: KeyDelivery, _ database: OperationsDatabase
    ) async throws -> Mutation {
        try await database.mutations.begin(id, owner: "me", telling: telling, now: noon)
    }

    private func stored(_ id: UUID, _ database: OperationsDatabase) throws -> Mutation {
        guard case .present(let mutation) = try database.mutations.find(id) else {
            throw OperationsError(.notFound, "")
        }
        return mutation
    }

    @Test(
        "After an attempt in doubt nothing is sent that the server would not know for its repeat",
        arguments: [
            ("Idempotency-Key", "idempotency-key", true), ("Idempotency-Key", "X-Other", false),
            ("", "Idempotency-Key", false),
            ("Idempotency-Key", "", false), ("", "", false),
        ])
    func repeats(first: String, second: String, isSent: Bool) async throws {
        try await withOperations { database in
            func telling(_ name: String) -> KeyDelivery { name.isEmpty ? .none : .header(name) }
            let id = try await database.enqueue(draft())
            let attempt = try await begin(id, telling(first), database)
            #expect(attempt.telling == telling(first) && attempt.doubt == nil)
            try await database.mutations.retryLater(attempt.attempt, at: nil, lost, now: noon)
            #expect(try stored(id, database).doubt == telling(first))
            #expect(try await begin(id, telling(second), database).telling == (isSent ? telling(second) : nil))
        }
    }

    @Test("A key in a variable is not the same as a key in a header of that name")
    func variable() async throws {
        try await withOperations { database in
            for (first, second, isSame) in [
                (.variable("key"), .header("key"), false), (.header("key"), .variable("key"), false),
                (.variable("key"), .variable("key"), true),
            ] as [(KeyDelivery, KeyDelivery, Bool)] {
                let id = try await database.enqueue(draft(UUID().uuidString))
                try await database.mutations.retryLater(
                    begin(id, first, database).attempt, at: nil, lost, now: noon)
                #expect(try await begin(id, second, database).telling == (isSame ? second : nil))
            }
        }
    }

    @Test("A mutation in doubt whose key was told by one variable is not sent again with the key in another variable")
    func otherVariable() async throws {
        try await withOperations { database in
            let id = try await database.enqueue(draft())
            let attempt = try await begin(id, .variable("key"), database)
            try await database.mutations.retryLater(attempt.attempt, at: nil, lost, now: noon)
            #expect(try await begin(id, .variable("other"), database).telling == nil)
        }
    }

    @Test("That a later attempt had no effect leaves the doubt; that none had any ends it, and a replay answers for it")
    func remaining() async throws {
        try await withOperations { database in
            let id = try await database.enqueue(draft())
            let queue = database.mutations
            try await queue.retryLater(begin(id, Self.header, database).attempt, at: nil, lost, now: noon)
            try await queue.retryLater(begin(id, Self.header, database).attempt, at: nil, offline, now: noon)
            #expect(try stored(id, database).doubt == Self.header)
            try await queue.retryLater(
                begin(id, .none, database).attempt, at: nil, lost, leaving: RemainingDoubt.none, now: noon)
            #expect(try stored(id, database).doubt == nil)
            try await queue.retryLater(begin(id, .none, database).attempt, at: nil, lost, now: noon)
            #expect(try stored(id, database).doubt == KeyDelivery.none)
            _ = try await begin(id, .none, database)
            try await queue.setAside(id, expecting: .inFlight, lost, now: noon)
            try await queue.replay(id, now: noon)
            #expect(try stored(id, database).doubt == .answeredFor)
            #expect(try await begin(id, .none, database).telling == KeyDelivery.none)
        }
    }

    @Test("An attempt without effect leaves no doubt, and one that its process did not end says how it told the key")
    func inFlight() async throws {
        try await withOperations { database in
            let id = try await database.enqueue(draft())
            try await database.mutations.retryLater(
                begin(id, .none, database).attempt, at: nil, offline, now: noon)
            #expect(try stored(id, database).doubt == nil)
            _ = try await begin(id, Self.header, database)
            let found = try database.mutations.recover(in: app, isAlive: { _ in false })
            #expect(found.map(\.telling) == [Self.header])
        }
    }

    @Test("A doubt of an older version, which did not note how the key was told, allows a repeat that tells it anyhow")
    func unnoted() async throws {
        try await withOperations { database in
            for (telling, told) in [(Self.header, Self.header), (.none, nil)] as [(KeyDelivery, KeyDelivery?)] {
                let id = try await database.enqueue(draft(UUID().uuidString))
                try database.writeNow { db in
                    try db.run(
                        "UPDATE mutation SET doubt = ? WHERE id = ?", [KeyDelivery.unnoted.rawValue, id])
                }
                #expect(try await begin(id, telling, database).telling == told)
            }
        }
    }

    @Test("A mutation in doubt whose time is over is set aside as one whose outcome is not known")
    func expired() async throws {
        try await withOperations { database in
            let id = try await database.enqueue(draft(expires: after(10)))
            try await database.mutations.retryLater(
                begin(id, Self.header, database).attempt, at: nil, lost, now: noon)
            #expect(try await database.mutations.expire(in: app, now: after(10)) == [id])
            let found = try stored(id, database)
            #expect(found.state == .deadLetter && found.failure?.class == .outcomeUnknown)
            #expect(found.failure?.message != lost.message)
        }
    }

    @Test(
        "A failure that says nothing of earlier attempts leaves what is said of one in doubt; another does not",
        arguments: [
            (.offline, .outcomeUnknown), (.throttled, .outcomeUnknown), (.notSignedIn, .outcomeUnknown),
            (.unusableServer, .outcomeUnknown), (.serverFault, .serverFault), (.rejected, .rejected),
        ] as [(MutationFailure.Class, MutationFailure.Class)])
    func laterFailure(later: MutationFailure.Class, told: MutationFailure.Class) async throws {
        try await withOperations { database in
            let id = try await database.enqueue(draft())
            for failure in [lost, MutationFailure(later, message: "later", time: noon)] {
                try await database.mutations.retryLater(
                    begin(id, Self.header, database).attempt, at: nil, failure, now: noon)
            }
            let failure = try stored(id, database).failure
            #expect(failure?.class == told && failure?.message == "later")
        }
    }
}
