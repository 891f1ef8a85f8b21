import LarderGraphQL
import LarderTestSupport
import Testing

@testable import LarderRecords

private let schema = """
    type Query { nodes(of: Int): [Node] node(id: ID!): Node }
    type Node { id: ID! name: String text: String part: Part }
    type Part { x: Int }
    """
private let query = "query Q($of: Int) { nodes(of: $of) { id name text part { x } } }"

extension AgedCache {
    /// Stores lists of nodes of about 300 bytes, one in every hour.
    fileprivate func fill(_ lists: Range<Int>, of size: Int = 100) async throws {
        for list in lists {
            now = Int64(list) * 3600
            let text = String(repeating: "t", count: 200)
            let nodes = (0..<size).map {
                #"{"id":"\#(list)-\#($0)","name":"n","text":"\#(text)","part":{"x":\#($0)}}"#
            }
            try await sample.write(
                query, ["of": .int(Int64(list))], data: #"{"nodes":[\#(nodes.joined(separator: ","))]}"#)
        }
    }

    fileprivate func isComplete(_ list: Int) throws -> Bool {
        try response(query, ["of": .int(Int64(list))]).isComplete
    }

    func evict(
        _ rule: EvictionRule, keeping roots: StatedRoots = .init(), isRehearsal: Bool = false
    ) async throws -> EvictionReport {
        try await sample.cache.evict(rule, keeping: roots, isRehearsal: isRehearsal)
    }

    fileprivate func dependencies(of list: Int) throws -> Dependencies {
        try sample.cache.read(sample.operation(query, ["of": .int(Int64(list))])).dependencies
    }
}

@Suite("Eviction", .timeLimit(.minutes(10)))
struct EvictionTests {
    @Test("Beyond its bound a cache lets go of what came longest ago")
    func oldest() async throws {
        try await AgedCache.with(schema) { aged in
            try await aged.fill(0..<20)
            let bound = try aged.sample.cache.bytesInUse() / 2
            let report = try await aged.evict(EvictionRule(maximumBytes: bound))
            #expect(report.bytesInUse <= bound)
            #expect(report.objects >= 800)
            #expect(try aged.isComplete(19))
            #expect(try aged.isComplete(16))
            #expect(try !aged.isComplete(0))
            #expect(try !aged.isComplete(5))
        }
    }

    @Test("Every bound is kept that the cache's own tables allow, and hardly more goes than has to")
    func everyBound() async throws {
        try await AgedCache.with(schema) { aged in
            try await aged.fill(0..<20)
            var bound = try aged.sample.cache.bytesInUse()
            let perObject = bound / 2000
            while bound > 120_000 {
                let objects = try aged.sample.cache.inspect.keys(type: "Node").count
                bound -= 9_000
                let report = try await aged.evict(EvictionRule(maximumBytes: bound))
                #expect(report.bytesInUse <= bound)
                #expect(try aged.sample.cache.bytesInUse() == report.bytesInUse)
                let left = try aged.sample.cache.inspect.keys(type: "Node").count
                #expect(objects - left <= 2 * 9_000 / perObject + 40, "at \(bound)")
            }
        }
    }

    @Test("A cache that is filled and evicted again and again keeps as much as its bound has room for")
    func again() async throws {
        try await AgedCache.with(schema) { aged in
            try await aged.fill(0..<20)
            let bound = try aged.sample.cache.bytesInUse() / 3
            for cycle in 0..<3 {
                try await aged.fill(20 * cycle..<20 * cycle + 20)
                let report = try await aged.evict(EvictionRule(maximumBytes: bound))
                #expect(report.bytesInUse <= bound)
                let left = try aged.sample.cache.inspect.keys(type: "Node").count
                // Pages of 16 KiB leave more of their room unused.
                #expect((350...700).contains(left), "cycle \(cycle)")
                let keys = try aged.sample.cache.inspect.statistics().tables.first { $0.name == "keys" }
                #expect(keys?.entries ?? 0 < 1000, "keys of objects that are gone are left")
            }
        }
    }

