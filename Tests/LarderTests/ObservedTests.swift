import Foundation
import Larder
import LarderTestSupport
import Observation
import Synchronization
import Testing

@Suite("Observed states", .timeLimit(.minutes(5)))
@MainActor
struct ObservedTests {
    /// Waits until what is observed satisfies a condition, as a view does: by its changes.
    private func change<State>(
        of observed: Observed<State>, until condition: (Observed<State>) -> Bool
    ) async {
        while true {
            let (changes, continuation) = AsyncStream.makeStream(of: Void.self)
            let isReached = withObservationTracking {
                condition(observed)
            } onChange: {
                continuation.yield()
            }
            if isReached { return }
            for await _ in changes { break }
            // The change is told before it is made.
            await Task.yield()
        }
    }

    private nonisolated func withApp(
        _ server: ScriptedServer? = nil, _ body: @MainActor @Sendable (Partition) async throws -> Void
    ) async throws {
        try await withStoreFixture(server) { app in try await body(app) }
    }

    @Test("A view that shows a watch is told of the first state and of each change")
    func watched() async throws {
        try await withApp { app in
            let list = Observed(try app.watch(recipeList))
            #expect(list.state == nil)
            await change(of: list) { $0.state != nil }
            #expect(list.state?.complete == nil && !list.hasEnded)
            try await app.write(recipeList, json: soupAndBread("Soup"))
            await change(of: list) { $0.state?.complete != nil }
            #expect(list.state?.complete?["recipes"]?[0]?["title"]?.string == "Soup")
        }
    }

    @Test("The end of a sequence is told, and the last state stays")
    func ended() async {
        let numbers = AsyncStream<Int> { continuation in
            continuation.yield(7)
            continuation.finish()
        }
        let observed = Observed(numbers)
        await change(of: observed) { $0.hasEnded }
        #expect(observed.state == 7)
    }

    @Test("A screen that shows a queued mutation is told where it stands, also when it is sent once more")
    func receipt() async throws {
        let refuses = Flag()
        refuses.set()
        let server = ScriptedServer { _, request in
            refuses.isSet
                ? ScriptedServer.body(
                    #"{"data":null,"errors":[{"message":"No","extensions":{"code":"BAD_STARS"}}]}"#)
                : ScriptedServer.done(request)
        }
        try await withApp(server) { app in
            let receipt = try await app.enqueue(giveStars("1", 5))
            let rating = Observed(receipt.changes)
            await change(of: rating) { $0.state?.state == .pending }
            let service = Task { try await quickRunner(app).run() }
            defer { service.cancel() }
            await change(of: rating) { $0.state?.state == .deadLetter }
            #expect(!rating.hasEnded)
            #expect(rating.state?.failure?.code == nil && rating.state?.failure?.serverCode == "BAD_STARS")
            refuses.set(false)
            try await app.replayMutation(receipt.id)
            await change(of: rating) { $0.hasEnded }
            #expect(rating.state?.state == .applied && rating.state?.result != nil)
        }
    }

    @Test("The states of a mutation that was never queued, or whose store is closed, end")
    nonisolated func receiptEnds() async throws {
        try await withOpenStore { (_, store, app) throws in
            var none = app.mutation(MutationID(UUID())).changes.makeAsyncIterator()
            #expect(await none.next() == nil)
            var waiting = try await app.enqueue(giveStars("1", 5)).changes.makeAsyncIterator()
            #expect(await waiting.next()?.state == .pending)
            try store.close()
            #expect(await waiting.next() == nil)
        }
    }

    @Test("A screen that shows a transfer is told of its bytes and its end, and one that shows a failed one of why")
    nonisolated func transfer() async throws {
        try await withTransferFixture { fixture in try await observe(fixture) }
    }

    private func observe(_ fixture: TransferFixture) async throws {
        let (file, bytes) = try fixture.file(bytes: 20_000)
        let upload = try await fixture.app.transfers.upload(file, to: TransferFixture.location)
        let shown = Observed(upload.progress)
        await change(of: shown) { $0.state?.state == .pending }
        #expect(shown.state?.waiting == .noRunner && shown.state?.completed == 0)
        try await fixture.drain()
        await change(of: shown) { $0.hasEnded }
        #expect(shown.state?.state == .done && shown.state?.completed == Int64(bytes.count))

        fixture.storage.onCall { _ throws(ObjectError) in throw ObjectError(.accessDenied, "nobody may") }
        let refused = Observed(try await fixture.app.transfers.upload(file, to: TransferFixture.location).progress)
        try await fixture.drain()
        await change(of: refused) { $0.state?.state == .failed }
        fixture.storage.onCall { _ in }
    }

    @Test("A screen that shows the session is told who is signed in, and of its end")
    nonisolated func session() async throws {
        try await withSessions { bench in try await observe(bench) }
    }

    private func observe(_ bench: SessionBench) async throws {
        let session = bench.session()
        let shown = Observed(session.changes)
        await change(of: shown) { $0.state == .signedOut }
        try await session.signIn(bench.provider.signIn("ada"), within: soon)
        await change(of: shown) { $0.state == .signedIn }
        #expect(!shown.hasEnded)
        _ = try await session.signOut(within: soon)
        await change(of: shown) { $0.state == .signedOut }
        session.close()
        await change(of: shown) { $0.hasEnded }
        #expect(shown.state == .signedOut)
    }

    @Test("A model that is released ends its reading")
    func released() async {
        let (ends, end) = AsyncStream.makeStream(of: Void.self)
        do {
            let silent = AsyncStream<Int> { continuation in
                continuation.onTermination = { _ in end.yield() }
            }
            let observed = Observed(silent)
            await Task.yield()
            #expect(observed.state == nil)
        }
        var iterator = ends.makeAsyncIterator()
        #expect(await iterator.next() != nil)
    }
}
