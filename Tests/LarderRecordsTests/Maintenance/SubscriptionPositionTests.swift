import LarderTestSupport
import Testing

@testable import LarderRecords

@Suite("Up to when everything has come over subscriptions", .timeLimit(.minutes(10)))
struct SubscriptionPositionTests {
    @Test("The newest time is kept, and what was silent for 90 days is forgotten")
    func notes() async throws {
        try await withSampleCache("type Query { a: Int }") { sample in
            let cache = sample.cache
            let day: Int64 = 86_400_000
            try await cache.note(["a": .init(name: "S.a", time: 0), "b": .init(name: "S.b", time: day)])
            try await cache.note(["b": .init(name: "S.b", time: 90 * day)])
            #expect(try cache.subscriptionPositions().mapValues(\.time) == ["a": 0, "b": 90 * day])
            try await cache.note(["b": .init(name: "S.b", time: 90 * day + 1)])
            #expect(try cache.subscriptionPositions().mapValues(\.time) == ["b": 90 * day + 1])
            #expect(try cache.positions().isEmpty)
            #expect(try cache.check().problems == [])
        }
    }

    @Test("What was silent for longer than 90 days and comes again is known from then on")
    func comesAgain() async throws {
        try await withSampleCache("type Query { a: Int }") { sample in
            let day: Int64 = 86_400_000
            for time in [0, 100 * day, 300 * day] {
                try await sample.cache.note(["a": .init(name: "S.a", time: time)])
                #expect(try sample.cache.subscriptionPositions().mapValues(\.time) == ["a": time])
            }
        }
    }

    @Test("Clearing the cache forgets up to when everything has come over subscriptions")
    func cleared() async throws {
        try await withSampleCache("type Query { a: Int }") { sample in
            try await sample.cache.note(["a": .init(name: "S.a", time: 1_000)])
            try await sample.cache.clear()
            #expect(try sample.cache.subscriptionPositions().isEmpty)
        }
    }
}
