import Foundation
import Larder
import LarderTestSupport
import Synchronization
import Testing

@Suite("Receipts of queued mutations", .timeLimit(.minutes(10)))
struct ReceiptTests {
    /// Notes what a receipt tells, until that ends.
    private final class Reader: Sendable {
        private let told = Mutex<[MutationStatus]>([])
        private let end = Flag()

        init(_ receipt: MutationReceipt) {
            Task {
                for await status in receipt.changes { told.withLock { $0.append(status) } }
                end.set()
            }
        }

        var states: [MutationStatus] { told.withLock { $0 } }
        var isOver: Bool { end.isSet }
    }

    @Test("Each status is told once, the last of them that of the end")
    func changes() async throws {
        try await withStoreFixture(ScriptedServer.rating()) { app in
            let receipt = try await app.enqueue(giveStars("1", 5))
            let reader = Reader(receipt)
            try await eventually { !reader.states.isEmpty }
            try await Task.sleep(for: .milliseconds(20))
            #expect(reader.states.map(\.state) == [.pending])
            try await MutationRunner(app).drain()
            try await eventually { reader.isOver }
            #expect(zip(reader.states, reader.states.dropFirst()).allSatisfy { $0 != $1 })
            #expect(reader.states.last?.state == .applied)
        }
    }

    @Test("Another attempt is told of a mutation whose state is the same as before")
    func otherAttempt() async throws {
        try await withOpenStore { folder, _, app in
            let reader = Reader(try await app.enqueue(giveStars("1", 5)))
            try await eventually { reader.states.map(\.attempts) == [0] }
            try OtherProgram(folder).run("UPDATE mutation SET attempts = 1")
            try await eventually { reader.states.map(\.attempts) == [0, 1] }
            #expect(reader.states.map(\.state) == [.pending, .pending])
        }
    }

