import LarderGraphQL
import LarderTestSupport
import Testing

@testable import LarderRecords

@Suite("Keys of fields with arguments", .timeLimit(.minutes(10)))
struct FieldKeyTests {
    @Test("Arguments that differ only in how Unicode composes them are two")
    func composedArguments() async throws {
        try await withSampleCache(movieSchema) { sample in
            let query = "query($t: String) { note(text: $t) }"
            try await sample.write(query, ["t": .string("\u{E9}")], data: #"{"note":"composed"}"#)
            #expect(try sample.missing(query, ["t": .string("e\u{301}")]) == ["note"])
            try await sample.write(query, ["t": .string("e\u{301}")], data: #"{"note":"decomposed"}"#)
            #expect(try sample.json(query, ["t": .string("\u{E9}")]) == #"{"note":"composed"}"#)
            #expect(try sample.json(query, ["t": .string("e\u{301}")]) == #"{"note":"decomposed"}"#)
            let both = "{ a: note(text: \"\u{E9}\") b: note(text: \"e\u{301}\") }"
            #expect(try sample.json(both) == #"{"a":"composed","b":"decomposed"}"#)
        }
    }

    @Test("The default of a variable that was left out decides about @include and @skip", arguments: [true, false])
    func defaultCondition(_ standard: Bool) throws {
        let text = """
            query($x: Boolean = \(standard)) { count @include(if: $x) number @skip(if: $x) note }
            """
        let operation = try CompiledOperation(
            operation: nil, in: Document(parsing: text), SchemaIndex(parsing: movieSchema))
        func names(_ variables: [String: Value]) throws -> [String] {
            let plan = try operation.bound(variables).layout.plan
            return plan.cases[plan.selections[plan.root].types[0].caseIndex].names
        }
        let (included, skipped) = (["count", "note"], ["number", "note"])
        #expect(try names([:]) == (standard ? included : skipped))
        #expect(try names(["x": .boolean(!standard)]) == (standard ? skipped : included))
    }

    @Test("A document has one plan for each outcome of its conditions, whatever its other variables are")
    func planOfOutcome() throws {
        let text = "query($x: Boolean!, $t: String) { count @include(if: $x) note(text: $t) }"
        let operation = try CompiledOperation(
            operation: nil, in: Document(parsing: text), SchemaIndex(parsing: movieSchema))
        let first = try operation.bound(["x": .boolean(true), "t": .string("a")]).layout
        let same = try operation.bound(["x": .boolean(true), "t": .string("b")]).layout
        let other = try operation.bound(["x": .boolean(false), "t": .string("a")]).layout
        #expect(first === same && first !== other)
    }

    /// The response keys that are selected of the root.
    private func selected(_ text: String, _ variables: [String: Value]) throws -> [String] {
        let operation = try CompiledOperation(
            operation: nil, in: Document(parsing: text), SchemaIndex(parsing: movieSchema))
        let plan = try operation.bound(variables).layout.plan
        return plan.cases[plan.selections[plan.root].types[0].caseIndex].names
    }

    @Test(
        "A variable that decides about a fragment alone is heeded, be the fragment named or not",
        arguments: [
            "query($w: Boolean!) { count ...F @include(if: $w) } fragment F on Query { note }",
            "query($w: Boolean!) { count ... @include(if: $w) { note } }",
        ], [true, false])
    func fragmentCondition(_ text: String, _ isIncluded: Bool) throws {
        let found = try selected(text, ["w": .boolean(isIncluded)])
        #expect(found == (isIncluded ? ["count", "note"] : ["count"]))
    }

    @Test(
        "A field with both @skip and @include is selected only where both let it be, whichever stands first",
        arguments: ["@skip(if: $s) @include(if: $i)", "@include(if: $i) @skip(if: $s)"])
    func bothConditions(_ directives: String) throws {
        let text = "query($s: Boolean!, $i: Boolean!) { count note \(directives) }"
        for (skips, includes) in [(false, false), (false, true), (true, false), (true, true)] {
            let found = try selected(text, ["s": .boolean(skips), "i": .boolean(includes)])
            #expect(found == (!skips && includes ? ["count", "note"] : ["count"]), "\(skips) \(includes)")
        }
    }

    private func keys(_ text: String, _ variables: [String: Value] = [:]) throws -> Set<String> {
        let schema = try SchemaIndex(parsing: movieSchema)
        let operation = try CompiledOperation(operation: nil, in: Document(parsing: text), schema).bound(variables)
        return Set(operation.binding.fieldKeys)
    }

    @Test(
        "All ways of writing the same arguments are one key",
        arguments: [
            (
                "{ movies(first: 3, filter: {genre: DRAMA, text: \"a\"}) { id } }",
                "{ movies(filter: {text: \"a\", genre: DRAMA}, first: 3) { id } }", [:]
            ),
            (
                "{ movies(filter: {genre: DRAMA}) { id } }", "query($g: Genre) { movies(filter: {genre: $g}) { id } }",
                ["g": .string("DRAMA")]
            ),
            (
                "{ movies(filter: {genre: DRAMA}) { id } }", "query($f: Filter) { movies(filter: $f) { id } }",
                ["f": .object(["genre": .string("DRAMA")])]
            ),
            ("{ movies(genres: [DRAMA]) { id } }", "{ movies(genres: DRAMA) { id } }", [:]),
            (
                "{ movies(genres: [DRAMA]) { id } }", "query($g: [Genre]) { movies(genres: $g) { id } }",
                ["g": .string("DRAMA")]
            ),
            ("{ movies(filter: {years: [1]}) { id } }", "{ movies(filter: {years: 1}) { id } }", [:]),
            ("{ movie(id: 1) { id } }", "{ movie(id: \"1\") { id } }", [:]),
            ("{ movie(id: 1) { id } }", "query($i: ID) { movie(id: $i) { id } }", ["i": .int(1)]),
            ("{ movie(id: 1) { id } }", "query($i: ID = 1) { movie(id: $i) { id } }", [:]),
            ("{ movie { id } }", "query($i: ID) { movie(id: $i) { id } }", [:]),
            ("{ movies(filter: {}) { id } }", "query($g: Genre) { movies(filter: {genre: $g}) { id } }", [:]),
            ("{ movie(id: null) { id } }", "query($i: ID = 1) { movie(id: $i) { id } }", ["i": .null]),
            (
                "{ movies(filter: {id: 7}) { id } }", "query($i: ID) { movies(filter: {id: $i}) { id } }",
                ["i": .string("7")]
            ),
            (
                "{ movie(id: 18446744073709551616) { id } }", "query($i: ID) { movie(id: $i) { id } }",
                ["i": .number("18446744073709551616")]
            ),
            (
                "{ movie(id: \"18446744073709551616\") { id } }", "query($i: ID) { movie(id: $i) { id } }",
                ["i": .number("18446744073709551616")]
            ),
            ("{ search(ratio: 1) { __typename } }", "{ search(ratio: 1.0) { __typename } }", [:]),
            (
                "{ search(ratio: 1) { __typename } }", "query($r: Float) { search(ratio: $r) { __typename } }",
                ["r": .int(1)]
            ),
            (
                "{ search(ratio: 100000000000000000000) { __typename } }",
                "query($r: Float) { search(ratio: $r) { __typename } }", ["r": .float(1e20)]
            ),
            (
                "{ search(ratio: 0.1000000000000000055511151231257827) { __typename } }",
                "query($r: Float) { search(ratio: $r) { __typename } }", ["r": .number("0.10000000000000000555")]
            ),
            ("{ search(tags: [[\"a\"]]) { __typename } }", "{ search(tags: \"a\") { __typename } }", [:]),
            (
                "{ search(tags: [[\"a\"], [\"b\"]]) { __typename } }",
                "{ search(tags: [[\"a\"], \"b\"]) { __typename } }", [:]
            ),
            (
                "{ search(raw: {a: 1, b: [true]}) { __typename } }",
                "query($r: JSON) { search(raw: $r) { __typename } }",
                ["r": .object(["b": .list([.boolean(true)]), "a": .int(1)])]
            ),
            ("{ note(text: \"a\\nb\") }", "{ note(text: \"\"\"\na\nb\n\"\"\") }", [:]),
        ] as [(String, String, [String: Value])])
    func sameKeys(one: String, other: String, variables: [String: Value]) throws {
        #expect(try keys(one).subtracting(["id"]) == keys(other, variables).subtracting(["id"]))
    }

    @Test(
        "Different arguments are different keys",
        arguments: [
            ("{ movie { id } }", "{ movie(id: null) { id } }"), ("{ movie(id: 1) { id } }", "{ movie(id: 10) { id } }"),
            ("{ search(text: \"1\") { __typename } }", "{ search(ratio: 1) { __typename } }"),
            ("{ search(tags: []) { __typename } }", "{ search(tags: [[]]) { __typename } }"),
            (
                "{ search(tags: [[\"a\", \"b\"]]) { __typename } }",
                "{ search(tags: [[\"a\"], [\"b\"]]) { __typename } }"
            ),
            ("{ search(tags: [[\"a,b\"]]) { __typename } }", "{ search(tags: [[\"a\", \"b\"]]) { __typename } }"),
            ("{ search(raw: 1) { __typename } }", "{ search(raw: \"1\") { __typename } }"),
            ("{ search(raw: 18446744073709551616) { __typename } }", "{ search(raw: null) { __typename } }"),
            (
                "{ search(raw: 18446744073709551616) { __typename } }",
                "{ search(raw: 18446744073709551617) { __typename } }"
            ),
            ("{ search(raw: null) { __typename } }", "{ search { __typename } }"),
            ("{ movies(filter: {}) { id } }", "{ movies { id } }"),
            ("{ movies(filter: {text: null}) { id } }", "{ movies(filter: {}) { id } }"),
            ("{ note(text: \"a\\\"})\") }", "{ note(text: \"a\") }"),
        ])
    func differentKeys(one: String, other: String) throws {
        #expect(try keys(one).subtracting(["id"]) != keys(other).subtracting(["id"]))
    }

    @Test(
        "A key with an unbalanced parenthesis, a dot or a percent sign loses no record, and no neighbour",
        arguments: [
            "(", ")", "a.b", "100%", "%28", "a:b", "\"", "\\", "'", "{}", "😀", "\u{0}", "\n", " ", "é", ",",
            String(repeating: "x(", count: 5000), String(repeating: "é", count: 5000),
            String(repeating: "a", count: 505),
        ])
    func hostileKeys(text: String) async throws {
        try await withSampleCache(movieSchema) { sample in
            let query = "query($i: ID, $n: String) { movie(id: $i) { id title } note(text: $n) }"
            func data(_ id: String, _ title: String) -> String {
                let id = String(decoding: Value.string(id).json, as: UTF8.self)
                return #"{"movie":{"__typename":"Movie","id":\#(id),"title":"\#(title)"},"note":"\#(title)"}"#
            }
            let names = [text, text + ")", "(" + text, text + "x"]
            for (index, name) in names.enumerated() {
                try await sample.write(query, ["i": .string(name), "n": .string(name)], data: data(name, "T\(index)"))
            }
            try sample.reopen()
            for (index, name) in names.enumerated() {
                let found = try sample.cache.read(sample.operation(query, ["i": .string(name), "n": .string(name)]))
                #expect(found.response["movie"]?["title"]?.string == "T\(index)")
                #expect(found.response["movie"]?["id"]?.string.map { Array($0.utf8) } == Array(name.utf8))
                #expect(found.response["note"]?.string == "T\(index)")
            }
            try await sample.changing { try await $0.remove(keys: ["Movie:" + text], as: .evicted) }
            for (index, name) in names.enumerated() {
                let found = try sample.cache.read(sample.operation(query, ["i": .string(name), "n": .string(name)]))
                #expect(found.response.missing.isEmpty == (index > 0))
            }
        }
    }

    @Test("A key of 504 bytes is stored as it is, and one of 505 with a hash")
    func shortest() {
        let key = Array(repeating: UInt8(ascii: "a"), count: 505)
        #expect(StoredKey.bytes(Array(key.dropLast())) == Array(key.dropLast()))
        let stored = StoredKey.bytes(key)
        #expect(stored.count == 505 && stored.starts(with: key.prefix(440)) && stored[440] == 0)
    }

    @Test("The stored form of a long key ends with the SHA-256 of the whole, in hexadecimal")
    func hashedKey() {
        let stored = StoredKey.bytes(Array(repeating: UInt8(ascii: "a"), count: 505))
        // As sha256sum says it.
        let hash = "2d4e592d74705977813764e7f33d8271cc6f5bb128a5953c8828287e48a89f9b"
        #expect(String(decoding: stored.suffix(64), as: UTF8.self) == hash)
    }

    @Test("A long key is not mistaken for the form in which it is stored")
    func shortenedKeys() async throws {
        try await withSampleCache(movieSchema) { sample in
            let long = "Movie:" + String(repeating: "a", count: 600)
            let stored = String(decoding: StoredKey.bytes(Array(long.utf8)), as: UTF8.self)
            let query = "query($i: ID) { movie(id: $i) { title } }"
            for (key, title) in [(long, "long"), (stored, "stored")] {
                let id = String(decoding: Value.string(String(key.dropFirst(6))).json, as: UTF8.self)
                try await sample.write(
                    query, ["i": .string(key)],
                    data: #"{"movie":{"__typename":"Movie","id":\#(id),"title":"\#(title)"}}"#)
            }
            #expect(try sample.json(query, ["i": .string(long)]) == #"{"movie":{"title":"long"}}"#)
            #expect(try sample.json(query, ["i": .string(stored)]) == #"{"movie":{"title":"stored"}}"#)
        }
    }
}
