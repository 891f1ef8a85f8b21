import Foundation
import LarderFiles
import LarderGraphQL
import LarderLMDB
import LarderTestSupport
import Testing

@testable import LarderRecords

/// A cache whose clock the test moves.
final class AgedCache: Sendable {
    let sample: SampleCache
    private let clock: TestClock

    /// Seconds since the test's own beginning.
    var now: Int64 {
        get { clock.milliseconds / 1000 - TestClock.start }
        set { clock.milliseconds = (TestClock.start + newValue) * 1000 }
    }

    private init(sample: SampleCache, clock: TestClock) { (self.sample, self.clock) = (sample, clock) }

    static func with(_ sdl: String, _ body: (AgedCache) async throws -> Void) async throws {
        try await withTemporaryFolder { folder in
            let clock = TestClock()
            var options = RecordCache.Options()
            options.now = { clock.milliseconds }
            let path = folder.appending(path: "records").path
            let sample = try SampleCache(SchemaIndex(parsing: sdl), path: path, options: options)
            try await body(AgedCache(sample: sample, clock: clock))
            #expect(try sample.cache.check(.everything).problems == [])
            try sample.cache.close()
        }
    }

    func response(_ text: String, _ variables: [String: Value] = [:]) throws -> Response {
        try sample.cache.read(sample.operation(text, variables)).response
    }

    /// In seconds.
    func age(_ text: String, _ variables: [String: Value] = [:]) throws -> Int64? {
        try response(text, variables).age?.components.seconds
    }

    /// How many blocks and rows there are.
    func entries() throws -> Int {
        try sample.cache.inspect.statistics().tables.first { $0.name == "received" }?.entries ?? -1
    }
}

extension TestClock {
    fileprivate static let start: Int64 = 1_800_000_000

    /// Since 1970.
    fileprivate var milliseconds: Int64 {
        get { Int64((now.timeIntervalSince1970 * 1000).rounded()) }
        set { now = Date(timeIntervalSince1970: Double(newValue) / 1000) }
    }
}

private let schema = """
    type Query { node(id: ID): Node nodes: [Node] }
    type Node { id: ID! a: Int b: Int part: Part }
    type Part { x: Int y: Int }
    """
private let short = #"{ node(id: "1") { id a } }"#
private let long = #"{ node(id: "1") { id a b } }"#

@Suite("Ages", .timeLimit(.minutes(10)))
struct AgeTests {
    @Test("A time before those that can be kept is the earliest, and known; one after them is the latest")
    func timesOutside() {
        #expect(ReceivedTime(milliseconds: 0).seconds == 1)
        #expect(ReceivedTime(milliseconds: 1_800_000_000_000, age: .max).seconds == 1)
        #expect(ReceivedTime(milliseconds: 1_577_836_800_000).secondsSince1970 != nil)
        #expect(ReceivedTime(milliseconds: .max).seconds == ReceivedTime.greatest)
        #expect([-1, .min, 0, 7].map { ReceivedTime.maxAge($0) } == [0, 0, 0, 7])
        #expect([nil, Int.max, Int(Int32.max)].map { ReceivedTime.maxAge($0) } == [.max, .max, .max])
        #expect(ReceivedTime(milliseconds: 0).age(at: ReceivedTime(milliseconds: 1_800_000_000_000)) != nil)
    }

