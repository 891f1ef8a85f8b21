import LarderGraphQL
import LarderTestSupport
import Testing

@testable import LarderRecords

@Suite("Versioned objects", .timeLimit(.minutes(10)))
struct VersionTests {
    private static let schema = """
        scalar AWSTimestamp
        type Query { todo(id: ID!): Todo todos: [Todo] other: Todo }
        type Subscription { changed: Todo }
        type Todo @typePolicy(versioned: true) {
          id: ID! title: String steps: [Step!] next: Todo
          _version: Int _deleted: Boolean _lastChangedAt: AWSTimestamp!
        }
        type Step { text: String }
        """
    private static let todos = "{ todos { id title steps { text } } }"

    private func todo(
        _ id: Int, _ title: String, version: Int?, deleted: Bool? = nil, steps: String = "[]"
    ) -> String {
        let version = version.map(String.init) ?? "null"
        let deleted = deleted.map(String.init) ?? "null"
        return """
            {"__typename":"Todo","id":"\(id)","title":"\(title)","steps":\(steps),\
            "_version":\(version),"_deleted":\(deleted),"_lastChangedAt":1}
            """
    }

    private func write(_ sample: SampleCache, _ todos: String...) async throws -> Commit {
        try await sample.write(Self.todos, data: #"{"todos":[\#(todos.joined(separator: ","))]}"#)
    }

    private func titles(_ sample: SampleCache) throws -> String { try sample.json("{ todos { id title } }") }

    @Test("An older version changes nothing of what is stored, and the list that names it stands")
    func older() async throws {
        try await withSampleCache(Self.schema) { sample in
            _ = try await write(sample, todo(1, "new", version: 3, steps: #"[{"text":"a"}]"#))
            let commit = try await write(
                sample, todo(1, "old", version: 2, steps: #"[{"text":"b"},{"text":"c"}]"#))
            #expect(commit.changes.isEmpty)
            #expect(try sample.json(Self.todos) == #"{"todos":[{"id":"1","title":"new","steps":[{"text":"a"}]}]}"#)
            _ = try await write(sample, todo(2, "two", version: 1), todo(1, "old", version: 1))
            #expect(try titles(sample) == #"{"todos":[{"id":"2","title":"two"},{"id":"1","title":"new"}]}"#)
        }
    }

    @Test("The version counts wherever the program asks for it, as the first field of all too")
    func askedForFirst() async throws {
        try await withSampleCache(Self.schema) { sample in
            let fragment = try sample.fragment("fragment F on Todo { _version id title }")
            for (version, title) in [(3, "new"), (2, "old")] {
                try await sample.write(
                    fragment, response: "{\"data\":\(todo(1, title, version: version))}", to: .object(key: "Todo:1"))
            }
            #expect(try sample.json(fragment, from: .object(key: "Todo:1")).contains(#""title":"new""#))
        }
    }

    @Test("The same version brings further fields, and a newer one replaces what it says")
    func newer() async throws {
        try await withSampleCache(Self.schema) { sample in
            try await sample.write(
                "{ todos { id } }",
                data: #"{"todos":[{"__typename":"Todo","id":"1","_version":2,"_deleted":null,"_lastChangedAt":1}]}"#)
            _ = try await write(sample, todo(1, "two", version: 2))
            #expect(try titles(sample) == #"{"todos":[{"id":"1","title":"two"}]}"#)
            _ = try await write(sample, todo(1, "three", version: 3))
            #expect(try titles(sample) == #"{"todos":[{"id":"1","title":"three"}]}"#)
        }
    }

    @Test("Of an object that a response has several times the newest version is stored, in whatever order they come")
    func severalTimes() async throws {
        for order in [[4, 7, 6], [4, 6, 7], [7, 4, 6], [6, 4, 7], [4, 3, 7]] {
            try await withSampleCache(Self.schema) { sample in
                _ = try await write(sample, todo(1, "v5", version: 5, steps: #"[{"text":"a"}]"#))
                let todos = order.map { todo(1, "v\($0)", version: $0, steps: #"[{"text":"b\#($0)"}]"#) }
                try await sample.write(Self.todos, data: #"{"todos":[\#(todos.joined(separator: ","))]}"#)
                #expect(
                    try sample.json("{ todos { title steps { text } } }").contains(
                        #"{"title":"v7","steps":[{"text":"b7"}]}"#), "\(order)")
                #expect(try sample.cache.version(of: "Todo:1") == 7)
            }
        }
    }

    @Test("What the program removes as deleted keeps its version: no older one brings it back")
    func removedByProgram() async throws {
        try await withSampleCache(Self.schema) { sample in
            _ = try await write(sample, todo(1, "eight", version: 8))
            _ = try await sample.cache.remove(keys: ["Todo:1"], as: .deleted)
            #expect(try sample.cache.version(of: "Todo:1") == 8)
            _ = try await write(sample, todo(1, "six", version: 6))
            #expect(try titles(sample) == #"{"todos":[]}"#)
            _ = try await write(sample, todo(1, "nine", version: 9))
            #expect(try titles(sample) == #"{"todos":[{"id":"1","title":"nine"}]}"#)
        }
    }

    @Test("A deletion without a version is of the version that is known")
    func deletedWithoutVersion() async throws {
        try await withSampleCache(Self.schema) { sample in
            _ = try await write(sample, todo(1, "three", version: 3))
            _ = try await write(sample, todo(1, "three", version: nil, deleted: true))
            #expect(try sample.cache.version(of: "Todo:1") == 3)
            _ = try await write(sample, todo(1, "two", version: 2))
            #expect(try titles(sample) == #"{"todos":[]}"#)
        }
    }

    @Test("A deleted object leaves lists, and nothing older brings it back")
    func deleted() async throws {
        try await withSampleCache(Self.schema) { sample in
            let (one, two) = (todo(1, "one", version: 1, steps: #"[{"text":"a"}]"#), todo(2, "two", version: 1))
            _ = try await write(sample, one, two)
            _ = try await write(
                sample, todo(1, "one", version: 2, deleted: true), todo(2, "two", version: 1))
            #expect(try titles(sample) == #"{"todos":[{"id":"2","title":"two"}]}"#)
            #expect(try sample.cache.version(of: "Todo:1") == 2)
            let late = try await write(sample, todo(1, "late", version: 1), todo(2, "two", version: 1))
            #expect(late.changes.isEmpty)
            let again = try await write(
                sample, todo(1, "one", version: 2, deleted: true), todo(2, "two", version: 1))
            #expect(again.changes.isEmpty)
            _ = try await write(sample, todo(1, "back", version: 3), todo(2, "two", version: 1))
            #expect(try titles(sample) == #"{"todos":[{"id":"1","title":"back"},{"id":"2","title":"two"}]}"#)
        }
    }

    @Test("A deletion that comes before the object it deletes is remembered")
    func deletedFirst() async throws {
        try await withSampleCache(Self.schema) { sample in
            _ = try await write(sample, todo(1, "gone", version: 2, deleted: true))
            let late = try await write(sample, todo(1, "late", version: 1))
            #expect(late.changes.isEmpty)
            #expect(try titles(sample) == #"{"todos":[]}"#)
            try sample.reopen()
            _ = try await write(sample, todo(1, "late", version: 1))
            #expect(try titles(sample) == #"{"todos":[]}"#)
        }
    }

    @Test("Of two versions in one response the greater stands, whichever comes first", arguments: [true, false])
    func twice(isNewerFirst: Bool) async throws {
        try await withSampleCache(Self.schema) { sample in
            let (new, old) = (todo(1, "new", version: 5), todo(1, "old", version: 4))
            let (first, second) = isNewerFirst ? (new, old) : (old, new)
            try await sample.write(
                "{ other { id title steps { text } } todos { id title steps { text } } }",
                data: #"{"other":\#(first),"todos":[\#(second)]}"#)
            #expect(try sample.json("{ other { title } }") == #"{"other":{"title":"new"}}"#)
        }
    }

    @Test("Of an object that is deleted nothing is kept of what the response says beside that, nor the parts in it")
    func deletedParts() async throws {
        let parts = #"[{"text":"b"},{"text":"c"}]"#
        let deletion = todo(1, "gone", version: 7, deleted: true, steps: parts)
        for others in [[], [todo(1, "v6", version: 6, steps: parts)], [deletion, todo(1, "v6", version: 6)]] {
            try await withSampleCache(Self.schema) { sample in
                _ = try await write(sample, todo(1, "v5", version: 5, steps: #"[{"text":"a"}]"#))
                let response = (others + [deletion]).joined(separator: ",")
                try await sample.write(Self.todos, data: #"{"todos":[\#(response)]}"#)
                let types = try sample.cache.inspect.types()
                #expect(types.first { $0.type == "Todo" }?.tombstones == 1, "\(others)")
                #expect(types.first { $0.type == "Step" }?.parts ?? 0 == 0, "\(others)")
                #expect(try sample.cache.version(of: "Todo:1") == 7)
            }
        }
    }

    @Test("Of a deletion and an object in one response the newer one stands, whichever comes first")
    func deletedAmongOthers() async throws {
        for (isOldDeleted, isReversed) in [(true, false), (true, true), (false, false), (false, true)] {
            var order = [(6, isOldDeleted), (7, !isOldDeleted)]
            if isReversed { order.reverse() }
            try await withSampleCache(Self.schema) { sample in
                let todos = order.map {
                    todo(1, "v\($0.0)", version: $0.0, deleted: $0.1, steps: #"[{"text":"s\#($0.0)"}]"#)
                }
                _ = try await sample.write(Self.todos, data: #"{"todos":[\#(todos.joined(separator: ","))]}"#)
                let found = try sample.json("{ todos { title steps { text } } }")
                let isThere = found.contains(#"{"title":"v7","steps":[{"text":"s7"}]}"#)
                #expect(isThere == isOldDeleted, "\(order): \(found)")
                #expect(try sample.cache.version(of: "Todo:1") == 7)
            }
        }
    }

    @Test("An object whose version did not come is stored")
    func unknownVersion() async throws {
        try await withSampleCache(Self.schema) { sample in
            _ = try await write(sample, todo(1, "one", version: 3))
            let event = try sample.operation("subscription { changed { id title } }")
            let body = #"{"data":{"changed":{"__typename":"Todo","id":"1","title":"event","_version":null}}}"#
            let parsed = try ParsedResponse.parse(Array(body.utf8), along: event.layout, ignoresNulls: true)
            try await sample.changing { try await $0.write(parsed, of: event) }
            #expect(try titles(sample) == #"{"todos":[{"id":"1","title":"event"}]}"#)
            #expect(try sample.cache.version(of: "Todo:1") == 3)
        }
    }

    @Test("That an object is not deleted is said by null, where other nulls say nothing too")
    func nullThatCounts() async throws {
        try await withSampleCache(Self.schema) { sample in
            let event = try sample.operation("subscription { changed { id title } }")
            let body = #"""
                {"data":{"changed":{"__typename":"Todo","id":"1","title":null,
                "_version":1,"_deleted":null,"_lastChangedAt":1}}}
                """#
            let parsed = try ParsedResponse.parse(Array(body.utf8), along: event.layout, ignoresNulls: true)
            try await sample.changing { try await $0.write(parsed, of: event) }
            let fragment = try sample.fragment("fragment F on Todo { id title _deleted }")
            #expect(try sample.json(fragment, from: .object(key: "Todo:1")) == #"{"id":"1","_deleted":null}"#)
        }
    }

    @Test("Where a null says nothing, references and lists stay as they are, like other values")
    func nullOfObjects() async throws {
        try await withSampleCache(Self.schema) { sample in
            let next = #"{"__typename":"Todo","id":"2","_version":1,"_deleted":null,"_lastChangedAt":1}"#
            let whole = #"{"__typename":"Todo","id":"1","title":"one","steps":[{"text":"a"}],"next":\#(next),"#
            let tail = #""_deleted":null,"_lastChangedAt":1}"#
            let query = "{ other { id title steps { text } next { id } } }"
            try await sample.write(query, data: #"{"other":\#(whole)"_version":1,\#(tail)}"#)
            let event = try sample.operation("subscription { changed { id title steps { text } next { id } } }")
            let nulls = #"{"__typename":"Todo","id":"1","title":null,"steps":null,"next":null,"_version":2,\#(tail)"#
            let parsed = try ParsedResponse.parse(
                Array(#"{"data":{"changed":\#(nulls)}}"#.utf8), along: event.layout, ignoresNulls: true)
            try await sample.changing { try await $0.write(parsed, of: event) }
            #expect(
                try sample.json(query)
                    == #"{"other":{"id":"1","title":"one","steps":[{"text":"a"}],"next":{"id":"2"}}}"#)
            #expect(try sample.cache.version(of: "Todo:1") == 2)
        }
    }

    @Test("What is sent asks for the version, and only where the type has one")
    func sent() throws {
        let schema = try SchemaIndex(parsing: Self.schema)
        func sent(_ text: String) throws -> String {
            try CompiledOperation(operation: nil, in: Document(parsing: text), schema).sentText
                .split(whereSeparator: \.isWhitespace).joined(separator: " ")
        }
        #expect(
            try sent("{ todos { title steps { text } } }")
                == """
                { todos { title steps { text __typename } __typename id _version _deleted _lastChangedAt } }
                """)
    }

    @Test("A type without the field _version is refused")
    func refused() {
        let error = #expect(throws: SchemaError.self) {
            try SchemaIndex(parsing: "type Query { a: Int } type A @typePolicy(versioned: true) { id: ID! }")
        }
        #expect(error?.message == "A is to have versions, and has no field _version")
    }

    @Test("The implementations of a versioned interface have versions, also once the schema was compiled")
    func interface() throws {
        let schema = try SchemaIndex(
            parsing: """
                interface Node @typePolicy(versioned: true) { id: ID! _version: Int }
                type A implements Node { id: ID! _version: Int }
                type Query { a: A }
                """)
        let stored = try SchemaIndex(serialized: schema.serialized())
        #expect(stored == schema)
        #expect(stored.types.filter(\.isVersioned).map(\.name).sorted() == ["A", "Node"])
    }
}
