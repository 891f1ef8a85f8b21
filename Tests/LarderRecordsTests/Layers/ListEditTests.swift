import LarderGraphQL
import LarderTestSupport
import Testing

@testable import LarderRecords

@Suite("List edits", .timeLimit(.minutes(10)))
struct ListEditTests {
    private static let list = "{ movies { id } }"

    /// A list of three movies by year, and a fourth that is not in it.
    private func withMovies(_ body: (SampleCache) async throws -> Void) async throws {
        try await withSampleCache(movieSchema) { sample in
            try await sample.write(
                "{ movies { id year title } node(id: \"9\") { ... on Movie { id year title } } }",
                data: #"""
                    {"movies":[{"__typename":"Movie","id":"1","year":10,"title":"a"},
                    {"__typename":"Movie","id":"2","year":20,"title":"c"},
                    {"__typename":"Movie","id":"3","year":30,"title":null}],
                    "node":{"__typename":"Movie","id":"9","year":20,"title":"b"}}
                    """#)
            try await body(sample)
        }
    }

    private func ids(in sample: SampleCache) throws -> String {
        let response = try sample.cache.read(sample.operation(Self.list)).response
        guard case .object(let members) = try Value(json: response.json), case .list(let movies)? = members["movies"]
        else { return "none" }
        return movies.map { movie in
            if case .object(let fields) = movie, case .string(let id)? = fields["id"] { id } else { "?" }
        }.joined(separator: " ")
    }

    private static let cases: [(ListEdit.Action, String)] = [
        (.insert(key: "Movie:9", at: .start), "9 1 2 3"),
        (.insert(key: "Movie:9", at: .end), "1 2 3 9"),
        (.insert(key: "Movie:9", at: .ascending(field: "year")), "1 2 9 3"),
        (.insert(key: "Movie:9", at: .descending(field: "year")), "9 1 2 3"),
        (.insert(key: "Movie:9", at: .ascending(field: "title")), "1 9 2 3"),
        (.insert(key: "Movie:9", at: .ascending(field: "unknown")), "1 2 3 9"),
        (.insert(key: "Movie:2", at: .start), "1 2 3"),
        (.insert(key: "Movie:unknown", at: .start), "1 2 3"),
        (.remove(key: "Movie:2"), "1 3"),
        (.remove(key: "Movie:9"), "1 2 3"),
        (.remove(key: "Movie:unknown"), "1 2 3"),
    ]

    @Test("An edit does the same to a layer and to what is stored", arguments: cases.indices)
    func edit(number: Int) async throws {
        let (action, expected) = Self.cases[number]
        try await withMovies { sample in
            let edit = ListEdit(field: "movies", action)
            let key = try #require(AppliedKey("k"))
            try sample.cache.setLayers([OptimisticLayer(key: key, edits: [edit])])
            #expect(try ids(in: sample) == expected)
            try sample.cache.setLayers([])
            #expect(try ids(in: sample) == "1 2 3")
            let operation = try sample.operation("{ count }")
            let answer = try ParsedResponse.parse(Array(#"{"data":{"count":1}}"#.utf8), along: operation.layout)
            try await sample.changing { try await $0.write(answer, of: operation, applying: key, edits: [edit]) }
            #expect(try ids(in: sample) == expected)
            // The same answer over newer data does nothing more.
            try await sample.changing {
                try await $0.write(
                    answer, of: operation, applying: key, edits: [.init(field: "movies", .remove(key: "Movie:1"))])
            }
            #expect(try ids(in: sample) == expected)
            #expect(try sample.cache.check().problems == [])
        }
    }

    @Test("Whole numbers and others are put in order by their values")
    func mixedNumbers() async throws {
        try await withSampleCache(movieSchema) { sample in
            func movies(_ scores: [(id: Int, score: String)]) -> String {
                let movies = scores.map { #"{"__typename":"Movie","id":"\#($0.id)","score":\#($0.score)}"# }
                return "[\(movies.joined(separator: ","))]"
            }
            let (listed, others) = (movies([(1, "1"), (2, "2.5"), (3, "3")]), movies([(4, "2"), (5, "2.75")]))
            try await sample.write(
                "{ movies { id score } top { id score } }", data: #"{"movies":\#(listed),"top":\#(others)}"#)
            for (ids, expected) in [([4], "1 4 2 3"), ([5], "1 2 5 3"), ([4, 5], "1 4 2 5 3")] {
                let edits = ids.map {
                    ListEdit(field: "movies", .insert(key: "Movie:\($0)", at: .ascending(field: "score")))
                }
                let key = try #require(AppliedKey("k"))
                try sample.cache.setLayers([OptimisticLayer(key: key, edits: edits)])
                #expect(try self.ids(in: sample) == expected)
            }
        }
    }

    @Test("An object that is in a list twice is taken out of both places")
    func twice() async throws {
        try await withSampleCache(movieSchema) { sample in
            let movies = ["1", "2", "1"].map { #"{"__typename":"Movie","id":"\#($0)"}"# }
            try await sample.write(Self.list, data: #"{"movies":[\#(movies.joined(separator: ","))]}"#)
            let edit = ListEdit(field: "movies", .remove(key: "Movie:1"))
            try sample.cache.setLayers([OptimisticLayer(key: try #require(AppliedKey("k")), edits: [edit])])
            #expect(try ids(in: sample) == "2")
        }
    }

    @Test("Many pending edits do the same as when each is stored after the other", arguments: UInt64(0)..<30)
    func many(seed: UInt64) async throws {
        var random = SeededNumbers(seed: seed)
        func number() -> Int { .random(in: 1...24, using: &random) }
        let places: [ListEdit.Place] = [
            .start, .end, .ascending(field: "year"), .descending(field: "year"), .ascending(field: "score"),
            .descending(field: "title"), .ascending(field: "title"),
        ]
        // Most seeds keep to one order for long, as programs do.
        var place = places[Int(seed) % places.count]
        let movies = (1...24).map { id in
            let year = Bool.random(using: &random) ? "\(number())" : "null"
            let score = Bool.random(using: &random) ? "\(number())" : "\(number()).5"
            return "{\"__typename\":\"Movie\",\"id\":\"\(id)\",\"year\":\(year),\"score\":\(score),"
                + "\"title\":\"t\(number())\"}"
        }
        let listed = movies.shuffled(using: &random).prefix(6).joined(separator: ",")
        let text = "{ movies { id year score title } top { id year score title } }"
        let data = "{\"movies\":[\(listed)],\"top\":[\(movies.joined(separator: ","))]}"
        try await withSampleCache(movieSchema) { layered in
            try await withSampleCache(movieSchema) { stored in
                for sample in [layered, stored] { try await sample.write(text, data: data) }
                var layers: [OptimisticLayer] = []
                for step in 0..<40 {
                    if Int.random(in: 0..<12, using: &random) == 0 {
                        place = places[Int.random(in: places.indices, using: &random)]
                    }
                    let key = "Movie:\(number())"
                    let isRemoval = Int.random(in: 0..<5, using: &random) == 0
                    let edit = ListEdit(field: "movies", isRemoval ? .remove(key: key) : .insert(key: key, at: place))
                    let (movie, year) = ("\(number())", number())
                    let isRating = Int.random(in: 0..<8, using: &random) == 0
                    let layer =
                        isRating
                        ? try layered.rating("k\(step)", movie: movie, year: year, edits: [edit])
                        : OptimisticLayer(key: try #require(AppliedKey("k\(step)")), edits: [edit])
                    layers.append(layer)
                    let rating = try stored.rating("-", movie: movie, year: year)
                    let answer = try #require(rating.content.response)
                    let other = try stored.operation("{ count }")
                    let nothing = try ParsedResponse.parse(Array(#"{"data":{"count":1}}"#.utf8), along: other.layout)
                    _ = try await stored.cache.write(
                        isRating ? answer.parsed : nothing, of: isRating ? answer.operation : other,
                        applying: layer.key, edits: [edit])
                    // Sometimes some are laid over those that were laid before.
                    if Int.random(in: 0..<15, using: &random) == 0 {
                        layered.cache.replaceLayers(SharedList(layers))
                        #expect(try ids(in: layered) == ids(in: stored), "step \(step)")
                    }
                }
                #expect(try layered.cache.layerFailures().isEmpty)
                layered.cache.replaceLayers(SharedList(layers))
                #expect(try ids(in: layered) == ids(in: stored))
            }
        }
    }

    @Test("An object that is known to be no more is put into no list, and so is not in it when it comes back")
    func deletedObject() async throws {
        try await withMovies { sample in
            _ = try await sample.cache.remove(keys: ["Movie:9"], as: .deleted)
            let edit = ListEdit(field: "movies", .insert(key: "Movie:9", at: .start))
            let key = try #require(AppliedKey("k"))
            try sample.cache.setLayers([OptimisticLayer(key: key, edits: [edit])])
            #expect(try !sample.cache.read(sample.operation(Self.list)).isOptimistic)
            try sample.cache.setLayers([])
            let operation = try sample.operation("{ count }")
            let answer = try ParsedResponse.parse(Array(#"{"data":{"count":1}}"#.utf8), along: operation.layout)
            try await sample.changing { try await $0.write(answer, of: operation, applying: key, edits: [edit]) }
            try await sample.write(
                "{ node(id: \"9\") { id } }", data: #"{"node":{"__typename":"Movie","id":"9"}}"#)
            #expect(try ids(in: sample) == "1 2 3")
        }
    }

    @Test("Lists that the cache does not know, and what is no list of objects, stay as they are")
    func otherFields() async throws {
        try await withMovies { sample in
            try await sample.write(
                "{ movie(id: 1) { id points { x } year } count }",
                data: #"{"movie":{"__typename":"Movie","id":"1","points":[{"x":1}],"year":10},"count":3}"#)
            let dump = try CacheDump(sample.cache)
            let edits = [
                ListEdit(field: "top", .insert(key: "Movie:9", at: .start)),
                ListEdit(field: #"movies({"first":3})"#, .insert(key: "Movie:9", at: .start)),
                ListEdit(field: "count", .insert(key: "Movie:9", at: .start)),
                ListEdit(.object(key: "Movie:1"), field: "points", .insert(key: "Movie:9", at: .start)),
                ListEdit(.object(key: "Movie:77"), field: "related", .insert(key: "Movie:9", at: .start)),
            ]
            try sample.cache.setLayers([OptimisticLayer(key: try #require(AppliedKey("k")), edits: edits)])
            #expect(try !sample.cache.read(sample.operation("{ movies { id } count }")).isOptimistic)
            let operation = try sample.operation("{ count }")
            let answer = try ParsedResponse.parse(Array(#"{"data":{"count":3}}"#.utf8), along: operation.layout)
            let commit = try await sample.changing { try await $0.write(answer, of: operation, edits: edits) }
            #expect(commit.changes.isEmpty)
            #expect(try CacheDump(sample.cache).difference(from: dump) == [])
        }
    }

    @Test("An object with a temporary id is in the list, and the answer's takes its place in one step")
    func temporary() async throws {
        try await withMovies { sample in
            let layer = try sample.layer(
                "k", "{ node(id: \"tmp\") { ... on Movie { id title } } }",
                data: #"{"node":{"__typename":"Movie","id":"tmp","title":"Draft"}}"#,
                edits: [ListEdit(field: "movies", .insert(key: "Movie:tmp", at: .start))])
            try sample.cache.setLayers([layer])
            #expect(try ids(in: sample) == "tmp 1 2 3")
            let operation = try sample.operation("{ node(id: \"55\") { ... on Movie { id title } } }")
            let text = #"{"data":{"node":{"__typename":"Movie","id":"55","title":"Done"}}}"#
            let answer = try ParsedResponse.parse(Array(text.utf8), along: operation.layout)
            try await sample.changing {
                try await $0.write(
                    answer, of: operation, applying: layer.key,
                    edits: [ListEdit(field: "movies", .insert(key: "Movie:55", at: .start))])
            }
            #expect(try ids(in: sample) == "55 1 2 3")
        }
    }

    @Test("An edit is made anew over a commit that changes more than the log tells one by one")
    func overGreatCommit() async throws {
        try await withMovies { sample in
            let layer = OptimisticLayer(
                key: try #require(AppliedKey("k")), edits: [ListEdit(field: "movies", .remove(key: "Movie:1"))])
            try sample.cache.setLayers([layer])
            #expect(try ids(in: sample) == "2 3")
            func movie(_ id: Int) -> String { #"{"__typename":"Movie","id":"\#(id)"}"# }
            let top = (100..<(ChangeSet.storedLimit + 200)).map(movie).joined(separator: ",")
            let operation = try sample.operation("{ movies { id } top { id } }")
            let text = "{\"data\":{\"movies\":[\(movie(3)),\(movie(1)),\(movie(9))],\"top\":[\(top)]}}"
            let parsed = try ParsedResponse.parse(Array(text.utf8), along: operation.layout)
            let position = try sample.cache.position
            _ = try await sample.cache.write(parsed, of: operation)
            #expect(try sample.cache.changes(since: position) != .changes([]))
            #expect(try ids(in: sample) == "3 9")
        }
    }

    @Test("A list of a record of very many fields is edited alike")
    func splitRecord() async throws {
        try await withMovies { sample in
            for number in 0..<80 {
                try await sample.write("{ note(text: \"\(number)\") }", data: "{\"note\":\"\(number)\"}")
            }
            let edits = [
                ListEdit(field: "movies", .remove(key: "Movie:1")),
                ListEdit(field: "movies", .insert(key: "Movie:9", at: .end)),
                ListEdit(field: "movies", .insert(key: "Movie:1", at: .descending(field: "year"))),
            ]
            try sample.cache.setLayers([OptimisticLayer(key: try #require(AppliedKey("k")), edits: edits)])
            #expect(try ids(in: sample) == "2 3 9 1")
            try sample.cache.setLayers([])
            let operation = try sample.operation("{ count }")
            let answer = try ParsedResponse.parse(Array(#"{"data":{"count":1}}"#.utf8), along: operation.layout)
            try await sample.changing { try await $0.write(answer, of: operation, edits: edits) }
            #expect(try ids(in: sample) == "2 3 9 1")
        }
    }

    @Test("Edits of several lists of one object, in turns, all count, in the list of a record of many fields too")
    func twoListsInTurns() async throws {
        try await withMovies { sample in
            let two = "{ movies { id } top { id } }"
            try await sample.write(
                "{ top { id } }",
                data: #"{"top":[{"__typename":"Movie","id":"1"},{"__typename":"Movie","id":"2"}]}"#)
            let edits = [
                ListEdit(field: "movies", .insert(key: "Movie:9", at: .start)),
                ListEdit(field: "top", .remove(key: "Movie:1")),
                ListEdit(field: "movies", .remove(key: "Movie:2")),
                ListEdit(field: "top", .insert(key: "Movie:9", at: .end)),
            ]
            func expectEdited(after count: Int) throws {
                try sample.cache.setLayers(
                    edits.prefix(count).enumerated().map { number, edit in
                        OptimisticLayer(key: try #require(AppliedKey("k\(number)")), edits: [edit])
                    })
                let lists = [
                    #"{"movies":[{"id":"9"},{"id":"1"},{"id":"2"},{"id":"3"}],"top":[{"id":"2"}]}"#,
                    #"{"movies":[{"id":"9"},{"id":"1"},{"id":"3"}],"top":[{"id":"2"}]}"#,
                    #"{"movies":[{"id":"9"},{"id":"1"},{"id":"3"}],"top":[{"id":"2"},{"id":"9"}]}"#,
                ]
                #expect(try sample.json(two) == lists[count - 2])
                try sample.cache.setLayers([])
            }
            for count in 2...4 { try expectEdited(after: count) }
            for number in 0..<80 {
                try await sample.write("{ note(text: \"\(number)\") }", data: "{\"note\":\"\(number)\"}")
            }
            for count in 2...4 { try expectEdited(after: count) }
        }
    }

    @Test(
        "An object finds its place also by great numbers and by long texts, which are stored otherwise than small ones",
        arguments: ["year", "title"])
    func greatValues(field: String) async throws {
        try await withSampleCache(movieSchema) { sample in
            let text = String(repeating: "x", count: 300)
            func movie(_ id: Int) -> String {
                #"{"__typename":"Movie","id":"\#(id)","year":\#(2_000_000_000 + id),"title":"\#(text)\#(id)"}"#
            }
            try await sample.write(
                "{ movies { id year title } top { id year title } }",
                data: #"{"movies":[\#(movie(1)),\#(movie(3))],"top":[\#(movie(2))]}"#)
            // Long texts lie apart from their records from then on.
            try await sample.cache.compact()
            let edit = ListEdit(field: "movies", .insert(key: "Movie:2", at: .ascending(field: field)))
            try sample.cache.setLayers([OptimisticLayer(key: try #require(AppliedKey("k")), edits: [edit])])
            #expect(try ids(in: sample) == "1 2 3")
        }
    }
}
