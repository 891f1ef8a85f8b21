import LarderGraphQL
import LarderTestSupport
import Testing

@testable import LarderRecords

@Suite("Objects that a response has more than once", .timeLimit(.minutes(10)))
struct RepeatedObjectTests {
    @Test("The root of a fragment that is met again below itself is one record")
    func rootMetAgain() async throws {
        try await withSampleCache(movieSchema) { sample in
            let fragment = try sample.fragment(
                "fragment F on User { id name friends { id name friends { id login } } }")
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
            try await sample.write(
                query,
                data: """
                    {"movie":{"__typename":"Movie","id":"1","related":[{"__typename":"Movie","id":"1","place":{"y":2},
                    "points":[{"y":3},{"y":4}]}],"place":null,"points":[{"x":5}]}}
                    """)
        }
    }

    @Test("An object that comes twice with different parts keeps the last, and nothing is left over")
    func twiceWithDifferentParts() async throws {
        try await withSampleCache(movieSchema) { sample in
            let query =
                "{ a: movie(id: 1) { id place { x } points { x } spots { ... on Point { x } } } "
                + "b: movie(id: 2) { id place { x } points { x } spots { ... on Point { x } } } }"
            func data(_ first: String, _ second: String) -> String {
                #"{"a":{"__typename":"Movie","id":"1",\#(first)},"b":{"__typename":"Movie","id":"1",\#(second)}}"#
            }
            for _ in 0..<2 {
                try await sample.write(
                    query,
                    data: data(
                        #""place":{"x":1},"points":[{"x":1},{"x":2},{"x":3}],"spots":[{"__typename":"Point","x":1}]"#,
                        #""place":null,"points":[{"x":4},{"x":5}],"spots":[{"__typename":"Place","id":"1"}]"#))
                #expect(
                    try sample.json("{ a: movie(id: 1) { place { x } points { x } } }")
                        == #"{"a":{"place":null,"points":[{"x":4},{"x":5}]}}"#)
                try await sample.write(
                    query,
                    data: data(
                        #""place":null,"points":[{"x":1}],"spots":[{"__typename":"Place","id":"1"}]"#,
                        #""place":{"x":7},"points":[{"x":8},null],"spots":[{"__typename":"Point","x":1}]"#))
                #expect(
                    try sample.json("{ a: movie(id: 1) { place { x } points { x } } }")
                        == #"{"a":{"place":{"x":7},"points":[{"x":8},null]}}"#)
            }
        }
    }

    @Test(
        "An object that comes several times has the last of each field, whichever of them are whole",
        arguments: [
            [#""name":"A","login":"a""#, #""name":"B","login":"b""#],
            [#""name":"A","login":"a""#, #""name":"B""#, #""login":"b""#],
            [#""name":"A""#, #""name":"X","login":"y""#, #""name":"B","login":"b""#],
            [#""name":"A","login":"b""#, #""name":"B""#],
        ])
    func lastOfEachField(_ users: [String]) async throws {
        try await withSampleCache(movieSchema) { sample in
            let fragment = try sample.fragment(
                """
                fragment F on User { id friends { ...U friends { ...V friends { ...W } } } }
                fragment U on User { id \(fields(in: users[0])) }
                fragment V on User { id \(fields(in: users[1])) }
                fragment W on User { id \(fields(in: users.last ?? "")) }
                """, name: "F")
            func object(_ index: Int) -> String {
                guard index < 3 else { return "" }
                let own = users[min(index, users.count - 1)]
                let below = index < 2 ? ",\"friends\":[\(object(index + 1))]" : ""
                return "{\"__typename\":\"User\",\"id\":\"2\",\(own)\(below)}"
            }
            // The nested ones are inside of the first, and come after it in the text.
            for _ in 0..<2 {
                try await sample.write(
                    fragment, response: "{\"data\":{\"__typename\":\"User\",\"id\":\"1\",\"friends\":[\(object(0))]}}",
                    to: .object(key: "User:1"))
                #expect(
                    try sample.json(
                        try sample.fragment("fragment F on User { name login }"), from: .object(key: "User:2"))
                        == #"{"name":"B","login":"b"}"#)
            }
        }
    }

    private func fields(in user: String) -> String {
        ["name", "login"].filter { user.contains("\"\($0)\"") }.joined(separator: " ")
    }

    @Test("An object of many fields that comes several times has the last of each, and each once")
    func manyFieldsMetAgain() async throws {
        let fields = (0...41).map { "f\($0): Int" }.joined(separator: " ")
        try await withSampleCache("type Query { wide: Wide } type Wide { id: ID! \(fields) }") { sample in
            let many = (0..<40).map { "f\($0)" }.joined(separator: " ")
            let values = (0..<40).map { "\"f\($0)\":\($0)" }.joined(separator: ",")
            let query = """
                { a: wide { id \(many) } b: wide { id one: f1 more: f40 } c: wide { id f40 f1 f41 } d: wide { id f41 } }
                """
            let wide = #""__typename":"Wide","id":"1""#
            for _ in 0..<2 {
                try await sample.write(
                    query,
                    data: """
                        {"a":{\(wide),\(values)},"b":{\(wide),"one":101,"more":140},
                        "c":{\(wide),"f40":240,"f1":201,"f41":241},"d":{\(wide),"f41":341}}
                        """)
                #expect(
                    try sample.json("{ wide { f0 f1 f2 f39 f40 f41 } }")
                        == #"{"wide":{"f0":0,"f1":201,"f2":2,"f39":39,"f40":240,"f41":341}}"#)
                #expect(try sample.cache.inspect.record(key: "Wide:1")?.fields.count == 43)
            }
        }
    }

    @Test("A list that has the same object twice keeps the later of both")
    func twiceInAList() async throws {
        try await withSampleCache(movieSchema) { sample in
            let fragment = try sample.fragment("fragment F on User { id friends { id name login } }")
            try await sample.write(
                fragment,
                response: """
                    {"data":{"__typename":"User","id":"1","friends":[
                    {"__typename":"User","id":"2","name":"A","login":"a"},
                    {"__typename":"User","id":"3","name":"C","login":"c"},
                    {"__typename":"User","id":"2","name":"B","login":"b"}]}}
                    """, to: .object(key: "User:1"))
            #expect(
                try sample.json(
                    try sample.fragment("fragment F on User { friends { name login } }"), from: .object(key: "User:1"))
                    == #"{"friends":[{"name":"B","login":"b"},{"name":"C","login":"c"},{"name":"B","login":"b"}]}"#)
        }
    }
}
