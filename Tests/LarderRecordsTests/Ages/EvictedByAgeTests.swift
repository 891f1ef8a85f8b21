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
            let report = try await aged.evict(EvictionRule(maximumAge: .seconds(50)))
            #expect((report.objects, report.fields) == (0, 1))
            #expect(try !aged.response(query, ["of": .int(0)]).isComplete)
            #expect(try aged.response(query, ["of": .int(1)]).isComplete)
        }
    }

    /// An eviction that has found two objects of more than 50 seconds ago, and removes them with the next write.
    private func foundEviction(in cache: RecordCache) throws -> Eviction {
        let now = ReceivedTime(milliseconds: cache.options.now())
        let eviction = Eviction(keeping: StatedRoots(), under: cache.layers, now: now, sparesUsed: false)
        try eviction.begin(in: cache.generations)
        eviction.setLimit(0, now.seconds - 50)
        var place = Eviction.Place.records(0)
        let found = try eviction.find(from: &place, isRehearsal: false, .seconds(60), cache.generations)
        #expect(found.count == 2)
        eviction.propose(found[...])
        return eviction
    }

    private let two = #"{"nodes":[{"id":"1","name":"n"},{"id":"2","name":"n"}]}"#

    @Test("An eviction keeps what a mutation names that was queued after the eviction had found it")
    func queuedMeanwhile() async throws {
        try await AgedCache.with(schema) { aged in
            try await aged.sample.write(query, ["of": .int(0)], data: two)
            aged.now = 100
            let cache = aged.sample.cache
            let eviction = try foundEviction(in: cache)
            cache.replaceLayers([OptimisticLayer(key: try #require(AppliedKey("m1")), removals: ["Node:1"])])
            _ = try await cache.write([.evict(eviction, within: .seconds(60))], deadline: nil)
            cache.replaceLayers([])
            #expect(try cache.inspect.keys(type: "Node") == ["Node:1"])
        }
    }

    @Test("An eviction removes nothing of a cache that was cleared and filled again after the eviction had looked")
    func clearedMeanwhile() async throws {
        try await AgedCache.with(schema) { aged in
            try await aged.sample.write(query, ["of": .int(0)], data: two)
            aged.now = 100
            let cache = aged.sample.cache
            let eviction = try foundEviction(in: cache)
            _ = try await cache.clear()
            try await aged.sample.write(query, ["of": .int(0)], data: two)
            _ = try await cache.write([.evict(eviction, within: .seconds(60))], deadline: nil)
            #expect(eviction.isOutdated)
            #expect(try cache.inspect.keys(type: "Node").count == 2)
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
            let report = try await aged.evict(EvictionRule(maximumAge: .seconds(1 << 20)))
            #expect((report.objects, report.fields) == (1, 1))
            #expect(try aged.sample.cache.inspect.keys(type: "Node") == ["Node:2"])
        }
    }

    @Test("Objects of an operation that is read as one of several are noted as read lately")
    func readTogether() async throws {
        try await AgedCache.with(schema) { aged in
            try await aged.sample.write(query, ["of": .int(0)], data: two)
            let operation = try aged.sample.operation(query, ["of": .int(0)])
            for _ in 0..<UsedRecords.share { _ = try aged.sample.cache.read([operation]) }
            let id = try aged.sample.number(of: "Node:1")
            #expect(aged.sample.cache.generations.current.used.contains(id))
        }
    }

    @Test("Objects that are read while a mutation is queued are noted as read lately")
    func readUnderLayer() async throws {
        try await AgedCache.with(schema) { aged in
            try await aged.sample.write(query, ["of": .int(0)], data: two)
            let cache = aged.sample.cache
            cache.replaceLayers([OptimisticLayer(key: try #require(AppliedKey("m1")), removals: ["Node:2"])])
            for _ in 0..<UsedRecords.share { _ = try aged.response(query, ["of": .int(0)]) }
            cache.replaceLayers([])
            let id = try aged.sample.number(of: "Node:1")
            #expect(cache.generations.current.used.contains(id))
        }
    }

    /// Stores ten lists of a hundred objects, one in every hour.
    private func fill(_ aged: AgedCache) async throws {
        let name = String(repeating: "n", count: 200)
        for list in 0..<10 {
            aged.now = Int64(list) * 3600
            let nodes = (0..<100).map { #"{"id":"\#(list)-\#($0)","name":"\#(name)"}"# }.joined(separator: ",")
            try await aged.sample.write(query, ["of": .int(Int64(list))], data: #"{"nodes":[\#(nodes)]}"#)
        }
    }

    @Test("A rehearsal for a bound and a maximum age counts what goes for either of them")
    func rehearsedBoth() async throws {
        try await AgedCache.with(schema) { aged in
            try await fill(aged)
            let cache = aged.sample.cache
            let bound = try cache.bytesInUse() * 19 / 20
            let rule = EvictionRule(maximumBytes: bound, maximumAge: .seconds(4 * 3600 + 60))
            let counted = try await aged.evict(rule, isRehearsal: true)
            #expect((counted.objects, counted.fields) == (500, 5))
            let removed = try await aged.evict(rule)
            #expect((removed.objects, removed.fields) == (500, 5))
        }
    }

    @Test("An eviction with a bound and a maximum age keeps each of them, also where the other one lets nothing go")
    func eitherOfBoth() async throws {
        try await AgedCache.with(schema) { aged in
            try await fill(aged)
            let cache = aged.sample.cache
            let bytes = try cache.bytesInUse()
            let aging = EvictionRule(maximumBytes: 2 * bytes, maximumAge: .seconds(4 * 3600 + 60))
            let removed = try await aged.evict(aging)
            #expect((removed.objects, removed.fields) == (500, 5))
            let bound = try cache.bytesInUse() * 9 / 10
            let bounding = EvictionRule(maximumBytes: bound, maximumAge: .seconds(100 * 3600))
            let bounded = try await aged.evict(bounding)
            #expect(bounded.objects > 0 && bounded.bytesInUse <= bound)
        }
    }

    @Test("An eviction removes the old fields of a root of many fields, and keeps the young ones")
    func oldFieldsAmongMany() async throws {
        try await AgedCache.with(schema) { aged in
            for list in 0..<80 {
                if list == 70 { aged.now = 100 }
                try await aged.sample.write(
                    query, ["of": .int(Int64(list))], data: #"{"nodes":[{"id":"\#(list)","name":"n"}]}"#)
            }
            let report = try await aged.evict(EvictionRule(maximumAge: .seconds(50)))
            #expect((report.objects, report.fields) == (70, 70))
            #expect(try !aged.response(query, ["of": .int(69)]).isComplete)
            #expect(try aged.response(query, ["of": .int(70)]).isComplete)
        }
    }
}
