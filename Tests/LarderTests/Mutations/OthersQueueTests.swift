import Foundation
import Larder
import LarderOperations
import LarderTestSupport
import Synchronization
import Testing

@Suite("Expected changes while other processes queue", .timeLimit(.minutes(10)))
struct OthersQueueTests {
    private static let document =
        "mutation Rate($recipe: ID!, $stars: Int!) { rate(input: {recipe: $recipe, stars: $stars}) { id rating } }"
    private static let rated = #"{"rate":{"__typename":"Recipe","id":"1","rating":5}}"#

    /// What another process queues.
    private static func draft(
        _ variables: String = #"{"recipe":"1","stars":5}"#, expecting response: String? = nil
    ) -> MutationDraft {
        MutationDraft(
            partition: Store.unnamedPartition, lane: "other",
            content: MutationContent(
                document: document, variables: Array(variables.utf8),
                optimisticResponse: response.map { Array($0.utf8) }),
            created: Date())
    }

    @Test("An expected change stays seen while another process queues one mutation after the other")
    func staysSeen() async throws {
        try await withOpenStore { folder, _, app in
            func queue(_ recipe: String, _ stars: Int64) async throws {
                try await app.enqueue(
                    GraphQLOperation(Self.document, variables: ["recipe": .string(recipe), "stars": .int(stars)]),
                    options: .init(optimisticResponse: [
                        "rate": ["__typename": "Recipe", "id": .string(recipe), "rating": .int(stars)]
                    ]))
            }
            // So many that looking at all of them takes a while.
            for number in 0..<100 { try await queue("old \(number)", 1) }
            let other = try OperationsDatabase(folder: folder)
            let isDone = Flag()
            let queueing = Task.detached {
                while !isDone.isSet {
                    _ = try await other.mutations.enqueue(Self.draft(#"{"recipe":"2","stars":1}"#))
                    try await Task.sleep(for: .milliseconds(20))
                }
            }
            let rating = GraphQLFragment("fragment F on Recipe { rating }")
            for number in 0..<150 {
                try await queue("1", Int64(number))
                for _ in 0..<4 {
                    let seen = try app.read("Recipe:1", rating, allowsPartial: true)["rating"]?.double
                    #expect(seen == Double(number))
                    try await Task.sleep(for: .milliseconds(2))
                }
            }
            isDone.set()
            try await queueing.value
            try other.close()
        }
    }

    @Test("A watcher shows another process's mutation as unconfirmed, until that process discards it")
    func shownHere() async throws {
        try await withOpenStore { folder, _, app in
            let rating = GraphQLFragment("fragment F on Recipe { rating }")
            try await app.write("Recipe:1", rating, ["rating": 1])
            var states = try app.watch("Recipe:1", rating).makeAsyncIterator()
            #expect(try await next(&states)?.complete?["rating"]?.double == 1)
            let other = try OperationsDatabase(folder: folder)
            _ = try await other.mutations.enqueue(Self.draft(expecting: Self.rated))
            let shown = try #require(try await next(&states, within: .seconds(20)))
            #expect(shown.complete?["rating"]?.double == 5 && shown.isOptimistic)
            #expect(try app.read("Recipe:1", rating)["rating"]?.double == 5)
            try await other.mutations.discardAll(in: Store.unnamedPartition, now: Date())
            let left = try #require(try await next(&states, within: .seconds(20)))
            #expect(left.complete?["rating"]?.double == 1 && !left.isOptimistic)
            try other.close()
        }
    }

    @Test("A mutation of another process is sent at once, though the runner's own next one is an hour away")
    func sentMeanwhile() async throws {
        let server = ScriptedServer { number, request in
            number == 0 ? .failure(.away) : ScriptedServer.done(request)
        }
        try await withOpenStore(server) { folder, _, app in
            let receipt = try await app.enqueue(giveStars("1", 1), options: MutationOptions(lane: "own"))
            let connectivity = CountedConnectivity()
            let runner = quickRunner(app) { options in
                options.connectivity = connectivity
                options.backoff = Backoff(first: .seconds(3600), cap: .seconds(3600))
                options.random = { 1 }
            }
            let running = Task { try await runner.run() }
            try await eventually { try receipt.status()?.failure != nil }
            // It looks by itself, for nothing tells it of what others queue.
            try await connectivity.someLooks()
            let other = try OperationsDatabase(folder: folder)
            _ = try await other.mutations.enqueue(Self.draft(#"{"recipe":"2","stars":2}"#))
            try other.close()
            try await eventually { server.requests.count == 2 }
            #expect(server.requests.last?.values["recipe"] as? String == "2")
            running.cancel()
            try await running.value
        }
    }

    /// Runs `body` with a mutation that another connection has queued. Nothing tells the store of it: the store had no
    /// queue when it was opened, and has neither queued nor watched anything.
    private func withUntoldStore(
        _ body: (_ receipt: MutationReceipt, _ other: OperationsDatabase) async throws -> Void
    ) async throws {
        try await withOpenStore { folder, _, app in
            let other = try OperationsDatabase(folder: folder)
            let mutation = try await other.mutations.enqueue(Self.draft())
            try await body(app.mutation(MutationID(mutation.id)), other)
            try other.close()
        }
    }

    @Test("A wait for the outcome of a mutation finds what another process does, though nothing tells of that")
    func outcomeOfOther() async throws {
        try await withUntoldStore { receipt, other in
            let began = SuspendingClock.now
            let waiting = Task { try await receipt.outcome(within: .seconds(300)) }
            // By then the call has looked once. No signal reports that it waits.
            try await Task.sleep(for: .milliseconds(200))
            try await other.mutations.discardAll(in: Store.unnamedPartition, now: Date())
            #expect(try await !waiting.value.isApplied)
            #expect(began.duration(to: .now) < .seconds(200))
        }
    }

    @Test("The statuses of a mutation tell what another process does, though nothing tells of that")
    func statusesOfOther() async throws {
        try await withUntoldStore { receipt, other in
            var changes = receipt.changes.makeAsyncIterator()
            #expect(try await next(&changes)?.state == .pending)
            let discarding = Task {
                try await Task.sleep(for: .milliseconds(200))
                try await other.mutations.discardAll(in: Store.unnamedPartition, now: Date())
            }
            #expect(try await next(&changes)?.state == .discarded)
            _ = try await discarding.value
        }
    }

    @Test("A program that has queued a mutation sees what another process queues, though it watches nothing")
    func seenUnwatched() async throws {
        try await withOpenStore { folder, _, app in
            let rating = GraphQLFragment("fragment F on Recipe { rating }")
            try await app.write("Recipe:1", rating, ["rating": 1])
            try await app.enqueue(giveStars("2", 3), options: MutationOptions(lane: "own"))
            let other = try OperationsDatabase(folder: folder)
            _ = try await other.mutations.enqueue(Self.draft(expecting: Self.rated))
            try other.close()
            try await eventually { try app.read("Recipe:1", rating)["rating"]?.double == 5 }
        }
    }
}