    @Test("What is told of a mutation goes on where it was set aside, and ends where it is discarded")
    func discarded() async throws {
        let server = ScriptedServer.rating(errors: { _ in #"{"data":null,"errors":[{"message":"no"}]}"# })
        try await withStoreFixture(server) { app in
            let receipt = try await app.enqueue(giveStars("1", 5))
            let reader = Reader(receipt)
            try await quickRunner(app).drain()
            try await eventually { reader.states.last?.state == .deadLetter }
            #expect(!reader.isOver)
            try await app.discardMutation(receipt.id, dependents: .release)
            try await eventually { reader.isOver }
            #expect(reader.states.last?.state == .discarded)
        }
    }

    @Test("The outcome of a mutation that was given up says why it had been set aside")
    func reason() async throws {
        let server = ScriptedServer.rating(errors: { _ in #"{"data":null,"errors":[{"message":"no"}]}"# })
        try await withStoreFixture(server) { app in
            let receipt = try await app.enqueue(giveStars("1", 5))
            try await quickRunner(app).drain()
            try await app.discardMutation(receipt.id, dependents: .release)
            let outcome = try await receipt.outcome(within: .seconds(60))
            #expect(!outcome.isApplied && outcome.failure?.kind == .rejected && outcome.failure?.message == "no")
        }
    }

    @Test("A wait that is cancelled ends at once, and says so")
    func cancelledWait() async throws {
        try await withStoreFixture { app in
            let receipt = try await app.enqueue(giveStars("1", 5))
            let waiting = Task {
                await #expect(throws: LarderError.self) { _ = try await receipt.outcome(within: .seconds(5)) }
            }
            waiting.cancel()
            #expect(await waiting.value?.code == .cancelled)
        }
    }

    @Test("A wait for a mutation of a queue that cannot be read says why")
    func unreadable() async throws {
        try await withTemporaryFolder { folder in
            let store = try Store.open(at: folder, schema: try Schema(parsing: fixtureSchema))
            let receipt = try await store.partition().enqueue(giveStars("1", 5))
            try OtherProgram(folder).run("ALTER TABLE mutation RENAME TO lost")
            let error = await #expect(throws: LarderError.self) { _ = try await receipt.outcome(within: .seconds(60)) }
            #expect(error?.code.rawValue.hasPrefix("operations.") == true)
            try OtherProgram(folder).run("ALTER TABLE lost RENAME TO mutation")
            try? store.close()
        }
    }

    @Test("A wait for a mutation that is unknown, or whose outcome was deleted, throws unknownMutation")
    func unknown() async throws {
        try await withOpenStore(ScriptedServer.rating()) { folder, _, app in
            let none = app.mutation(MutationID(UUID()))
            await expectCode(.unknownMutation) { _ = try await none.outcome(within: .seconds(60)) }
            let receipt = try await app.enqueue(giveStars("1", 5))
            try await quickRunner(app).drain()
            #expect(try await receipt.outcome(within: .seconds(60)).isApplied)
            try OtherProgram(folder).run("DELETE FROM outcome")
            await expectCode(.unknownMutation) { _ = try await receipt.outcome(within: .seconds(60)) }
        }
    }

    @Test("A failure that the library knows by its code is told by that, and not as a code of the server's")
    func knownFailure() async throws {
        try await withStoreFixture(ScriptedServer.away) { app in
            let receipt = try await app.enqueue(giveStars("1", 5))
            try await runIntoPause(app, receipt) { _ in }
            let failure = try #require(try receipt.status()?.failure)
            #expect(failure.code == .transportUnreachable)
            #expect(failure.serverCode == nil)
        }
    }

    @Test("The status says how many attempts of a mutation were begun")
    func attempts() async throws {
        try await withStoreFixture(ScriptedServer.away) { app in
            let receipt = try await app.enqueue(giveStars("1", 5))
            #expect(try receipt.status()?.attempts == 0)
            try await runIntoPause(app, receipt) { _ in }
            #expect(try receipt.status()?.attempts == 1)
        }
    }

    @Test("The status says of a mutation that it waits for one that was set aside, for as long as it does")
    func stalled() async throws {
        let server = ScriptedServer.rating(errors: { _ in #"{"data":null,"errors":[{"message":"no"}]}"# })
        try await withStoreFixture(server) { app in
            let first = try await app.enqueue(giveStars("1", 5))
            let second = try await app.enqueue(giveStars("1", 4), options: MutationOptions(dependencies: [first.id]))
            #expect(try second.status()?.isStalled == false)
            try await quickRunner(app).drain()
            #expect(try second.status()?.isStalled == true)
            try await app.discardMutation(first.id, dependents: .release)
            #expect(try second.status()?.isStalled == false)
        }
    }

    @Test("The id of a mutation is written in small letters, and read in any")
    func idText() throws {
        let id = try #require(MutationID("5A0B1C2D-3E4F-4A5B-8C6D-7E8F9A0B1C2D"))
        #expect("\(id)" == "5a0b1c2d-3e4f-4a5b-8c6d-7e8f9a0b1c2d")
        #expect(MutationID("\(id)") == id && MutationID("5a0b1c2d") == nil)
    }

    @Test("The status of an applied mutation tells the place that the mutation had in the order")
    func placeOfApplied() async throws {
        try await withStoreFixture(ScriptedServer.rating()) { app in
            let receipt = try await app.enqueue(giveStars("1", 5))
            let place = try #require(try receipt.status()).sequence
            try await quickRunner(app).drain()
            let status = try #require(try receipt.status())
            #expect(place > 0 && status.state == .applied && status.sequence == place)
        }
    }

    @Test("The outcome of a mutation that took effect in part has the errors of the fields that failed")
    func partialOutcome() async throws {
        let error = #"{"message":"no such recipe","path":["second"],"extensions":{"code":"BAD"}}"#
        let server = ScriptedServer { _, _ in ScriptedServer.firstOfTwo(errors: error) }
        try await withStoreFixture(server, schema: schemaOfPartialFailure) { app in
            let receipt = try await app.enqueue(giveStarsToTwo())
            try await quickRunner(app).drain()
            guard case .applied(_, let errors) = try await receipt.outcome(within: .seconds(60)) else {
                Issue.record("the mutation did not take effect")
                return
            }
            #expect(errors.map(\.message) == ["no such recipe"] && errors.map(\.errorType) == ["BAD"])
        }
    }

    @Test("The status of a mutation that was set aside has all of the server's errors, with their places and kinds")
    func errorsOfFailure() async throws {
        let server = ScriptedServer.rating(errors: { _ in
            #"{"errors":[{"message":"no","locations":[{"line":3,"column":9}],"extensions":{"code":"BAD"}},"#
                + #"{"message":"never"}]}"#
        })
        let errors = try #require(try await settled(by: server).failure).errors
        #expect(errors.map(\.message) == ["no", "never"])
        #expect(errors.first?.errorType == "BAD" && errors.first?.locations == [.init(line: 3, column: 9)])
    }
}
