import LarderGraphQL
import LarderTestSupport
import Testing

@testable import LarderRecords

@Suite("Records of many fields", .timeLimit(.minutes(10)))
struct SplitRecordTests {
    private func query(_ numbers: some Sequence<Int>) -> String {
        "{ " + numbers.map { "n\($0): note(text: \"\($0)\") p\($0): movie(id: \($0)) { title }" }.joined(separator: " ")
            + " }"
    }

    private func data(_ numbers: some Sequence<Int>, _ text: String) -> String {
        "{"
            + numbers.map {
                #""n\#($0)":"\#(text)\#($0)","p\#($0)":{"__typename":"Movie","id":"\#($0)","title":"\#(text)"}"#
            }.joined(separator: ",") + "}"
    }

    @Test("A record grows past the threshold, and everything in it is read as before")
    func growing() async throws {
        try await withSampleCache(movieSchema) { sample in
            for start in stride(from: 0, to: 60, by: 5) {
                try await sample.write(query(start..<(start + 5)), data: data(start..<(start + 5), "a"))
                #expect(try CacheDump(sample.cache).splitRecords.isEmpty == (start < 30))
                #expect(try sample.missing(query(0..<(start + 5))) == [])
            }
            try sample.reopen()
            let commit = try await sample.write(query(0..<60), data: data(0..<60, "a"))
            #expect(commit.changes.isEmpty)
            #expect(try sample.cache.read(sample.operation(query([3]))).response["n3"]?.string == "a3")
            #expect(try sample.missing("{ note(text: \"60\") }") == ["note"])
            let change = try await sample.write(query([7]), data: data([7], "b"))
            #expect(
                try CacheDump(sample.cache).named(change.changes) == [
                    "Movie:7.title", "QUERY_ROOT.note({\"text\":\"7\"})",
                ])
        }
    }

    @Test(
        "A record of 64 fields keeps them in itself, one of 65 is split, whether they come at once or one after the other",
        arguments: [64, 65], [0, 40])
    func threshold(count: Int, before: Int) async throws {
        try await withSampleCache(movieSchema) { sample in
            func write(_ count: Int) async throws {
                let notes = (0..<count).map { "n\($0): note(text: \"\($0)\")" }.joined(separator: " ")
                let values = (0..<count).map { "\"n\($0)\":\"\($0)\"" }.joined(separator: ",")
                try await sample.write("{ \(notes) }", data: "{\(values)}")
                #expect(try sample.missing("{ \(notes) }") == [])
            }
            if before > 0 { try await write(before) }
            try await write(count)
            #expect(try CacheDump(sample.cache).splitRecords.isEmpty == (count == 64))
        }
    }

    @Test("The fields of a split record are counted among the bytes of its type")
    func bytes() async throws {
        try await withSampleCache(movieSchema) { sample in
            try await sample.write(query(0..<50), data: data(0..<50, "a"))
            let root = try #require(try sample.cache.inspect.record(key: "QUERY_ROOT"))
            #expect(root.isSplit && root.byteCount > 1_000)
            #expect(try sample.cache.inspect.types().first { $0.type == "Query" }?.bytes == root.byteCount)
        }
    }

    @Test("Fields are removed from a split record with what they hold")
    func removing() async throws {
        try await withSampleCache(movieSchema) { sample in
            try await sample.write(query(0..<50), data: data(0..<50, "a"))
            try await sample.write("{ box { x } }", data: #"{"box":{"x":1}}"#)
            try await sample.changing { try await $0.remove(field: "box", of: "QUERY_ROOT") }
            #expect(try sample.missing("{ box { x } }") == ["box"])
            try await sample.changing { try await $0.remove(field: "note({\"text\":\"7\"})", of: "QUERY_ROOT") }
            #expect(try sample.missing(query([7, 8])) == ["n7"])
            try await sample.changing { try await $0.remove(field: "note", of: "QUERY_ROOT") }
            #expect(try sample.missing("{ n8: note(text: \"8\") p8: movie(id: 8) { title } }") == ["n8"])
            // It goes with the part that one of its fields holds.
            try await sample.write("{ box { x } }", data: #"{"box":{"x":1}}"#)
            try await sample.changing { try await $0.remove(keys: ["QUERY_ROOT"], as: .evicted) }
            #expect(try sample.missing("{ box { x } count }").sorted() == ["box", "count"])
            try await sample.write("{ count }", data: #"{"count":1}"#)
        }
    }

    @Test("A field is removed with arguments of any length, and none whose name only begins alike", arguments: [2, 40])
    func alike(_ count: Int) async throws {
        let schema = "type Query { note(text: String): String notes(text: String): String no: String }"
        try await withSampleCache(schema) { sample in
            // Keys this long are shortened where they are stored; these begin alike.
            let texts = (0..<count).map { String(repeating: "long ", count: 200) + "\($0)" } + ["short", "note("]
            for name in ["note", "notes"] {
                for text in texts {
                    try await sample.write(
                        "query Q($text: String) { \(name)(text: $text) }", ["text": .string(text)],
                        data: "{\"\(name)\":\"\(name)\"}")
                }
                try await sample.write("{ \(name) }", data: "{\"\(name)\":\"bare\"}")
            }
            try await sample.write("{ no }", data: #"{"no":"no"}"#)
            func missing(_ name: String) throws -> Int {
                try texts.reduce(into: sample.missing("{ \(name) }").count) { count, text in
                    count += try sample.missing(
                        "query Q($text: String) { \(name)(text: $text) }", ["text": .string(text)]
                    ).count
                }
            }
            #expect(try CacheDump(sample.cache).splitRecords.isEmpty == (count < 40))
            let long = #"note({"text":"\#(texts[0])"})"#
            try await sample.changing { try await $0.remove(field: long, of: "QUERY_ROOT") }
            #expect(try (missing("note"), missing("notes")) == (1, 0))
            try await sample.changing { try await $0.remove(field: "note", of: "QUERY_ROOT") }
            #expect(try (missing("note"), missing("notes")) == (texts.count + 1, 0))
            #expect(try sample.missing("{ no }") == [])
            let nothing = try await sample.changing { try await $0.remove(field: "n", of: "QUERY_ROOT") }
            #expect(nothing.changes.isEmpty)
        }
    }

    @Test("A field whose very name is too long for a key is removed with its arguments")
    func longName() async throws {
        let name = "n" + String(repeating: "o", count: 500)
        try await withSampleCache("type Query { \(name)(text: String): Int \(name)r(text: String): Int }") { sample in
            for text in ["a", "b"] {
                try await sample.write("{ \(name)(text: \"\(text)\") }", data: "{\"\(name)\":1}")
                try await sample.write("{ \(name)r(text: \"\(text)\") }", data: "{\"\(name)r\":2}")
            }
            try await sample.changing { try await $0.remove(field: name, of: "QUERY_ROOT") }
            for text in ["a", "b"] {
                #expect(try sample.missing("{ \(name)(text: \"\(text)\") }") == [name])
                #expect(try sample.missing("{ \(name)r(text: \"\(text)\") }") == [])
            }
        }
    }

    @Test("A part of many fields becomes one of another type")
    func otherType() async throws {
        let fields = ManyFields.declared
        let schema = "type Query { wide: Wide } union Wide = A | B type A { \(fields) } type B { \(fields) }"
        try await withSampleCache(schema) { sample in
            let (all, values) = (ManyFields.selected, ManyFields.values)
            for type in ["A", "B", "A"] {
                try await sample.write(
                    "{ wide { __typename ... on A { \(all) } ... on B { \(all) } } }",
                    data: "{\"wide\":{\"__typename\":\"\(type)\",\(values)}}")
                #expect(
                    try sample.json("{ wide { __typename ... on \(type) { f3 } } }")
                        == #"{"wide":{"__typename":"\#(type)","f3":3}}"#)
            }
            #expect(try CacheDump(sample.cache).splitRecords.count == 1)
        }
    }

    @Test("A part of many fields is split, and replaced whole in a list")
    func splitPart() async throws {
        let fields = ManyFields.declared
        let schema = "type Query { wide: Wide wides: [Wide] } type Wide { \(fields) inner: Wide }"
        try await withSampleCache(schema) { sample in
            let (all, values) = (ManyFields.selected, ManyFields.values)
            try await sample.write(
                "{ wide { \(all) inner { \(all) } } wides { \(all) inner { f1 } } }",
                data: "{\"wide\":{\(values),\"inner\":{\(values)}},\"wides\":[{\(values),\"inner\":{\"f1\":2}}]}")
            #expect(try CacheDump(sample.cache).splitRecords.count == 3)
            try await sample.write("{ wide { f3 } wides { f3 } }", data: #"{"wide":{"f3":3},"wides":[{"f3":9}]}"#)
            #expect(
                try sample.json("{ wide { f2 f3 inner { f69 } } }") == #"{"wide":{"f2":2,"f3":3,"inner":{"f69":69}}}"#)
            #expect(try sample.missing("{ wides { f2 f3 } }") == ["wides[0].f2"])
            // Another object takes the place of one of many fields.
            try await sample.write("{ wide { f3 } }", data: #"{"wide":{"f3":9}}"#)
            #expect(try sample.missing("{ wide { f2 f3 inner { f69 } } }") == ["wide.f2", "wide.inner"])
            #expect(try CacheDump(sample.cache).records.count == 3)
            try await sample.write("{ wide { f3 } wides { f3 } }", data: #"{"wide":null,"wides":null}"#)
            #expect(try CacheDump(sample.cache).records.count == 1)
        }
    }
}
