import LarderGraphQL
import LarderLMDB
import LarderTestSupport
import Testing

@testable import LarderRecords

private let schema = "type Query { nodes(of: Int): [Node] } type Node { id: ID! name: String }"
private let query = "query Q($of: Int) { nodes(of: $of) { id name } }"

@Suite("What an eviction removes because of its age", .timeLimit(.minutes(10)))
struct EvictedByAgeTests {
    @Test("An eviction removes an old field of the root, also where its objects have come again since")
    func fieldOfYoungObjects() async throws {
        try await AgedCache.with(schema) { aged in
            let data = #"{"nodes":[{"id":"1","name":"n"}]}"#
            try await aged.sample.write(query, ["of": .int(0)], data: data)
            aged.now = 100
            try await aged.sample.write(query, ["of": .int(1)], data: data)
            let report = try await aged.sample.cache.evict(
                EvictionRule(maximumAge: .seconds(50)), keeping: StatedRoots())
            #expect((report.objects, report.fields) == (0, 1))
            #expect(try !aged.response(query, ["of": .int(0)]).isComplete)
            #expect(try aged.response(query, ["of": .int(1)]).isComplete)
        }
    }

    @Test("An object from before times were kept is older than any maximum age")
    func withoutTime() async throws {
        try await AgedCache.with(schema) { aged in
            try await aged.sample.write(query, ["of": .int(0)], data: #"{"nodes":[{"id":"1","name":"n"}]}"#)
            let generation = aged.sample.cache.generations.current
            let received = try #require(generation.tables.received)
            var transaction = try generation.environment.beginWrite(deadline: .now + .seconds(300))
            try transaction.clear(received)
            try transaction.commit()
            try await aged.sample.write(query, ["of": .int(1)], data: #"{"nodes":[{"id":"2","name":"n"}]}"#)
            let report = try await aged.sample.cache.evict(
                EvictionRule(maximumAge: .seconds(1 << 20)), keeping: StatedRoots())
            #expect((report.objects, report.fields) == (1, 1))
            #expect(try aged.sample.cache.inspect.keys(type: "Node") == ["Node:2"])
        }
    }
}