    @Test("A list all of whose objects are gone goes with them, and one of an object that stays does not")
    func emptiedLists() async throws {
        try await AgedCache.with(schema) { aged in
            try await aged.fill(0..<2, of: 5)
            try await aged.sample.write("{ nodes(of: 7) { id } }", data: #"{"nodes":[]}"#)
            _ = try await aged.sample.cache.remove(keys: (0..<5).map { "Node:0-\($0)" }, as: .evicted)
            _ = try await aged.sample.cache.remove(keys: (0..<4).map { "Node:1-\($0)" }, as: .evicted)
            let report = try await aged.evict(EvictionRule(maximumAge: .seconds(1 << 20)))
            #expect((report.objects, report.fields) == (0, 1))
            let fields = try aged.sample.cache.inspect.record(key: "QUERY_ROOT")?.fields.map(\.name) ?? []
            #expect(fields.contains { $0.contains("1") } && fields.contains { $0.contains("7") }, "\(fields)")
            #expect(!fields.contains { $0.contains("0") })
        }
    }

    @Test("A rehearsal counts about what goes for a bound")
    func rehearsedBound() async throws {
        try await AgedCache.with(schema) { aged in
            try await aged.fill(0..<20)
            let rule = EvictionRule(maximumBytes: try aged.sample.cache.bytesInUse() / 2)
            let counted = try await aged.evict(rule, isRehearsal: true)
            let removed = try await aged.evict(rule)
            // By the pages that are taken as full, of which 16 KiB hold more.
            #expect((counted.objects * 4 / 5...counted.objects * 6 / 5).contains(removed.objects))
            #expect((counted.fields - 2...counted.fields + 2).contains(removed.fields))
        }
    }

    @Test("What was read lately goes where the bound cannot be kept otherwise")
    func usedLast() async throws {
        try await AgedCache.with(schema) { aged in
            try await aged.fill(0..<5)
            for list in 0..<5 { for _ in 0..<UsedRecords.share { _ = try aged.isComplete(list) } }
            _ = try await aged.evict(EvictionRule(maximumBytes: 0))
            #expect(try aged.sample.cache.inspect.keys(type: "Node") == [])
        }
    }

    @Test("No more goes than has to where what was read lately lies among the rest")
    func interleaved() async throws {
        try await AgedCache.with(schema) { aged in
            let text = String(repeating: "s", count: 200)
            func operation(_ id: Int) throws -> BoundOperation {
                try aged.sample.operation("query One($id: ID!) { node(id: $id) { id text } }", ["id": .string("\(id)")])
            }
            for id in 0..<600 {
                if id.isMultiple(of: 10) { aged.now += 60 }
                let parsed = try ParsedResponse.parse(
                    Array(#"{"data":{"node":{"id":"\#(id)","text":"\#(text)"}}}"#.utf8), along: operation(id).layout)
                _ = try await aged.sample.cache.write(parsed, of: operation(id))
            }
            for id in stride(from: 0, to: 600, by: 2) {
                for _ in 0..<UsedRecords.share { _ = try aged.sample.cache.read(operation(id)) }
            }
            let bound = try aged.sample.cache.bytesInUse() * 9 / 10
            let report = try await aged.evict(EvictionRule(maximumBytes: bound))
            #expect(report.bytesInUse <= bound)
            #expect(report.bytesInUse >= bound * 4 / 5)
        }
    }

    @Test("What is needed stays, whatever its age")
    func needed() async throws {
        try await AgedCache.with(schema) { aged in
            try await aged.fill(0..<10)
            let roots = StatedRoots([try aged.dependencies(of: 0)])
            let report = try await aged.evict(EvictionRule(maximumBytes: 0), keeping: roots)
            #expect(report.objects == 900)
            #expect(try aged.isComplete(0))
            #expect(try (1..<10).allSatisfy { try !aged.isComplete($0) })
        }
    }

    @Test("What was used is known until it is forgotten twice")
    func forgottenTwice() async throws {
        try await AgedCache.with(schema) { aged in
            try await aged.fill(0..<1, of: 1)
            let used = aged.sample.cache.generations.current.used
            let id = try aged.sample.number(of: "Node:0-0")
            for _ in 0..<UsedRecords.share { _ = try aged.isComplete(0) }
            #expect(used.contains(id))
            used.forget()
            #expect(used.contains(id))
            used.forget()
            #expect(!used.contains(id))
        }
    }

    @Test("One read in four notes the objects of its answer as used")
    func oneInFour() async throws {
        try await AgedCache.with(schema) { aged in
            try await aged.fill(0..<8, of: 1)
            for list in 0..<8 { _ = try aged.isComplete(list) }
            let used = aged.sample.cache.generations.current.used
            var noted = 0
            for list in 0..<8 {
                let id = try aged.sample.number(of: "Node:\(list)-0")
                noted += used.contains(id) ? 1 : 0
            }
            #expect(noted == 2)
        }
    }

    @Test("What is known to be deleted stays known, whatever its age")
    func deletedLongAgo() async throws {
        try await AgedCache.with(schema) { aged in
            try await aged.fill(0..<1, of: 3)
            _ = try await aged.sample.cache.remove(keys: ["Node:0-1"], as: .deleted)
            aged.now = 1 << 20
            let report = try await aged.evict(EvictionRule(maximumAge: .seconds(60)))
            #expect(report.objects == 2)
        }
    }

    @Test("What is waited for by its key stays once it has come, whatever its age")
    func waitedForByKey() async throws {
        try await AgedCache.with(schema) { aged in
            let waiting = try aged.sample.cache.read(aged.sample.operation("{ node(id: \"0-7\") { name } }"))
            #expect(!waiting.dependencies.absentKeys.isEmpty)
            try await aged.fill(0..<2, of: 10)
            let report = try await aged.evict(
                EvictionRule(maximumBytes: 0), keeping: StatedRoots([waiting.dependencies]))
            #expect(report.objects == 19)
            #expect(try aged.sample.cache.inspect.keys(type: "Node") == ["Node:0-7"])
        }
    }

    @Test("A field goes with the objects that a part of many fields names in it")
    func emptiedSplitPart() async throws {
        let fields = ManyFields.declared
        let wide = "type Query { wide: Wide n: Int } type Wide { \(fields) node: Node } type Node { id: ID! }"
        try await AgedCache.with(wide) { aged in
            try await aged.sample.write(
                "{ wide { \(ManyFields.selected) node { id } } n }",
                data: #"{"wide":{\#(ManyFields.values),"node":{"id":"1"}},"n":1}"#)
            let rule = EvictionRule(maximumAge: .seconds(1 << 20))
            #expect(try await aged.evict(rule).fields == 0)
            _ = try await aged.sample.cache.remove(keys: ["Node:1"], as: .evicted)
            #expect(try await aged.evict(rule).fields == 1)
            #expect(try aged.sample.missing("{ wide { f1 } n }") == ["wide"])
        }
    }

    @Test("A watcher that waits for a field which never came keeps no other field of the root")
    func waitedFor() async throws {
        try await AgedCache.with(schema) { aged in
            try await aged.fill(0..<5)
            let waiting = try aged.dependencies(of: 99)
            #expect(waiting.fieldSets.contains { $0.fields.contains(RecordField.any) })
            let roots = StatedRoots([waiting, try aged.dependencies(of: 1)])
            let report = try await aged.evict(EvictionRule(maximumBytes: 0), keeping: roots)
            #expect(report.fields == 4)
            #expect(try (0..<5).map(aged.isComplete) == [false, true, false, false, false])
        }
    }

    @Test("What is watched from the last moment on stays")
    func newlyWatched() async throws {
        try await AgedCache.with(schema) { aged in
            try await aged.fill(0..<3)
            let roots = StatedRoots()
            roots.watch(try aged.dependencies(of: 1))
            _ = try await aged.evict(EvictionRule(maximumAge: .seconds(1800)), keeping: roots)
            #expect(try [0, 1, 2].map(aged.isComplete) == [false, true, true])
        }
    }

    @Test("What was read lately stays before what came later")
    func used() async throws {
        try await AgedCache.with(schema) { aged in
            try await aged.fill(0..<10)
            for _ in 0..<UsedRecords.share { _ = try aged.isComplete(0) }
            let bound = try aged.sample.cache.bytesInUse() / 2
            _ = try await aged.evict(EvictionRule(maximumBytes: bound))
            let objects = try aged.sample.cache.inspect.keys(type: "Node", prefix: "Node:0-")
            #expect(objects.count == 100)
        }
    }

    @Test("What was read lately outlasts the next two evictions, and not the third")
    func usedOnce() async throws {
        try await AgedCache.with(schema) { aged in
            try await aged.fill(0..<10)
            let bound = try aged.sample.cache.bytesInUse()
            for _ in 0..<UsedRecords.share { _ = try aged.isComplete(0) }
            var counts: [Int] = []
            for lists in [10..<15, 15..<20, 20..<25] {
                try await aged.fill(lists)
                // Neither a rehearsal counts, nor an eviction that removes nothing.
                #expect(try await aged.evict(EvictionRule(maximumBytes: bound), isRehearsal: true).objects > 0)
                #expect(try await aged.evict(EvictionRule(maximumBytes: 2 * bound)).objects == 0)
                let report = try await aged.evict(EvictionRule(maximumBytes: bound))
                #expect(report.objects > 0)
                counts.append(try aged.sample.cache.inspect.keys(type: "Node", prefix: "Node:0-").count)
            }
            #expect(counts == [100, 100, 0])
        }
    }

    @Test("What is older than a maximum age goes, fields of the root as well")
    func maximumAge() async throws {
        try await AgedCache.with(schema) { aged in
            try await aged.fill(0..<5)
            let report = try await aged.evict(EvictionRule(maximumAge: .seconds(2 * 3600 + 60)))
            #expect(report.objects == 200)
            #expect(report.fields == 2)
            #expect(report.garbage.keys == 200)
            #expect(try (0..<5).map { try aged.isComplete($0) } == [false, false, true, true, true])
        }
    }

    @Test("The ages that are counted tell what an eviction would let go of, to the second")
    func ages() async throws {
        try await AgedCache.with(schema) { aged in
            try await aged.fill(0..<2, of: 5)
            func counts() throws -> [Int] { try aged.sample.cache.inspect.ages().map(\.objects) }
            // The root of queries is an object as well.
            #expect(try counts() == [11, 0, 0, 0, 0])
            aged.now += 1
            #expect(try counts() == [6, 5, 0, 0, 0])
            aged.now += 40 * 86_400
            #expect(try counts() == [0, 0, 0, 0, 11])
            // Of what was stored by a clock that was ahead no age is known.
            aged.now -= 50 * 86_400
            #expect(try counts() == [0, 0, 0, 0, 11])
            // What is known to be no more is no object, and has no age.
            _ = try await aged.sample.cache.remove(keys: ["Node:0-1"], as: .deleted)
            #expect(try counts().reduce(0, +) == 10)
        }
    }

    @Test("What is as old as a maximum age to the second stays, and goes a second later")
    func maximumAgeToTheSecond() async throws {
        try await AgedCache.with(schema) { aged in
            try await aged.fill(0..<2, of: 5)
            aged.now += 100
            let rule = EvictionRule(maximumAge: .seconds(100))
            #expect(try await aged.evict(rule).objects == 5)
            #expect(try aged.isComplete(1))
            aged.now += 1
            #expect(try await aged.evict(rule).objects == 5)
            #expect(try !aged.isComplete(1))
        }
    }

    @Test("The bytes in use are those of all pages but the log's, however many changes that has")
    func bytesWithoutLog() async throws {
        try await AgedCache.with(schema) { aged in
            try await aged.fill(0..<1)
            let before = try aged.sample.cache.bytesInUse()
            let operation = try aged.sample.operation("{ nodes(of: 0) { id name } }")
            for number in 0..<300 {
                let nodes = (0..<100).map { #"{"id":"0-\#($0)","name":"\#(number % 10)"}"# }.joined(separator: ",")
                let parsed = try ParsedResponse.parse(
                    Array(#"{"data":{"nodes":[\#(nodes)]}}"#.utf8), along: operation.layout)
                _ = try await aged.sample.cache.write(parsed, of: operation)
            }
            let statistics = try aged.sample.cache.inspect.statistics()
            let log = try #require(statistics.tables.first { $0.name == "changes" })
            let logBytes = (log.branchPages + log.leafPages + log.overflowPages) * statistics.pageSize
            #expect(logBytes > 40_000)
            #expect(try aged.sample.cache.bytesInUse() - before < logBytes / 2)
        }
    }

    @Test("What is older than a maximum age goes though it was read lately, and is counted before")
    func usedTooOld() async throws {
        try await AgedCache.with(schema) { aged in
            try await aged.fill(0..<5)
            for list in 0..<5 { for _ in 0..<UsedRecords.share { _ = try aged.isComplete(list) } }
            let rule = EvictionRule(maximumAge: .seconds(2 * 3600 + 60))
            #expect(try await aged.evict(rule, isRehearsal: true).objects == 200)
            #expect(try await aged.evict(rule).objects == 200)
            #expect(try aged.sample.cache.inspect.keys(type: "Node", prefix: "Node:0-") == [])
            #expect(try (2..<5).allSatisfy { try aged.isComplete($0) })
        }
    }

    @Test("What is dated in the future is older than any maximum, and goes before all else")
    func future() async throws {
        try await AgedCache.with(schema) { aged in
            try await aged.fill(100..<102)
            try await aged.fill(1..<5)
            let bound = try aged.sample.cache.bytesInUse() * 3 / 4
            _ = try await aged.evict(EvictionRule(maximumBytes: bound))
            #expect(try [2, 3, 4].allSatisfy { try aged.isComplete($0) })
            #expect(try !aged.isComplete(100))
            #expect(try !aged.isComplete(101))
            // More than half a century.
            _ = try await aged.evict(EvictionRule(maximumAge: .seconds(1 << 40)))
            #expect(try aged.sample.cache.inspect.keys(type: "Node", prefix: "Node:10") == [])
            #expect(try [2, 3, 4].allSatisfy { try aged.isComplete($0) })
        }
    }

    @Test("A clock that is a minute behind makes nothing older")
    func nearFuture() async throws {
        try await AgedCache.with(schema) { aged in
            try await aged.fill(0..<3)
            aged.now -= 59
            let report = try await aged.evict(EvictionRule(maximumAge: .seconds(1800)))
            #expect(report.objects == 200)
            #expect(try aged.isComplete(2))
        }
    }

    @Test("A rehearsal counts the same and removes nothing")
    func rehearsal() async throws {
        try await AgedCache.with(schema) { aged in
            try await aged.fill(0..<5)
            let rule = EvictionRule(maximumAge: .seconds(2 * 3600 + 60))
            let counted = try await aged.evict(rule, isRehearsal: true)
            #expect(try (0..<5).allSatisfy { try aged.isComplete($0) })
            let removed = try await aged.evict(rule)
            #expect((counted.objects, counted.fields) == (removed.objects, removed.fields))
        }
    }

    @Test("A rehearsal counts each object once, however many there are")
    func rehearsedOnce() async throws {
        try await AgedCache.with(schema) { aged in
            // More than are looked for at a time.
            let count = Eviction.candidateLimit + 20
            try await aged.fill(0..<1, of: count)
            aged.now += 3600
            let report = try await aged.sample.cache.evict(
                EvictionRule(maximumAge: .seconds(60)), keeping: StatedRoots(), isRehearsal: true,
                sliceTime: .seconds(60))
            #expect((report.objects, report.fields) == (count, 1))
        }
    }

    @Test("A cache that keeps its bound is left alone")
    func withinBound() async throws {
        try await AgedCache.with(schema) { aged in
            try await aged.fill(0..<2)
            let before = try aged.sample.cache.position
            let report = try await aged.evict(EvictionRule(maximumBytes: 1 << 30))
            #expect(report.objects == 0)
            #expect(try aged.sample.cache.position == before)
        }
    }

    @Test("What came again since stays")
    func cameAgain() async throws {
        try await AgedCache.with(schema) { aged in
            try await aged.fill(0..<4)
            let later = aged.now + 3600
            try await aged.fill(0..<1)
            aged.now = later
            try await aged.sample.write(
                "{ nodes(of: 9) { id name } }", data: #"{"nodes":[{"id":"1-1","name":"n"}]}"#)
            _ = try await aged.evict(EvictionRule(maximumAge: .seconds(1800)))
            #expect(try aged.sample.cache.inspect.keys(type: "Node") == ["Node:1-1"])
        }
    }

    @Test("What comes again between being found and being removed stays")
    func cameMeanwhile() async throws {
        try await AgedCache.with(schema) { aged in
            try await aged.fill(0..<2, of: 5)
            aged.now += 3600
            let cache = aged.sample.cache
            let now = ReceivedTime(milliseconds: cache.options.now())
            let eviction = Eviction(keeping: StatedRoots(), under: cache.layers, now: now, sparesUsed: false)
            try eviction.begin(in: cache.generations)
            eviction.setLimit(0, now.seconds - 1800)
            var place = Eviction.Place.records(0)
            let found = try eviction.find(from: &place, isRehearsal: false, .seconds(60), cache.generations)
            #expect(found.count == 10)
            try await aged.sample.write(
                "{ nodes(of: 9) { id name } }", data: #"{"nodes":[{"id":"1-1","name":"n"}]}"#)
            eviction.propose(found[...])
            _ = try await cache.write([.evict(eviction, within: .seconds(60))], deadline: nil)
            #expect(try cache.inspect.keys(type: "Node") == ["Node:1-1"])
        }
    }

    @Test("The next answer brings back what was evicted")
    func back() async throws {
        try await AgedCache.with(schema) { aged in
            try await aged.fill(0..<3)
            _ = try await aged.evict(EvictionRule(maximumBytes: 0))
            #expect(try aged.sample.cache.inspect.keys(type: "Node") == [])
            try await aged.fill(0..<3)
            #expect(try (0..<3).allSatisfy { try aged.isComplete($0) })
        }
    }
}