    @Test("An answer is as old as its oldest part")
    func oldest() async throws {
        try await AgedCache.with(schema) { aged in
            try await aged.sample.write(long, data: #"{"node":{"id":"1","a":1,"b":2}}"#)
            aged.now = 100
            try await aged.sample.write("{ nodes { id a } }", data: #"{"nodes":[{"id":"1","a":1},{"id":"2","a":1}]}"#)
            aged.now = 130
            #expect(try aged.age("{ nodes { id a } }") == 30)
            #expect(try aged.age(long) == 130)
            #expect(try aged.age(short) == 130, "the field of the root came with the long answer")
        }
    }

    @Test("An answer for which nothing was read has no age")
    func nothingRead() async throws {
        try await AgedCache.with(schema) { aged in
            #expect(try aged.age(short) == nil)
            try await aged.sample.write(short, data: #"{"node":{"id":"1","a":1}}"#)
            #expect(try aged.age(short) == 0)
        }
    }

    @Test("The same answer again makes its parts younger and publishes nothing")
    func again() async throws {
        try await AgedCache.with(schema) { aged in
            try await aged.sample.write(short, data: #"{"node":{"id":"1","a":1}}"#)
            aged.now = 50
            let commit = try await aged.sample.write(short, data: #"{"node":{"id":"1","a":1}}"#)
            #expect(commit.changes.isEmpty)
            aged.now = 60
            #expect(try aged.age(short) == 10)
        }
    }

    @Test("The same answer commits nothing within the same second, and makes one commit later")
    func againAtOnce() async throws {
        try await AgedCache.with(schema) { aged in
            func lastCommit() throws -> UInt64 {
                try aged.sample.cache.generations.withSnapshot { (_, transaction) throws in transaction.id }
            }
            try await aged.sample.write(short, data: #"{"node":{"id":"1","a":1}}"#)
            let first = try lastCommit()
            try await aged.sample.write(short, data: #"{"node":{"id":"1","a":1}}"#)
            let second = try lastCommit()
            #expect(second == first)
            aged.now = 1
            try await aged.sample.write(short, data: #"{"node":{"id":"1","a":1}}"#)
            let third = try lastCommit()
            #expect(third == first + 1)
        }
    }

    @Test("A field that the last answer left out keeps its time")
    func leftOut() async throws {
        try await AgedCache.with(schema) { aged in
            let fragment = try aged.sample.fragment("fragment F on Node { id a b }")
            try await aged.sample.write(long, data: #"{"node":{"id":"1","a":1,"b":2}}"#)
            for time in [10, 20] as [Int64] {
                aged.now = time
                try await aged.sample.write(short, data: #"{"node":{"id":"1","a":\#(time)}}"#)
            }
            let read = try aged.sample.cache.read(fragment, from: .object(key: "Node:1")).response
            #expect(read.age == .seconds(20))
            let one = try aged.sample.fragment("fragment F on Node { id a }")
            #expect(try aged.sample.cache.read(one, from: .object(key: "Node:1")).response.age == .zero)
        }
    }

    @Test("Parts have times as well")
    func parts() async throws {
        try await AgedCache.with(schema) { aged in
            let whole = #"{ node(id: "1") { id part { x y } } }"#
            try await aged.sample.write(whole, data: #"{"node":{"id":"1","part":{"x":1,"y":1}}}"#)
            aged.now = 5
            try await aged.sample.write(
                #"{ node(id: "1") { id part { x } } }"#, data: #"{"node":{"id":"1","part":{"x":1}}}"#)
            #expect(try aged.age(whole) == 5)
            #expect(try aged.age(#"{ node(id: "1") { id part { x } } }"#) == 0)
        }
    }

    @Test("Times survive a restart and a compaction")
    func restart() async throws {
        try await AgedCache.with(schema) { aged in
            try await aged.sample.write(long, data: #"{"node":{"id":"1","a":1,"b":2}}"#)
            aged.now = 7
            try await aged.sample.write(short, data: #"{"node":{"id":"1","a":1}}"#)
            try aged.sample.reopen()
            #expect(try aged.age(long) == 7)
            _ = try await aged.sample.cache.compact()
            #expect(try aged.age(long) == 7)
            #expect(try aged.age(short) == 0)
        }
    }

    @Test("After the clock was set back an age is not known, and is right again with the next answer")
    func setBack() async throws {
        try await AgedCache.with(schema) { aged in
            aged.now = 10_000
            try await aged.sample.write(short, data: #"{"node":{"id":"1","a":1}}"#)
            aged.now = 9_970
            #expect(try aged.age(short) == 0, "clocks are set right by seconds")
            aged.now = 9_940
            #expect(try aged.age(short) == 0, "a minute counts as now")
            aged.now = 9_939
            #expect(try aged.age(short) == nil, "and no more")
            aged.now = 5_000
            #expect(try aged.age(short) == nil)
            try await aged.sample.write(short, data: #"{"node":{"id":"1","a":1}}"#)
            aged.now = 5_001
            #expect(try aged.age(short) == 1)
        }
    }

    @Test("A maximum age of a type holds for its fields, and that of a field goes before it")
    func schemaAges() async throws {
        let text = """
            type Query { node(id: ID): Node @cacheControl(maxAge: 100) }
            type Node @cacheControl(maxAge: 10) { id: ID! a: Int b: Int @cacheControl(maxAge: 5) }
            """
        try await AgedCache.with(text) { aged in
            try await aged.sample.write(long, data: #"{"node":{"id":"1","a":1,"b":2}}"#)
            func expired(_ text: String, at time: Int64) throws -> Bool {
                aged.now = time
                return try aged.response(text).isExpired
            }
            #expect(try expired(long, at: 4) == false)
            #expect(try expired(long, at: 5))
            #expect(try expired(short, at: 9) == false)
            #expect(try expired(short, at: 10))
            #expect(try aged.response(short).isComplete, "what is expired is not absent")
            let old = try aged.response(short)
            aged.now = 9
            let fresh = try aged.response(short)
            #expect(old.isExpired && !fresh.isExpired && old == fresh, "an age is not compared")
            aged.now = -3600
            #expect(try aged.response(short).isExpired, "a time in the future proves nothing")
        }
    }

    @Test("The maximum age of a field that the last answer left out counts from when the field came")
    func leftOutExpired() async throws {
        let text = """
            type Query { node(id: ID): Node }
            type Node @cacheControl(maxAge: 10) { id: ID! a: Int b: Int }
            """
        try await AgedCache.with(text) { aged in
            try await aged.sample.write(long, data: #"{"node":{"id":"1","a":1,"b":2}}"#)
            aged.now = 5
            try await aged.sample.write(short, data: #"{"node":{"id":"1","a":1}}"#)
            aged.now = 10
            #expect(try aged.response(long).isExpired)
            #expect(try !aged.response(short).isExpired)
        }
    }

    @Test("The maximum age of a type holds for the fields of an object that has many fields")
    func expiredAmongMany() async throws {
        let fields = ManyFields.declared
        let text = "type Query { wide: Wide } type Wide @cacheControl(maxAge: 10) { id: ID! \(fields) }"
        try await AgedCache.with(text) { aged in
            let query = "{ wide { id \(ManyFields.selected) } }"
            try await aged.sample.write(query, data: "{\"wide\":{\"id\":\"1\",\(ManyFields.values)}}")
            aged.now = 9
            #expect(try !aged.response(query).isExpired)
            aged.now = 10
            #expect(try aged.response(query).isExpired)
        }
    }

    @Test("What is expired stays so beside what came in the future, and may have any age")
    func expiredBesideFuture() async throws {
        let text = """
            type Query { node(id: ID): Node other: Other }
            type Node @cacheControl(maxAge: 10) { id: ID! a: Int }
            type Other { id: ID! x: Int }
            """
        try await AgedCache.with(text) { aged in
            try await aged.sample.write(short, data: #"{"node":{"id":"1","a":1}}"#)
            aged.now = 1_000
            try await aged.sample.write("{ other { id x } }", data: #"{"other":{"id":"2","x":1}}"#)
            aged.now = 100
            #expect(try !aged.response("{ other { id x } }").isExpired)
            for fields in [#"node(id: "1") { id a } other { id x }"#, #"other { id x } node(id: "1") { id a }"#] {
                #expect(try aged.response("{ \(fields) }").isExpired)
            }
        }
    }

    @Test("A policy of a type can give a field of the schema's a maximum age")
    func fieldOfType() async throws {
        let text = schema + #" extend type Query @cacheControl(forField: "node", maxAge: 3)"#
        try await AgedCache.with(text) { aged in
            try await aged.sample.write(short, data: #"{"node":{"id":"1","a":1}}"#)
            #expect(try aged.response(short).isExpired == false)
            aged.now = 3
            #expect(try aged.response(short).isExpired)
        }
        #expect(throws: SchemaError.self) {
            try SchemaIndex(parsing: schema + #" extend type Query @cacheControl(forField: "no", maxAge: 3)"#)
        }
    }

    @Test("A maximum age of an answer holds for the fields of its root, until they come again")
    func answerAge() async throws {
        try await AgedCache.with(schema) { aged in
            let operation = try aged.sample.operation(short)
            let parsed = try ParsedResponse.parse(
                Array(#"{"data":{"node":{"id":"1","a":1}}}"#.utf8), along: operation.layout)
            let age = AnswerAge(age: .seconds(20), maxAge: .seconds(60))
            _ = try await aged.sample.cache.write(parsed, of: operation, age: age)
            #expect(try aged.age(short) == 20)
            #expect(try aged.response(short).isExpired == false)
            aged.now = 40
            #expect(try aged.response(short).isExpired)
            _ = try await aged.sample.cache.write(parsed, of: operation)
            aged.now = 4000
            #expect(try aged.response(short).isExpired == false)
        }
    }

    @Test("The maximum age of an answer does not hold for the fields of an object that has many fields")
    func answerAgeOfObject() async throws {
        try await AgedCache.with("type Query { wide: Wide } type Wide { id: ID! \(ManyFields.declared) }") { aged in
            let query = "{ wide { id \(ManyFields.selected) } }"
            let operation = try aged.sample.operation(query)
            let parsed = try ParsedResponse.parse(
                Array("{\"data\":{\"wide\":{\"id\":\"1\",\(ManyFields.values)}}}".utf8), along: operation.layout)
            _ = try await aged.sample.cache.write(parsed, of: operation, age: AnswerAge(maxAge: .seconds(60)))
            aged.now = 100
            #expect(try aged.response(query).isExpired)
            let fragment = try aged.sample.fragment("fragment F on Wide { f1 }")
            #expect(try !aged.sample.cache.read(fragment, from: .object(key: "Wide:1")).response.isExpired)
        }
    }

    @Test("What a program has read and stores again is as old as it was")
    func updated() async throws {
        try await AgedCache.with(schema) { aged in
            try await aged.sample.write(long, data: #"{"node":{"id":"1","a":1,"b":2}}"#)
            aged.now = 30
            let operation = try aged.sample.operation(long)
            let layout = operation.layout
            for b in [2, 3] {
                _ = try await aged.sample.cache.update(operation) { _ in
                    try ParsedResponse.parse(
                        Array(#"{"data":{"node":{"id":"1","a":1,"b":\#(b)}}}"#.utf8), along: layout)
                }
                #expect(try aged.age(short) == 30)
            }
            // Asked of the object itself: the field of the root keeps its time as well.
            let ages = try ["a", "b"].map { name in
                let fragment = try aged.sample.fragment("fragment F on Node { \(name) }")
                return try aged.sample.cache.read(fragment, from: .object(key: "Node:1")).response.age
            }
            #expect(ages == [.seconds(30), .zero])
        }
    }

    @Test("Of an object of many fields too, what a program stores again as it was is as old as it was")
    func updatedAmongMany() async throws {
        try await AgedCache.with("type Query { wide: Wide } type Wide { id: ID! \(ManyFields.declared) }") { aged in
            let query = "{ wide { id \(ManyFields.selected) } }"
            func data(_ first: Int) -> String {
                let values = ManyFields.names.map { "\"\($0)\":\($0 == "f0" ? first : 7)" }.joined(separator: ",")
                return "{\"wide\":{\"id\":\"1\",\(values)}}"
            }
            try await aged.sample.write(query, data: data(1))
            aged.now = 30
            let operation = try aged.sample.operation(query)
            let parsed = try ParsedResponse.parse(Array("{\"data\":\(data(2))}".utf8), along: operation.layout)
            _ = try await aged.sample.cache.update(operation) { _ in parsed }
            let ages = try ["f0", "f1"].map { name in
                let fragment = try aged.sample.fragment("fragment F on Wide { \(name) }")
                return try aged.sample.cache.read(fragment, from: .object(key: "Wide:1")).response.age
            }
            #expect(ages == [.zero, .seconds(30)])
        }
    }

    @Test("An object from before times were kept has no known age, and is expired where its type has a maximum age")
    func unknown() async throws {
        let text = """
            type Query { old: Old new: New }
            type Old @cacheControl(maxAge: 10) { id: ID! a: Int }
            type New { id: ID! a: Int }
            """
        try await AgedCache.with(text) { aged in
            try await aged.sample.write("{ old { id a } }", data: #"{"old":{"id":"1","a":1}}"#)
            let generation = aged.sample.cache.generations.current
            let received = try #require(generation.tables.received)
            var transaction = try generation.environment.beginWrite(deadline: .now + .seconds(300))
            try transaction.clear(received)
            try transaction.commit()
            try await aged.sample.write("{ new { id a } }", data: #"{"new":{"id":"2","a":1}}"#)
            #expect(try aged.response("{ old { id a } }").isExpired)
            #expect(try aged.age("{ new { id a } }") == 0)
            #expect(try aged.age("{ old { id a } new { id a } }") == nil)
        }
    }

    @Test("The times of what is removed go with it")
    func removed() async throws {
        try await AgedCache.with(schema) { aged in
            try await aged.sample.write(long, data: #"{"node":{"id":"1","a":1,"b":2}}"#)
            aged.now = 7
            try await aged.sample.write(short, data: #"{"node":{"id":"1","a":1}}"#)
            #expect(try aged.entries() == 3)
            _ = try await aged.sample.cache.remove(keys: ["Node:1"], as: .evicted)
            #expect(try aged.entries() == 2, "the root's field is there")
            _ = try await aged.sample.cache.remove(keys: [CacheKey.queryRoot.text], as: .evicted)
            #expect(try aged.entries() == 0)
        }
    }

    @Test("An object's age is its own in an answer with thousands of older objects")
    func amongMany() async throws {
        let schema = """
            type Query { first: First nodes: [Node] }
            type First @cacheControl(maxAge: 50) { id: ID! a: Int }
            type Node { id: ID! a: Int }
            """
        try await AgedCache.with(schema) { aged in
            // The fields of the root are read in the order in which their names came.
            try await aged.sample.write("{ nodes { id a } }", data: #"{"nodes":[]}"#)
            let first = "{ first { id a } }"
            try await aged.sample.write(first, data: #"{"first":{"id":"1","a":1}}"#)
            let nodes = (0..<2_200).map { #"{"id":"\#($0)","a":1}"# }.joined(separator: ",")
            try await aged.sample.write("{ nodes { id a } }", data: #"{"nodes":[\#(nodes)]}"#)
            aged.now = 100
            try await aged.sample.write(first, data: #"{"first":{"id":"1","a":1}}"#)
            aged.now = 130
            let all = try aged.response("{ nodes { id a } first { id a } }")
            #expect(all.age == .seconds(130))
            #expect(all.isExpired == false, "only what is 30 s old has a maximum age")
            aged.now = 150
            #expect(try aged.response("{ nodes { id a } first { id a } }").isExpired)
        }
    }

    @Test("A few old objects count beside thousands of younger ones that were read before them")
    func behindMany() async throws {
        let schema = "type Query { young: [Node] old: [Node] nodes: [Node] } type Node { id: ID! a: Int }"
        try await AgedCache.with(schema) { aged in
            func write(_ field: String, _ ids: Range<Int>) async throws {
                let nodes = ids.map { #"{"id":"\#($0)","a":1}"# }.joined(separator: ",")
                try await aged.sample.write("{ \(field) { id a } }", data: #"{"\#(field)":[\#(nodes)]}"#)
            }
            // The fields of the root are read in the order in which their names came.
            try await write("young", 0..<0)
            try await write("nodes", 0..<80)
            // All of them are in one block, whose records came at one time.
            try await write("old", 35..<55)
            aged.now = 100
            try await write("young", 100..<4_400)
            aged.now = 130
            #expect(try aged.age("{ young { id a } old { id a } }") == 130)
        }
    }

    @Test("Random answers, restarts, evictions and jumps of the clock: every age is what a dictionary of times says")
    func model() async throws {
        for index in 0..<4 { try await AgeModel.run(TestSeed.of("ages", index), steps: 150) }
    }

    @Test(
        "Of the maximum ages that the schema and the answer say of a field the shorter one counts",
        arguments: [(10, 60), (60, 10)] as [(Int64, Int64)])
    func shorterAge(ofSchema: Int64, ofAnswer: Int64) async throws {
        let text = """
            type Query { node(id: ID): Node @cacheControl(maxAge: \(ofSchema)) }
            type Node { id: ID! a: Int }
            """
        try await AgedCache.with(text) { aged in
            let operation = try aged.sample.operation(short)
            let parsed = try ParsedResponse.parse(
                Array(#"{"data":{"node":{"id":"1","a":1}}}"#.utf8), along: operation.layout)
            let age = AnswerAge(maxAge: .seconds(ofAnswer))
            _ = try await aged.sample.cache.write(parsed, of: operation, age: age)
            aged.now = 9
            #expect(try !aged.response(short).isExpired)
            aged.now = 10
            #expect(try aged.response(short).isExpired)
        }
    }

    @Test("A field of a root of many fields is as old as the answer that brought it last")
    func fieldAmongMany() async throws {
        try await AgedCache.with("type Query { value(of: Int): Int }") { aged in
            func query(_ number: Int) -> String { "{ value(of: \(number)) }" }
            for number in 0..<70 { try await aged.sample.write(query(number), data: #"{"value":7}"#) }
            aged.now = 100
            try await aged.sample.write(query(69), data: #"{"value":7}"#)
            #expect(try aged.age(query(69)) == 0)
            #expect(try aged.age(query(68)) == 100)
        }
    }
}
