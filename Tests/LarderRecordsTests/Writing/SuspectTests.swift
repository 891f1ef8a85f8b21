import LarderGraphQL
import LarderTestSupport
import Testing

@testable import LarderRecords

@Suite struct SuspectTests {
    @Test("What an update has written is read by the same operation at once")
    func updateThenRead() async throws {
        try await withSampleCache(movieSchema) { sample in
            let operation = try sample.operation("{ movie(id: 1) { id title } }")
            let parsed = try ParsedResponse.parse(
                Array(#"{"data":{"movie":{"__typename":"Movie","id":"1","title":"A"}}}"#.utf8), along: operation.layout)
            _ = try await sample.cache.update(operation) { _ in parsed }
            #expect(try sample.json(operation) == #"{"movie":{"id":"1","title":"A"}}"#)
        }
    }

    @Test("What is written after an update gave up is read by the same operation")
    func failedUpdateThenWrite() async throws {
        struct GivenUp: Error {}
        try await withSampleCache(movieSchema) { sample in
            let operation = try sample.operation("{ movie(id: 1) { id title } }")
            await #expect(throws: RecordError.self) {
                try await sample.cache.update(operation) { _ in throw GivenUp() }
            }
            try await sample.write(
                operation, response: #"{"data":{"movie":{"__typename":"Movie","id":"1","title":"A"}}}"#)
            #expect(try sample.json(operation) == #"{"movie":{"id":"1","title":"A"}}"#)
        }
    }

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

    @Test("The root of a fragment that is met again below itself is one record")
    func rootMetAgain() async throws {
        try await withSampleCache(movieSchema) { sample in
            let fragment = try sample.fragment("fragment F on User { id name friends { id name friends { id login } } }")
            try await sample.write(
                fragment,
                response: """
                    {"data":{"__typename":"User","id":"1","name":"Ada","friends":[{"__typename":"User","id":"2",
                    "name":"Bo","friends":[{"__typename":"User","id":"1","login":"ada"}]}]}}
                    """, to: .object(key: "User:1"))
            #expect(
                try sample.json(try sample.fragment("fragment F on User { name login }"), from: .object(key: "User:1"))
                    == #"{"name":"Ada","login":"ada"}"#)
        }
    }

    @Test("An alias in another operation of the document does not hide the key field")
    func aliasElsewhere() async throws {
        try await withSampleCache(movieSchema) { sample in
            let text = "query A { movie(id: 1) { title } } query B { movie(id: 1) { id: title } }"
            let compiled = try CompiledOperation(operation: "A", in: Document(parsing: text), sample.schema)
            #expect(compiled.sentText.contains("id"))
            let operation = try compiled.bound()
            try await sample.write(
                operation, response: #"{"data":{"movie":{"title":"A","__typename":"Movie","id":"1"}}}"#)
            #expect(try CacheDump(sample.cache).records.values.compactMap(\.key).sorted() == ["Movie:1", "QUERY_ROOT"])
        }
    }

    @Test("Types that narrow an interface's field are each read by their own definition")
    func covariantFields() async throws {
        try await withSampleCache(movieSchema) { sample in
            let query = "{ animals { name owner { id } home { x } } }"
            try await sample.write(
                query,
                data: """
                    {"animals":[{"__typename":"Dog","name":"Rex","owner":{"__typename":"User","id":"1"},"home":{"x":1}},
                    {"__typename":"Cat","name":null,"owner":{"__typename":"Movie","id":"1"},"home":null}]}
                    """)
            #expect(
                try sample.json(query) == #"{"animals":[{"name":"Rex","owner":{"id":"1"},"home":{"x":1}},"#
                    + #"{"name":null,"owner":{"id":"1"},"home":null}]}"#)
            let keys = try CacheDump(sample.cache).records.values.compactMap(\.key).sorted()
            #expect(keys == ["Movie:1", "QUERY_ROOT", "User:1"])
        }
    }

    @Test("Missing fields of an object that is null are not reported")
    func missingBelowNull() async throws {
        try await withSampleCache(movieSchema) { sample in
            let data = #"{"movie":{"__typename":"Movie","id":"1","required":{"__typename":"User","id":"7"}}}"#
            try await sample.write("{ movie(id: 1) { id required { id } } }", data: data)
            try await sample.changing { try await $0.remove(keys: ["User:7"], as: .deleted) }
            for query in ["{ movie(id: 1) { title required { id } } }", "{ movie(id: 1) { required { id } title } }"] {
                #expect(try sample.json(query) == #"{"movie":null}"#)
                #expect(try sample.missing(query) == [])
            }
        }
    }

    @Test("Large whole numbers are integers, however many zeros they end in")
    func largeIntegers() async throws {
        try await withSampleCache(movieSchema) { sample in
            let query = "{ movie(id: 1) { id year } }"
            let data = #"{"movie":{"__typename":"Movie","id":10000000000000000000,"year":100000000000000000000}}"#
            try await sample.write(query, data: data)
            #expect(try sample.json(query) == #"{"movie":{"id":10000000000000000000,"year":100000000000000000000}}"#)
            #expect(try CacheDump(sample.cache).records.values.compactMap(\.key).contains("Movie:10000000000000000000"))
            let operation = try sample.operation(query)
            #expect(parseFault(
                #"{"data":{"movie":{"__typename":"Movie","id":1,"year":0.1000000000000000055511151231257827}}}"#,
                along: operation) == "responseMismatch movie.year")
        }
    }

    @Test("An object that is met again below itself, before its own parts, keeps them")
    func metAgainBeforeItsParts() async throws {
        try await withSampleCache(movieSchema) { sample in
            let query = "{ movie(id: 1) { id related { id place { y } points { y } } place { x } points { x } } }"
            let data = """
                {"movie":{"__typename":"Movie","id":"1","related":[{"__typename":"Movie","id":"1","place":{"y":2},
                "points":[{"y":3},{"y":4}]}],"place":{"x":1},"points":[{"x":5},{"x":6}]}}
                """
            for _ in 0..<2 {
                try await sample.write(query, data: data)
                #expect(
                    try sample.json("{ movie(id: 1) { place { x y } points { x y } } }")
                        == #"{"movie":{"place":{"x":1,"y":2},"points":[{"x":5,"y":3},{"x":6,"y":4}]}}"#)
            }
            try await sample.write(query, data: """
                {"movie":{"__typename":"Movie","id":"1","related":[{"__typename":"Movie","id":"1","place":{"y":2},
                "points":[{"y":3},{"y":4}]}],"place":null,"points":[{"x":5}]}}
                """)
        }
    }

    @Test("An object that comes twice with different parts keeps the last, and nothing is left over")
    func twiceWithDifferentParts() async throws {
        try await withSampleCache(movieSchema) { sample in
            let query = "{ a: movie(id: 1) { id place { x } points { x } spots { ... on Point { x } } } "
                + "b: movie(id: 2) { id place { x } points { x } spots { ... on Point { x } } } }"
            func data(_ first: String, _ second: String) -> String {
                #"{"a":{"__typename":"Movie","id":"1",\#(first)},"b":{"__typename":"Movie","id":"1",\#(second)}}"#
            }
            for _ in 0..<2 {
                try await sample.write(query, data: data(
                    #""place":{"x":1},"points":[{"x":1},{"x":2},{"x":3}],"spots":[{"__typename":"Point","x":1}]"#,
                    #""place":null,"points":[{"x":4},{"x":5}],"spots":[{"__typename":"Place","id":"1"}]"#))
                #expect(
                    try sample.json("{ a: movie(id: 1) { place { x } points { x } } }")
                        == #"{"a":{"place":null,"points":[{"x":4},{"x":5}]}}"#)
                try await sample.write(query, data: data(
                    #""place":null,"points":[{"x":1}],"spots":[{"__typename":"Place","id":"1"}]"#,
                    #""place":{"x":7},"points":[{"x":8},null],"spots":[{"__typename":"Point","x":1}]"#))
                #expect(
                    try sample.json("{ a: movie(id: 1) { place { x } points { x } } }")
                        == #"{"a":{"place":{"x":7},"points":[{"x":8},null]}}"#)
            }
        }
    }
}
