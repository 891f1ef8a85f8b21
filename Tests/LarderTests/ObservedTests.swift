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

    private nonisolated func withApp(_ body: @MainActor @Sendable (Partition) async throws -> Void) async throws {
        try await withStoreFixture { app in try await body(app) }
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
