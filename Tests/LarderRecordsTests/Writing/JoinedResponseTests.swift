import LarderGraphQL
import LarderTestSupport
import Synchronization
import Testing

@testable import LarderRecords

@Suite("Responses that are stored together", .timeLimit(.minutes(10)))
struct JoinedResponseTests {
    private static let schema = """
        type Query { item(id: ID!): Item }
        type Subscription { changed: Item, moved(by: Int): Item }
        type Item @typePolicy(versioned: true) {
          id: ID! title: String score: Float raw: JSON tags: [[String]] place: Place steps: [Step!] next: Item
          found: Found _version: Int! _deleted: Boolean _lastChangedAt: Int!
        }
        type Place { x: Int, of: Person }
        type Step { text: String, place: Place }
        type Person { id: ID! name: String }
        union Found = Place | Person
        scalar JSON
        """
    private static let fields = """
        { id title score raw tags place { x of { id name } } steps { text place { x } }
          next { id title } found { ... on Place { x } ... on Person { id name } } }
        """

    /// Makes random events about few objects, so that several have the same object.
    private struct RandomEvents {
        var random: SeededNumbers

        private mutating func number(_ bound: Int) -> Int { Int.random(in: 0..<bound, using: &random) }

        private mutating func nullable(_ text: String) -> String { number(4) == 0 ? "null" : text }

