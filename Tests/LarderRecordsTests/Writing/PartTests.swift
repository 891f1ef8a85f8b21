import LarderGraphQL
import LarderTestSupport
import Testing

@testable import LarderRecords

@Suite("Objects without identity", .timeLimit(.minutes(10)))
struct PartTests {
    private static let movie = #""__typename":"Movie","id":"1""#

    private func write(_ sample: SampleCache, _ selection: String, _ fields: String) async throws -> Commit {
        try await sample.write("{ movie(id: 1) { \(selection) } }", data: #"{"movie":{\#(Self.movie),\#(fields)}}"#)
    }

    private func read(_ sample: SampleCache, _ selection: String) throws -> String {
        String(try sample.json("{ movie(id: 1) { \(selection) } }").dropFirst(#"{"movie":"#.count).dropLast())
    }

    @Test("A single part takes in new fields where its type is the same")
    func singleMerges() async throws {
        try await withSampleCache(movieSchema) { sample in
            _ = try await write(sample, "place { x }", #""place":{"x":1}"#)
            _ = try await write(sample, "place { y }", #""place":{"y":2}"#)
            #expect(try read(sample, "place { x y }") == #"{"place":{"x":1,"y":2}}"#)
            _ = try await write(sample, "place { y }", #""place":null"#)
            _ = try await write(sample, "place { y }", #""place":{"y":3}"#)
            #expect(try sample.missing("{ movie(id: 1) { place { x y } } }") == ["movie.place.x"])
        }
    }

    @Test(
        "Object lists are replaced and never merged by index",
        arguments: [
            (#"[{"x":1},{"x":2}]"#, #"[{"y":3},{"y":4}]"#, ["points[0].x", "points[1].x"]),
            (#"[{"x":1},{"x":2}]"#, #"[{"y":3}]"#, ["points[0].x"]),
            (#"[{"x":1}]"#, #"[{"y":3},{"y":4},null]"#, ["points[0].x", "points[1].x"]),
            (#"[{"x":1},null]"#, #"[null,{"y":4}]"#, ["points[1].x"]), (#"[{"x":1}]"#, "[]", []),
            ("null", "[{\"y\":1}]", ["points[0].x"]),
        ] as [(String, String, [String])])
    func listsReplace(first: String, second: String, missing: [String]) async throws {
        try await withSampleCache(movieSchema) { sample in
            _ = try await write(sample, "points { x }", #""points":\#(first)"#)
            _ = try await write(sample, "points { y }", #""points":\#(second)"#)
            #expect(try read(sample, "points { y }") == #"{"points":\#(second)}"#)
            #expect(try sample.missing("{ movie(id: 1) { points { x y } } }") == missing.map { "movie.\($0)" })
            let again = try await write(sample, "points { y }", #""points":\#(second)"#)
            #expect(again.changes.isEmpty)
        }
    }

    @Test("Parts inside parts of a replaced list go with them")
    func nestedListsReplace() async throws {
        try await withSampleCache(movieSchema) { sample in
            let selection = "points { x next { y inner { x } } inner { x next { y } } } matrix { x }"
            _ = try await write(
                sample, selection,
                #"""
                "points":[{"x":1,"next":{"y":1,"inner":[{"x":1},{"x":2}]},"inner":[{"x":5,"next":{"y":6}}]},
                {"x":2,"next":null,"inner":null}],"matrix":[[{"x":1},{"x":2}],[{"x":3}]]
                """#)
            _ = try await write(
                sample, selection,
                #"""
                "points":[{"x":1,"next":null,"inner":[{"x":6,"next":null},{"x":7,"next":{"y":1}}]}],
                "matrix":[[{"x":2}],null,[{"x":3},{"x":4}]]
                """#)
            #expect(try read(sample, "matrix { x }") == #"{"matrix":[[{"x":2}],null,[{"x":3},{"x":4}]]}"#)
            _ = try await write(sample, "points { x } matrix { x }", #""points":null,"matrix":[]"#)
            // Nothing but the root and the movie is left.
            #expect(try CacheDump(sample.cache).records.count == 2)
        }
    }

    @Test("A part becomes an entity and a part again, alone and in a list")
    func partBecomesEntity() async throws {
        try await withSampleCache(movieSchema) { sample in
            let selection =
                "spot { ... on Point { x } ... on Place { name } } spots { ... on Point { x } ... on Place { name } }"
            let point = #"{"__typename":"Point","x":1}"#
            let place = #"{"__typename":"Place","id":"9","name":"N"}"#
            for value in [point, place, "null", place, point] {
                _ = try await write(sample, selection, #""spot":\#(value),"spots":[\#(value),\#(point),\#(value)]"#)
            }
            #expect(try read(sample, selection) == #"{"spot":{"x":1},"spots":[{"x":1},{"x":1},{"x":1}]}"#)
        }
    }

    @Test("An entity that is removed takes its parts with it", arguments: [RecordCache.Removal.deleted, .evicted])
    func removalTakesParts(removal: RecordCache.Removal) async throws {
        try await withSampleCache(movieSchema) { sample in
            _ = try await write(
                sample, "place { x next { x } } points { x }", #""place":{"x":1,"next":{"x":2}},"points":[{"x":3}]"#)
            try await sample.changing { try await $0.remove(keys: ["Movie:1"], as: removal) }
            #expect(try CacheDump(sample.cache).records.count == (removal == .deleted ? 2 : 1))
        }
    }

    @Test(
        "Null at or above the path of an error keeps the earlier value, in lists as well",
        arguments: [
            (#""title":null"#, #"["movie","title"]"#), (#""place":null"#, #"["movie","place","x"]"#),
            (#""points":[{"x":9},null]"#, #"["movie","points",1,"x"]"#), (#""points":null"#, #"["movie","points",0]"#),
        ])
    func errorsKeepValues(fields: String, path: String) async throws {
        try await withSampleCache(movieSchema) { sample in
            let all = "title place { x } points { x }"
            let values = [#""title":"A""#, #""place":{"x":1}"#, #""points":[{"x":1},{"x":2}]"#]
            let before = values.joined(separator: ",")
            _ = try await write(sample, all, before)
            let name = fields.split(separator: "\"")[0]
            let changed = values.map { $0.hasPrefix("\"\(name)\"") ? fields : $0 }.joined(separator: ",")
            let operation = try sample.operation("{ movie(id: 1) { \(all) } }")
            let commit = try await sample.write(
                operation,
                response:
                    #"{"data":{"movie":{\#(Self.movie),\#(changed)}},"errors":[{"message":"no","path":\#(path)}]}"#)
            #expect(commit.changes.isEmpty)
            #expect(try read(sample, all) == "{\(before)}")
        }
    }

    @Test("Null data writes nothing, and an error elsewhere does not protect a null")
    func nullData() async throws {
        try await withSampleCache(movieSchema) { sample in
            _ = try await write(sample, "title year", #""title":"A","year":1"#)
            let operation = try sample.operation("{ movie(id: 1) { title year } }")
            let nothing = try await sample.write(operation, response: #"{"data":null,"errors":[{"message":"no"}]}"#)
            #expect(nothing.changes.isEmpty)
            try await sample.write(
                operation,
                response: #"""
                    {"data":{"movie":{\#(Self.movie),"title":null,"year":null}},
                    "errors":[{"message":"no","path":["movie","year"]},{"message":"no","path":["movie","nothing",3]}]}
                    """#)
            #expect(try read(sample, "title year") == #"{"title":null,"year":1}"#)
        }
    }

    @Test("The same field under two aliases is one part with the fields of both")
    func aliases() async throws {
        try await withSampleCache(movieSchema) { sample in
            let selection = "a: place { x next { x } } b: place { y next { y } } c: points { x } d: points { y }"
            _ = try await write(
                sample, selection,
                #"""
                "a":{"x":1,"next":{"x":2}},"b":{"y":3,"next":{"y":4}},"c":[{"x":5},{"x":6}],"d":[{"y":7},{"y":8}]
                """#)
            #expect(
                try read(sample, "place { x y next { x y } } points { x y }") == #"""
                    {"place":{"x":1,"y":3,"next":{"x":2,"y":4}},"points":[{"x":5,"y":7},{"x":6,"y":8}]}
                    """#)
        }
    }
}
