import LarderGraphQL
import LarderTestSupport
import Testing

@testable import LarderRecords

@Suite("Parts that come again and contradict", .timeLimit(.minutes(10)))
struct ContradictingPartTests {
    private static let whole = "{ box { x y z } }"

    private func write(_ sample: SampleCache, _ selection: String, _ data: String) async throws -> Commit {
        try await sample.write(
            "{ movie(id: 1) { \(selection) } }",
            data: """
                {"movie":{"__typename":"Movie","id":"1",\(data)}}
                """)
    }

    private static func movie(_ id: String) -> String { #"{"__typename":"Movie","id":"\#(id)","title":"T"}"# }

    @Test(
        "A field that differs tells of another object: nothing of the one before shows on it",
        arguments: [
            ("x y", #"{"x":1,"y":2}"#, "x", #"{"x":9}"#, ["y"]),
            ("x y", #"{"x":1,"y":2}"#, "x", #"{"x":null}"#, ["y"]),
            ("y next { x y }", #"{"y":1,"next":{"x":1,"y":2}}"#, "next { x }", #"{"x":9}"#, ["y", "next.y"]),
            ("y next { x y }", #"{"y":1,"next":{"x":1,"y":2}}"#, "next { x }", "null", ["y"]),
            (
                "y next { next { x } }", #"{"y":1,"next":{"next":{"x":1}}}"#, "next { next { x } }",
                #"{"next":{"x":2}}"#,
                ["y"]
            ),
            ("y movie { title }", #"{"y":1,"movie":\#(movie("2"))}"#, "movie { title }", movie("3"), ["y"]),
            ("y movie { title }", #"{"y":1,"movie":\#(movie("2"))}"#, "movie { title }", "null", ["y"]),
            ("y inner { x }", #"{"y":1,"inner":[{"x":1}]}"#, "inner { x }", #"[{"x":2}]"#, ["y"]),
            ("y inner { x }", #"{"y":1,"inner":[{"x":1}]}"#, "inner { x }", "[]", ["y"]),
            // Nothing contradicts.
            ("x y", #"{"x":1,"y":2}"#, "x", #"{"x":1}"#, []),
            ("y next { x y }", #"{"y":1,"next":{"x":1,"y":2}}"#, "next { x }", #"{"x":1}"#, []),
            ("y movie { title }", #"{"y":1,"movie":\#(movie("2"))}"#, "movie { title }", movie("2"), []),
            ("y inner { x }", #"{"y":1,"inner":[{"x":1}]}"#, "inner { y }", #"[{"y":1}]"#, ["inner[0].x"]),
        ] as [(String, String, String, String, [String])])
    func contradiction(
        selection: String, data: String, later: String, laterData: String, missing: [String]
    ) async throws {
        try await withSampleCache(movieSchema) { sample in
            _ = try await write(sample, "place { \(selection) }", "\"place\":\(data)")
            let field = later.prefix { $0 != " " }
            let value = later.contains("{") ? "{\"\(field)\":\(laterData)}" : laterData
            _ = try await write(sample, "place { \(later) }", "\"place\":\(value)")
            let found = try sample.missing("{ movie(id: 1) { place { \(selection) } } }")
            #expect(Set(found) == Set(missing.map { "movie.place.\($0)" }))
            // The same answer again changes nothing.
            #expect(try await write(sample, "place { \(later) }", "\"place\":\(value)").changes.isEmpty)
        }
    }

    @Test(
        "A part of another type takes the place of the one before, under every policy",
        arguments: [
            "", "extend type Query @fieldPolicy(forField: \"animal\", parts: merge)",
        ])
    func otherType(policy: String) async throws {
        try await withSampleCache(movieSchema + "\n" + policy) { sample in
            try await sample.write(
                "{ animal { name ... on Dog { bark } } }", data: #"{"animal":{"__typename":"Dog","name":"A","bark":1}}"#
            )
            try await sample.write(
                "{ animal { home { x } } }", data: #"{"animal":{"__typename":"Cat","home":{"x":1}}}"#)
            #expect(try sample.missing("{ animal { name home { x } } }") == ["animal.name"])
        }
    }

    @Test("A part of another type tells of another object that holds it")
    func otherTypeInside() async throws {
        try await withSampleCache(movieSchema + " extend type Box { animal: Animal }") { sample in
            try await sample.write(
                "{ box { x animal { name } } }", data: #"{"box":{"x":1,"animal":{"__typename":"Dog","name":"A"}}}"#)
            try await sample.write(
                "{ box { animal { home { y } } } }", data: #"{"box":{"animal":{"__typename":"Cat","home":{"y":1}}}}"#)
            let missing = try sample.missing("{ box { x animal { name home { y } } } }")
            #expect(Set(missing) == ["box.x", "box.animal.name"])
        }
    }

    @Test(
        "A part in an entity's place, or an entity in a part's place, shows that its holder is another object",
        arguments: [("Place", "Point"), ("Point", "Place")])
    func otherKind(first: String, second: String) async throws {
        try await withSampleCache(movieSchema + " extend type Box { spot: Spot }") { sample in
            let values = [
                "Point": #"{"__typename":"Point","x":1}"#, "Place": #"{"__typename":"Place","id":"9","name":"N"}"#,
            ]
            let stored = try #require(values[first])
            let later = try #require(values[second])
            let spot = "spot { ... on Point { x } ... on Place { name } }"
            try await sample.write("{ box { y \(spot) } }", data: #"{"box":{"y":1,"spot":\#(stored)}}"#)
            try await sample.write("{ box { \(spot) } }", data: #"{"box":{"spot":\#(later)}}"#)
            #expect(try sample.missing("{ box { y \(spot) } }") == ["box.y"])
        }
    }

    @Test("A part that an error has hidden contradicts nothing")
    func hidden() async throws {
        try await withSampleCache(movieSchema) { sample in
            try await sample.write(Self.whole, data: #"{"box":{"x":1,"y":2,"z":3}}"#)
            try await sample.write(
                sample.operation("{ box { x z } }"),
                response: #"""
                    {"data":{"box":{"x":null,"z":3}},"errors":[{"message":"no","path":["box","x"]}]}
                    """#)
            #expect(try sample.json(Self.whole) == #"{"box":{"x":1,"y":2,"z":3}}"#)
        }
    }

    @Test(
        "A policy of the field goes before that of the type, and says merge or replace",
        arguments: [
            ("", #"{"x":9}"#, ["box.y"]), ("", #"{"z":3}"#, []),
            ("extend type Box @typePolicy(parts: \"merge\")", #"{"x":9}"#, []),
            ("extend type Box @typePolicy(parts: \"replace\")", #"{"z":3}"#, ["box.x", "box.y"]),
            ("extend type Query @fieldPolicy(forField: \"box\", parts: \"merge\")", #"{"x":9}"#, []),
            ("extend type Query @fieldPolicy(forField: \"box\", parts: \"replace\")", #"{"z":3}"#, ["box.x", "box.y"]),
            (
                """
                extend type Box @typePolicy(parts: "replace") extend type Query @fieldPolicy(forField: "box", parts: "merge")
                """, #"{"x":9}"#, []
            ),
        ] as [(String, String, [String])])
    func policies(policy: String, later: String, missing: [String]) async throws {
        try await withSampleCache(movieSchema + "\n" + policy) { sample in
            try await sample.write("{ box { x y } }", data: #"{"box":{"x":1,"y":2}}"#)
            try await sample.write("{ box { \(later.contains("x") ? "x" : "z") } }", data: "{\"box\":\(later)}")
            #expect(try sample.missing("{ box { x y } }") == missing)
        }
    }

    @Test("A part that is always merged does not make another object of the one that holds it")
    func mergedInside() async throws {
        let policy = "extend type Point @fieldPolicy(forField: \"next\", parts: merge)"
        try await withSampleCache(movieSchema + "\n" + policy) { sample in
            _ = try await write(sample, "place { y next { x y } }", #""place":{"y":1,"next":{"x":1,"y":2}}"#)
            _ = try await write(sample, "place { next { x } }", #""place":{"next":{"x":9}}"#)
            #expect(
                try sample.json("{ movie(id: 1) { place { y next { x y } } } }")
                    == #"{"movie":{"place":{"y":1,"next":{"x":9,"y":2}}}}"#)
            // In it, the rule is the ordinary one.
            _ = try await write(
                sample, "place { next { x inner { x } } }", #""place":{"next":{"x":9,"inner":[{"x":1}]}}"#)
            _ = try await write(sample, "place { next { inner { x } } }", #""place":{"next":{"inner":[{"x":2}]}}"#)
            #expect(try sample.missing("{ movie(id: 1) { place { y next { x y } } } }") == [])
        }
    }

    @Test("A part that is always merged goes with its fields when the part that holds it is another object")
    func mergedInsideReplaced() async throws {
        let policy = "extend type Point @fieldPolicy(forField: \"next\", parts: merge)"
        try await withSampleCache(movieSchema + "\n" + policy) { sample in
            _ = try await write(sample, "place { x y next { x y } }", #""place":{"x":1,"y":1,"next":{"x":1,"y":2}}"#)
            _ = try await write(sample, "place { x next { x } }", #""place":{"x":9,"next":{"x":1}}"#)
            #expect(
                try sample.missing("{ movie(id: 1) { place { x y next { x y } } } }")
                    == ["movie.place.y", "movie.place.next.y"])
        }
    }

    @Test(
        "A part of an always merged type does not make its holder another object, unless the field says replace",
        arguments: [
            ("", []), ("extend type Point @fieldPolicy(forField: \"box\", parts: \"replace\")", ["movie.place.y"]),
        ] as [(String, [String])])
    func mergedTypeInside(policy: String, missing: [String]) async throws {
        let schema = movieSchema + " extend type Point { box: Box } extend type Box @typePolicy(parts: \"merge\")"
        try await withSampleCache(schema + "\n" + policy) { sample in
            _ = try await write(sample, "place { y box { x } }", #""place":{"y":1,"box":{"x":1}}"#)
            _ = try await write(sample, "place { box { x } }", #""place":{"box":{"x":9}}"#)
            #expect(try sample.missing("{ movie(id: 1) { place { y } } }") == missing)
        }
    }

    @Test("A part in a list takes the place of the earlier one, though single parts of its type are always merged")
    func mergedTypeInList() async throws {
        try await withSampleCache(movieSchema + " extend type Point @typePolicy(parts: \"merge\")") { sample in
            _ = try await write(sample, "points { x }", #""points":[{"x":1}]"#)
            _ = try await write(sample, "points { y }", #""points":[{"y":3}]"#)
            #expect(try sample.missing("{ movie(id: 1) { points { x y } } }") == ["movie.points[0].x"])
        }
    }

    @Test("A changed list of parts makes its holder another object, though single parts of its type are merged")
    func mergedTypeInListInside() async throws {
        let policy = "extend type Box { points: [Point] } extend type Point @typePolicy(parts: \"merge\")"
        try await withSampleCache(movieSchema + "\n" + policy) { sample in
            try await sample.write("{ box { y points { x } } }", data: #"{"box":{"y":1,"points":[{"x":1}]}}"#)
            try await sample.write("{ box { points { x } } }", data: #"{"box":{"points":[{"x":2}]}}"#)
            #expect(try sample.missing("{ box { y points { x } } }") == ["box.y"])
        }
    }

    @Test("Two places of one answer that contradict are two objects, of which the later is kept")
    func twins() async throws {
        try await withSampleCache(movieSchema) { sample in
            let text = "{ a: box { x y } b: box { z } c: box { x } }"
            try await sample.write(text, data: #"{"a":{"x":1,"y":2},"b":{"z":3},"c":{"x":1}}"#)
            #expect(try sample.json(Self.whole) == #"{"box":{"x":1,"y":2,"z":3}}"#)
            let other = #"{"a":{"x":1,"y":2},"b":{"z":3},"c":{"x":9}}"#
            try await sample.write(text, data: other)
            #expect(try sample.missing(Self.whole) == ["box.y", "box.z"])
            #expect(try sample.json("{ box { x } }") == #"{"box":{"x":9}}"#)
            let again = try await sample.write(text, data: other)
            #expect(again.changes.isEmpty)
        }
    }

    @Test(
        "Two places of one answer contradict by what they refer to and by the parts inside them",
        arguments: [
            ("movie { title }", #"{"movie":\#(movie("2"))}"#, #"{"movie":\#(movie("3"))}"#, ["movie.place.y"]),
            ("movie { title }", #"{"movie":\#(movie("2"))}"#, #"{"movie":\#(movie("2"))}"#, []),
            ("next { x }", #"{"next":{"x":1}}"#, #"{"next":{"x":9}}"#, ["movie.place.y"]),
            ("next { next { x } }", #"{"next":{"next":{"x":1}}}"#, #"{"next":{"next":{"x":9}}}"#, ["movie.place.y"]),
        ] as [(String, String, String, [String])])
    func twinsInside(selection: String, first: String, later: String, missing: [String]) async throws {
        try await withSampleCache(movieSchema) { sample in
            let text = "a: place { y } b: place { \(selection) } c: place { \(selection) }"
            _ = try await write(sample, text, #""a":{"y":1},"b":\#(first),"c":\#(later)"#)
            #expect(try sample.missing("{ movie(id: 1) { place { y } } }") == missing)
        }
    }

    @Test(
        "Two places of one answer contradict where lists in them differ in an element or in length",
        arguments: [
            (#"[{"x":9}]"#, ["movie.place.y"]), (#"[{"x":1},{"x":1}]"#, ["movie.place.y"]), ("[]", ["movie.place.y"]),
            (#"[{"x":1}]"#, []),
        ] as [(String, [String])])
    func twinLists(later: String, missing: [String]) async throws {
        try await withSampleCache(movieSchema) { sample in
            _ = try await write(
                sample, "a: place { y } b: place { inner { x } } c: place { inner { x } }",
                #""a":{"y":1},"b":{"inner":[{"x":1}]},"c":{"inner":\#(later)}"#)
            #expect(try sample.missing("{ movie(id: 1) { place { y } } }") == missing)
        }
    }

    @Test("A field that an error has hidden in one place of an answer contradicts no other place")
    func hiddenTwin() async throws {
        try await withSampleCache(movieSchema) { sample in
            try await sample.write(
                sample.operation("{ a: box { x y } b: box { x z } }"),
                response: #"""
                    {"data":{"a":{"x":1,"y":2},"b":{"x":null,"z":3}},"errors":[{"message":"no","path":["b","x"]}]}
                    """#)
            #expect(try sample.json(Self.whole) == #"{"box":{"x":1,"y":2,"z":3}}"#)
        }
    }

    @Test("Two places of one answer are one object, though a part in them that is always merged differs")
    func mergedInsideTwins() async throws {
        let policy = "extend type Point @fieldPolicy(forField: \"next\", parts: merge)"
        try await withSampleCache(movieSchema + "\n" + policy) { sample in
            _ = try await write(
                sample, "a: place { y } b: place { next { x } } c: place { next { x } }",
                #""a":{"y":1},"b":{"next":{"x":1}},"c":{"next":{"x":9}}"#)
            #expect(
                try sample.json("{ movie(id: 1) { place { y next { x } } } }")
                    == #"{"movie":{"place":{"y":1,"next":{"x":9}}}}"#)
        }
    }

    @Test("Two places of one answer that contradict are one object where a policy says that parts are merged")
    func mergedTwins() async throws {
        try await withSampleCache(movieSchema + " extend type Box @typePolicy(parts: \"merge\")") { sample in
            try await sample.write("{ a: box { x y } b: box { x } }", data: #"{"a":{"x":1,"y":2},"b":{"x":9}}"#)
            #expect(try sample.json("{ box { x y } }") == #"{"box":{"x":9,"y":2}}"#)
        }
    }

    @Test("Two places of one answer that are of different types are two objects, though a policy says merge")
    func mergedTwinsOfTypes() async throws {
        let policy = "extend type Query @fieldPolicy(forField: \"animal\", parts: merge)"
        try await withSampleCache(movieSchema + "\n" + policy) { sample in
            try await sample.write(
                "{ a: animal { name } b: animal { home { x } } }",
                data: #"{"a":{"__typename":"Dog","name":"A"},"b":{"__typename":"Cat","home":{"x":1}}}"#)
            #expect(try sample.missing("{ animal { name home { x } } }") == ["animal.name"])
        }
    }

    @Test("A contradicting part in a later place of an answer takes what the earlier ones left, its parts included")
    func laterTwinContradictsStored() async throws {
        try await withSampleCache(movieSchema) { sample in
            _ = try await write(
                sample, "place { x y next { x y } }", #""place":{"x":1,"y":2,"next":{"x":1,"y":2}}"#)
            _ = try await write(
                sample, "a: place { next { x } } b: place { x }", #""a":{"next":{"x":1}},"b":{"x":9}"#)
            #expect(
                try Set(sample.missing("{ movie(id: 1) { place { x y next { x y } } } }"))
                    == ["movie.place.y", "movie.place.next.y"])
        }
    }

    @Test("An optimistic layer obeys the same rule, and what it hid is back when it goes")
    func layer() async throws {
        try await withSampleCache(movieSchema) { sample in
            try await sample.write(Self.whole, data: #"{"box":{"x":1,"y":2,"z":3}}"#)
            try sample.cache.setLayers([sample.layer("k", "{ box { x } }", data: #"{"box":{"x":9}}"#)])
            #expect(try sample.missing(Self.whole) == ["box.y", "box.z"])
            try sample.cache.setLayers([])
            #expect(try sample.json(Self.whole) == #"{"box":{"x":1,"y":2,"z":3}}"#)
        }
    }

    @Test("An update changes the part that it read, and leaves the fields that it did not ask for")
    func update() async throws {
        try await withSampleCache(movieSchema) { sample in
            try await sample.write(Self.whole, data: #"{"box":{"x":1,"y":2,"z":3}}"#)
            let operation = try sample.operation("{ box { x } }")
            let parsed = try ParsedResponse.parse(Array(#"{"data":{"box":{"x":9}}}"#.utf8), along: operation.layout)
            _ = try await sample.cache.update(operation) { _ in parsed }
            #expect(try sample.json(Self.whole) == #"{"box":{"x":9,"y":2,"z":3}}"#)
        }
    }

    @Test("An update replaces the part that it read where a policy says replace")
    func replacingUpdate() async throws {
        try await withSampleCache(movieSchema + " extend type Box @typePolicy(parts: \"replace\")") { sample in
            try await sample.write(Self.whole, data: #"{"box":{"x":1,"y":2,"z":3}}"#)
            let operation = try sample.operation("{ box { x } }")
            let parsed = try ParsedResponse.parse(Array(#"{"data":{"box":{"x":9}}}"#.utf8), along: operation.layout)
            _ = try await sample.cache.update(operation) { _ in parsed }
            #expect(try sample.missing(Self.whole) == ["box.y", "box.z"])
        }
    }
}