        private mutating func text() -> String { #""\#(["a", "é\\n", "", "\\u20ac", "日本"][number(5)])\#(number(3))""# }

        private mutating func person() -> String {
            let id = number(30)
            return #"{"__typename":"Person","id":"\#(id)","name":\#(nullable(text()))}"#
        }

        private mutating func place() -> String {
            #"{"__typename":"Place","x":\#(number(9)),"of":\#(nullable(person()))}"#
        }

        private mutating func step() -> String {
            let place = nullable(#"{"x":\#(number(9))}"#)
            return #"{"text":\#(nullable(text())),"place":\#(place)}"#
        }

        private mutating func versions() -> String {
            #""_version":\#(number(5)),"_deleted":\#(number(8) == 0),"_lastChangedAt":1"#
        }

        private mutating func item() -> String {
            let steps = (0..<number(3)).map { _ in step() }.joined(separator: ",")
            let next = nullable(#"{"id":"\#(number(40))","title":\#(text()),\#(versions())}"#)
            let found = nullable(number(2) == 0 ? place() : person())
            return """
                {"id":"\(number(40))","title":\(nullable(text())),"score":\(number(9)).25,\
                "raw":{"a":[\(number(9)),"b"]},"tags":[[\(text())],null,[]],"place":\(nullable(place())),\
                "steps":[\(steps)],"next":\(next),"found":\(found),\(versions())}
                """
        }

        mutating func event(_ field: String) -> String {
            switch number(12) {
            case 0: #"{"data":null,"errors":[{"message":"no"}]}"#
            case 1: #"{"data":{"\#(field)":null},"errors":[{"message":"no","path":["\#(field)"]}]}"#
            default: #"{"data":{"\#(field)":\#(item())}}"#
            }
        }
    }

    private func event(
        _ id: String, _ title: String, of operation: BoundOperation
    ) throws -> (parsed: ParsedResponse, operation: BoundOperation) {
        let versions = #""_version":1,"_deleted":null,"_lastChangedAt":1"#
        let text = #"{"data":{"changed":{"id":"\#(id)","title":"\#(title)",\#(versions)}}}"#
        return (try ParsedResponse.parse(Array(text.utf8), along: operation.layout), operation)
    }

    /// The record of an object, and those of its parts.
    private func records(_ key: String, in sample: SampleCache) throws -> [StoredRecord] {
        guard let record = try sample.cache.inspect.record(key: key) else { return [] }
        let keys = record.fields.flatMap { parts(in: $0.value) }
        return [record] + (try keys.flatMap { try records($0, in: sample) })
    }

    private func parts(in value: StoredValue) -> [String] {
        switch value {
        case .part(let key): [key]
        case .list(let elements): elements.flatMap(parts)
        default: []
        }
    }

    @Test("Random events that are stored together leave the cache that they leave one by one", arguments: 0..<4)
    func sameAsOneByOne(group: Int) async throws {
        for index in 0..<10 {
            let seed = TestSeed.of("joined responses", group * 10 + index)
            try await withSampleCache(Self.schema) { together in
                try await withSampleCache(Self.schema) { alone in
                    var events = RandomEvents(random: SeededNumbers(seed: seed))
                    let fields = ["changed", "moved"]
                    func operations(_ sample: SampleCache) throws -> [BoundOperation] {
                        try fields.map { try sample.operation("subscription { \($0) \(Self.fields) }") }
                    }
                    let (shared, single) = (try operations(together), try operations(alone))
                    for step in 0..<6 {
                        let texts = (0..<12).map { number in
                            let place = (number + step) % 9 < 6 ? 0 : 1
                            return (place, Array(events.event(fields[place]).utf8))
                        }
                        let ignoresNulls = step % 2 == 0
                        let outcomes = await together.cache.write(
                            try texts.map { place, text in
                                let operation = shared[place]
                                let parsed = try ParsedResponse.parse(
                                    text, along: operation.layout, ignoresNulls: ignoresNulls)
                                return (parsed: parsed, operation: operation)
                            })
                        #expect(outcomes.count == 12)
                        for outcome in outcomes { _ = try outcome.get() }
                        for (place, text) in texts {
                            let operation = single[place]
                            _ = try await alone.cache.write(
                                ParsedResponse.parse(text, along: operation.layout, ignoresNulls: ignoresNulls),
                                of: operation)
                        }
                        let keys = (0..<40).flatMap { ["Item:\($0)", "Person:\($0)"] }
                        for key in keys {
                            let (left, right) = try (records(key, in: together), records(key, in: alone))
                            try #require(left == right, "seed \(seed), step \(step)")
                        }
                    }
                }
            }
        }
    }

    @Test("Events of different objects share one commit, which tells of all their changes")
    func oneCommit() async throws {
        try await withSampleCache(Self.schema) { sample in
            let operation = try sample.operation("subscription { changed { id title } }")
            let events = try (0..<300).map { try event("\($0)", "t", of: operation) }
            #expect(JoinedResponse.joining(events.map(\.parsed)).count == 3)
            let told = Mutex<[UInt64]>([])
            sample.cache.observe { commit in told.withLock { $0.append(commit.position.number) } }
            let outcomes = await sample.cache.write(events)
            #expect(told.withLock { $0 } == [1])
            #expect(try outcomes.map { try $0.get().position.number } == Array(repeating: 1, count: 300))
            let before = try CacheDump(sample.cache)
            let commit = try await sample.changing { cache in
                try await cache.write(try (0..<300).map { try event("\($0)", "u", of: operation) })[299].get()
            }
            #expect(before.named(commit.changes).count == 300)
        }
    }

    @Test("What the log of changes could not name is stored in several commits")
    func severalCommits() async throws {
        try await withSampleCache(Self.schema) { sample in
            let operation = try sample.operation("subscription { changed { id steps { text } } }")
            let events = try (0..<5).map { number in
                let steps = Array(repeating: #"{"text":"s"}"#, count: 800).joined(separator: ",")
                let text = #"""
                    {"data":{"changed":{"id":"\#(number)","steps":[\#(steps)],
                    "_version":1,"_deleted":null,"_lastChangedAt":1}}}
                    """#
                let parsed = try ParsedResponse.parse(Array(text.utf8), along: operation.layout)
                return (parsed: parsed, operation: operation)
            }
            let commits = try await sample.cache.write(events).map { try $0.get() }
            #expect(commits.map(\.position.number) == [1, 1, 2, 2, 3])
            #expect(commits.allSatisfy { !$0.changes.isEverything })
        }
    }

    @Test("An event about an object of an earlier event is stored after it")
    func sameObject() async throws {
        try await withSampleCache(Self.schema) { sample in
            let operation = try sample.operation("subscription { changed { id title } }")
            let events = try (0..<9).map { try event("\($0 % 3)", "t\($0)", of: operation) }
            let joined = JoinedResponse.joining(events.map(\.parsed))
            #expect(joined.map(\.objectCount) == [6, 6, 6])
            for outcome in await sample.cache.write(events) { _ = try outcome.get() }
            let item = try sample.fragment("fragment F on Item { title }")
            #expect(
                try (0..<3).map { try sample.json(item, from: .object(key: "Item:\($0)")) }
                    == ["t6", "t7", "t8"].map { #"{"title":"\#($0)"}"# })
        }
    }

    @Test("Where there is no room, the events before the one that does not fit are stored, and none after it")
    func noRoom() async throws {
        var options = RecordCache.Options.patient
        options.maximumSize = 1 << 20
        try await withSampleCache(Self.schema, options) { sample in
            let operation = try sample.operation("subscription { changed { id title } }")
            let events = try [1, 1, 2 << 20, 1].enumerated().map { number, size in
                try event("\(number)", String(repeating: "x", count: size), of: operation)
            }
            let outcomes = await sample.cache.write(events)
            #expect(outcomes.map { outcome in (try? outcome.get()) != nil } == [true, true, false, false])
            for case .failure(let error) in outcomes { #expect(error.code == .full) }
            let keys = try CacheDump(sample.cache).records.values.compactMap(\.key)
            #expect(keys.sorted() == ["Item:0", "Item:1"])
        }
    }
}
