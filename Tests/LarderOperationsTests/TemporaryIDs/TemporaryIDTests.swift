import Foundation
import Testing

@testable import LarderOperations

@Suite("Temporary ids", .timeLimit(.minutes(10)))
struct TemporaryIDTests {
    private let id = TemporaryID()
    private var variables: String { #"{"id":"\#(id.text)"}"# }

    private func text(_ bytes: [UInt8]?) -> String { String(decoding: bytes ?? [], as: UTF8.self) }

    @Test("A temporary id in a later mutation is replaced by the server's, everywhere and in the lane's name")
    func replaced() async throws {
        try await withOperations { database in
            let optimistic = #"{"dish":{"id":"\#(id.text)"}}"#
            let maker = try await database.enqueue(
                draft("Dish:\(id.text)", variables: variables, optimistic: optimistic, temporaryIDs: [id]))
            let user = try await database.enqueue(
                draft(
                    "Dish:\(id.text)", variables: variables, optimistic: optimistic, edits: #"["Dish:\#(id.text)"]"#))
            #expect(try database.mutation(user)?.dependencies == [maker])
            #expect(try database.mutation(maker)?.temporaryIDs == [id])
            try await database.mutations.answer(
                database.begin(maker).attempt, json("{}"), temporaryIDs: [id: "7"], now: noon)
            let found = try #require(try database.mutation(user))
            #expect(text(found.content.variables) == #"{"id":"7"}"#)
            #expect(text(found.content.optimisticResponse) == #"{"dish":{"id":"7"}}"#)
            #expect(text(found.content.listEdits) == #"["Dish:7"]"#)
            #expect(found.lane == "Dish:7")
            let own = try #require(try database.mutation(maker))
            #expect(text(own.content.optimisticResponse) == #"{"dish":{"id":"7"}}"#)
            #expect(text(own.content.variables) == variables)
            try await database.mutations.settle(maker, now: noon)
            #expect(try database.heads() == [user])
        }
    }

    @Test("The real id is known to what is queued later, also after a restart")
    func kept() async throws {
        try await withOperations { database in
            let maker = try await database.enqueue(draft(temporaryIDs: [id]))
            try await database.complete(maker, temporaryIDs: [id: "7"])
            let again = try OperationsDatabase(folder: database.file.deletingLastPathComponent())
            let later = try await again.mutations.enqueue(draft("Dish:\(id.text)", variables: variables))
            #expect(text(later.content.variables) == #"{"id":"7"}"#)
            #expect(later.lane == "Dish:7")
            #expect(try again.mutation(later.id) == later)
            #expect(later.dependencies == [])
            try again.close()
            try await database.mutations.prune(before: after(1))
            await expectFailure(.unknownTemporaryID) { _ = try await database.enqueue(draft(variables: variables)) }
        }
    }

    @Test("A temporary id is not replaced in the text of notes, nor in another partition")
    func elsewhere() async throws {
        try await withOperations { database in
            let maker = try await database.enqueue(draft(temporaryIDs: [id]))
            let note = #"{"note":"about \#(id.text)"}"#
            let user = try await database.enqueue(draft(variables: note))
            try await database.complete(maker, temporaryIDs: [id: "7"])
            #expect(text(try database.mutation(user)?.content.variables) == note)
            await expectFailure(.unknownTemporaryID) {
                _ = try await database.enqueue(draft(in: "other", variables: variables))
            }
        }
    }

    @Test("A temporary id that no mutation reserved is refused, and so is reserving one twice")
    func unknown() async throws {
        try await withOperations { database in
            await expectFailure(.unknownTemporaryID) { _ = try await database.enqueue(draft(variables: variables)) }
            _ = try await database.enqueue(draft(temporaryIDs: [id]))
            await expectFailure(.duplicate) { _ = try await database.enqueue(draft(temporaryIDs: [id])) }
            #expect(try database.mutations.list().count == 1)
        }
    }

    @Test("A mutation that holds a dead letter's temporary id waits, and has the real id after the replay")
    func deadMaker() async throws {
        try await withOperations { database in
            let maker = try await database.enqueue(draft(temporaryIDs: [id]))
            let user = try await database.enqueue(draft(variables: variables))
            try await database.setAside(maker)
            let late = try await database.enqueue(draft(variables: variables))
            let free = try await database.enqueue(draft())
            #expect(try database.heads() == [free])
            try await database.mutations.replay(maker, now: noon)
            try await database.complete(maker, temporaryIDs: [id: "7"])
            for id in [user, late] {
                #expect(text(try database.mutation(id)?.content.variables) == #"{"id":"7"}"#)
            }
        }
    }

    @Test("A mutation that is set aside while it holds a temporary id has the real id when it is replayed")
    func deadUser() async throws {
        try await withOperations { database in
            let maker = try await database.enqueue(draft(temporaryIDs: [id]))
            let user = try await database.enqueue(draft(variables: variables))
            try await database.setAside(user)
            try await database.complete(maker, temporaryIDs: [id: "7"])
            try await database.mutations.replay(user, now: noon)
            #expect(try await database.begin(user).content.variables == json(#"{"id":"7"}"#))
        }
    }

    @Test("A mutation that holds an id which will never be real is set aside, whatever the caller says of dependents")
    func lost() async throws {
        try await withOperations { database in
            let maker = try await database.enqueue(draft(temporaryIDs: [id]))
            let user = try await database.enqueue(draft(variables: variables))
            try await database.setAside(maker)
            #expect(try await database.mutations.discard(maker, dependents: .release, now: noon) == [user])
            #expect(try database.mutation(user)?.failure?.class == .temporaryIDLost)
            await expectFailure(.unknownTemporaryID) { try await database.mutations.replay(user, now: noon) }
            try await database.mutations.edit(user, Revision(variables: json(#"{"id":"9"}"#)))
            try await database.mutations.replay(user, now: noon)
            #expect(try database.heads() == [user])
        }
    }

    @Test(
        "A settled mutation is a duplicate when it is queued again, though its temporary id is no longer known")
    func settledAgain() async throws {
        try await withOperations { database in
            let maker = try await database.enqueue(draft(temporaryIDs: [id]))
            let user = draft(variables: variables)
            _ = try await database.enqueue(user)
            try await database.setAside(maker)
            _ = try await database.mutations.discard(maker, dependents: .release, now: noon)
            _ = try await database.mutations.discard(user.id, dependents: .release, now: noon)
            await expectFailure(.duplicate) { _ = try await database.enqueue(user) }
            await expectFailure(.unknownTemporaryID) { _ = try await database.enqueue(draft(variables: variables)) }
        }
    }

    @Test("An answer without the real id sets aside the mutations that would send the temporary one")
    func unanswered() async throws {
        try await withOperations { database in
            let maker = try await database.enqueue(draft(temporaryIDs: [id]))
            let user = try await database.enqueue(draft(variables: variables))
            let child = try await database.enqueue(draft(dependencies: [user]))
            try await database.complete(maker)
            #expect(try database.mutation(user)?.failure?.class == .temporaryIDLost)
            #expect(try database.mutation(child)?.isStalled == true)
        }
    }

    @Test("Of two temporary ids the one that the answer leaves out is lost, and the other has its real one")
    func oneOfTwo() async throws {
        try await withOperations { database in
            let missing = TemporaryID()
            let maker = try await database.enqueue(draft(temporaryIDs: [id, missing]))
            let user = try await database.enqueue(draft(variables: variables))
            let loser = try await database.enqueue(draft(variables: #"{"id":"\#(missing.text)"}"#))
            try await database.complete(maker, temporaryIDs: [id: "7"])
            #expect(text(try database.mutation(user)?.content.variables) == #"{"id":"7"}"#)
            #expect(try database.state(user) == .pending)
            #expect(try database.mutation(loser)?.failure?.class == .temporaryIDLost)
        }
    }

    @Test("A mutation answered, set aside and replayed keeps the real id, though the second answer gives none")
    func answeredTwice() async throws {
        try await withOperations { database in
            let maker = try await database.enqueue(draft(variables: variables, temporaryIDs: [id]))
            try await database.mutations.answer(
                database.begin(maker).attempt, json("{}"), temporaryIDs: [id: "7"], now: noon)
            try await database.mutations.setAside(maker, expecting: .acknowledged, rejected, now: noon)
            let optimistic = #"{"dish":{"id":"\#(id.text)"}}"#
            try await database.mutations.edit(
                maker, Revision(variables: json(variables), optimisticResponse: json(optimistic)))
            try await database.mutations.replay(maker, now: noon)
            let found = try #require(try database.mutation(maker))
            #expect(text(found.content.variables) == variables)
            #expect(text(found.content.optimisticResponse) == #"{"dish":{"id":"7"}}"#)
            try await database.complete(maker)
            let later = try await database.mutations.enqueue(draft(variables: variables))
            #expect(text(later.content.variables) == #"{"id":"7"}"#)
        }
    }

    @Test("A dead letter whose temporary id is lost keeps the reason that it had")
    func lostTwice() async throws {
        try await withOperations { database in
            let maker = try await database.enqueue(draft(temporaryIDs: [id]))
            let user = try await database.enqueue(draft(variables: variables))
            for dead in [maker, user] { try await database.setAside(dead) }
            #expect(try await database.mutations.discard(maker, dependents: .release, now: noon) == [])
            #expect(try database.mutation(user)?.failure == rejected)
            await expectFailure(.unknownTemporaryID) { try await database.mutations.replay(user, now: noon) }
        }
    }

    @Test("An answer with another mutation's ids is refused, and the attempt goes on")
    func anothers() async throws {
        try await withOperations { database in
            let first = try await database.enqueue(draft("a", temporaryIDs: [id]))
            let second = try await database.enqueue(draft("b"))
            let attempt = try await database.begin(second).attempt
            await expectFailure(.invalid) {
                try await database.mutations.answer(attempt, json("{}"), temporaryIDs: [id: "7"], now: noon)
            }
            #expect(try database.state(second) == .inFlight)
            await expectFailure(.invalid) {
                try await database.mutations.answer(
                    database.begin(first).attempt, json("{}"), temporaryIDs: [id: ""], now: noon)
            }
        }
    }

    @Test(
        "A dead letter edited to hold a temporary id depends on the mutation that reserved it; a later one is refused")
    func editedIn() async throws {
        try await withOperations { database in
            let early = try await database.enqueue(draft("a"))
            let maker = try await database.enqueue(draft("b", temporaryIDs: [id]))
            let late = try await database.enqueue(draft("c"))
            for dead in [early, late] { try await database.setAside(dead) }
            let revision = Revision(variables: json(variables))
            await expectFailure(.invalid) { try await database.mutations.edit(early, revision) }
            try await database.mutations.edit(late, revision)
            #expect(try database.mutation(late)?.dependencies == [maker])
            try await database.mutations.replay(late, now: noon)
            try await database.complete(maker, temporaryIDs: [id: "7"])
            #expect(text(try database.mutation(late)?.content.variables) == #"{"id":"7"}"#)
        }
    }

    @Test("A real id is known until it is pruned, or forgotten with its partition's outcomes", arguments: [0, 1])
    func forgotten(way: Int) async throws {
        try await withOperations { database in
            let queue = database.mutations
            let maker = try await database.enqueue(draft("a", temporaryIDs: [id]))
            try await database.complete(maker, temporaryIDs: [id: "7"])
            try await queue.prune(before: noon)
            try await queue.forgetOutcomes(in: "other")
            #expect(try queue.realIDs(of: [id], in: app) == [id: "7"])
            if way == 0 { try await queue.prune(before: after(1)) } else { try await queue.forgetOutcomes(in: app) }
            #expect(try queue.realIDs(of: [id], in: app).isEmpty)
            await expectFailure(.unknownTemporaryID) {
                _ = try await database.enqueue(draft("b", variables: variables))
            }
        }
    }

    @Test("An edited mutation waits for the maker of a temporary id, though its new variables hold the id no more")
    func editedOut() async throws {
        try await withOperations { database in
            let maker = try await database.enqueue(draft("a", temporaryIDs: [id]))
            let user = try await database.enqueue(draft("b", variables: variables))
            try await database.setAside(user)
            try await database.mutations.edit(user, Revision(variables: json(#"{"id":"9"}"#)))
            #expect(try database.mutation(user)?.dependencies == [maker])
            try await database.mutations.replay(user, now: noon)
            #expect(try database.heads() == [maker])
        }
    }

    @Test("A partition knows the real ids that its own answers have given, and no other partition's")
    func ownRealIDs() async throws {
        try await withOperations { database in
            let maker = try await database.enqueue(draft(temporaryIDs: [id]))
            try await database.complete(maker, temporaryIDs: [id: "7"])
            _ = try await database.enqueue(draft(in: "other"))
            #expect(try database.mutations.realIDs(of: [id], in: app) == [id: "7"])
            #expect(try database.mutations.realIDs(of: [id], in: "other").isEmpty)
        }
    }

    @Test("Pruning outcomes keeps the real id of an answer that is not stored yet")
    func keptUntilSettled() async throws {
        try await withOperations { database in
            let queue = database.mutations
            let maker = try await database.enqueue(draft("a", temporaryIDs: [id]))
            try await queue.answer(database.begin(maker).attempt, json("{}"), temporaryIDs: [id: "7"], now: noon)
            try await queue.prune(before: after(1))
            let later = try await database.enqueue(draft("b", variables: variables))
            #expect(text(try database.mutation(later)?.content.variables) == #"{"id":"7"}"#)
        }
    }

    @Test("Forgetting outcomes leaves a queued mutation its temporary id, in whose place the real one comes")
    func forgottenBesideQueued() async throws {
        try await withOperations { database in
            let maker = try await database.enqueue(draft("a", temporaryIDs: [id]))
            let user = try await database.enqueue(draft("b", variables: variables))
            try await database.mutations.forgetOutcomes(in: app)
            try await database.complete(maker, temporaryIDs: [id: "7"])
            #expect(text(try database.mutation(user)?.content.variables) == #"{"id":"7"}"#)
        }
    }
}
