import Foundation
import LarderGraphQL
import LarderTestSupport
import Synchronization
import Testing

@testable import LarderRecords

@Suite("Optimistic layers", .timeLimit(.minutes(10)))
struct LayerTests {
    @Test("An optimistic change is seen, is not written into the base data, and is gone when the server says no")
    func rejected() async throws {
        try await withSampleCache(movieSchema) { sample in
            try await sample.writeMovie("1", title: "Old")
            try sample.cache.environmentIsSynchronized()
            let before = try sample.fileBytes()
            let dump = try CacheDump(sample.cache)
            try sample.cache.setLayers([sample.titleLayer("k", movie: "1", "New")])
            #expect(try sample.title("1") == #"{"title":"New"}"#)
            #expect(try sample.cache.read(sample.movieFragment(), from: .object(key: "Movie:1")).isOptimistic)
            #expect(try CacheDump(sample.cache).difference(from: dump) == [])
            #expect(try sample.fileBytes() == before)
            try await sample.cache.noteRejected(try #require(AppliedKey("k")))
            #expect(try sample.title("1") == #"{"title":"Old"}"#)
            try sample.cache.setLayers([])
            #expect(try sample.title("1") == #"{"title":"Old"}"#)
            #expect(try !sample.cache.read(sample.movieFragment(), from: .object(key: "Movie:1")).isOptimistic)
            #expect(try CacheDump(sample.cache).difference(from: dump) == [])
            #expect(try sample.cache.check().problems == [])
        }
    }

    @Test("A layer works on an empty cache, with types, fields and objects that the cache has never seen")
    func emptyCache() async throws {
        try await withSampleCache(movieSchema) { sample in
            let query = #"{ movie(id: 7) { id title place { x } director { name } } }"#
            let layer = try sample.layer(
                "k", query,
                data: #"""
                    {"movie":{"__typename":"Movie","id":"7","title":"T","place":{"x":3},
                    "director":{"__typename":"User","id":"tmp-1","name":"N"}}}
                    """#)
            #expect(try sample.cache.setLayers([layer]).isEmpty)
            #expect(
                try sample.json(query) == #"""
                    {"movie":{"id":"7","title":"T","place":{"x":3},"director":{"name":"N"}}}
                    """#)
            #expect(try sample.cache.presence(of: "User:tmp-1").presence == .present)
            // What layers alone know has not become known to reads without them.
            try sample.cache.setLayers([])
            #expect(try sample.missing(query) == ["movie"])
            #expect(try CacheDump(sample.cache).records.isEmpty)
            // And the store gives its own numbers to the same names.
            try await sample.write(
                query,
                data: #"""
                    {"movie":{"__typename":"Movie","id":"7","title":"S","place":{"x":4},
                    "director":{"__typename":"User","id":"1","name":"M"}}}
                    """#)
            #expect(
                try sample.json(query) == #"""
                    {"movie":{"id":"7","title":"S","place":{"x":4},"director":{"name":"M"}}}
                    """#)
            #expect(try sample.cache.check().problems == [])
        }
    }

    @Test("Names that only a layer knew, and that a commit gives numbers to, are read as one")
    func namesFromBelow() async throws {
        try await withSampleCache(movieSchema) { sample in
            try await sample.write(
                "{ movie(id: 1) { id } }", data: #"{"movie":{"__typename":"Movie","id":"1"}}"#)
            try sample.cache.setLayers([sample.titleLayer("k", movie: "1", "New")])
            let both = "{ a: movie(id: 1) { title } b: movie(id: 2) { title year } }"
            #expect(try sample.missing(both) == ["b"])
            // `title` gets its number here, and `year` as well.
            try await sample.write(
                "{ movie(id: 2) { id title year } }",
                data: #"{"movie":{"__typename":"Movie","id":"2","title":"Two","year":2}}"#)
            #expect(try sample.json(both) == #"{"a":{"title":"New"},"b":{"title":"Two","year":2}}"#)
        }
    }

    @Test("An operation that is used again reads fields that came meanwhile, whatever layers there are")
    func nameOfLaterCommit() async throws {
        try await withSampleCache(movieSchema) { sample in
            try await sample.fill(1...2)
            sample.cache.replaceLayers([try sample.rating("k", movie: "1", year: 9)])
            #expect(try sample.year("1") == 9)
            let fragment = try sample.fragment("fragment F on Movie { id year title }")
            let second = RecordCache.Root.object(key: "Movie:2")
            #expect(try sample.cache.read(fragment, from: second).response.missing.map(\.description) == ["title"])
            try await sample.write(
                fragment, response: #"{"data":{"__typename":"Movie","id":"2","year":2,"title":"T"}}"#, to: second)
            #expect(try sample.json(fragment, from: second) == #"{"id":"2","year":2,"title":"T"}"#)
        }
    }

    @Test("Layers are laid one over the other, and one that goes leaves what the others do")
    func order() async throws {
        try await withSampleCache(movieSchema) { sample in
            try await sample.writeMovie("1", title: "0")
            let layers = try (1...3).map { try sample.titleLayer("k\($0)", movie: "1", "\($0)") }
            let year = try sample.layer(
                "y", "{ movie(id: 1) { id year } }", data: #"{"movie":{"__typename":"Movie","id":"1","year":9}}"#)
            try sample.cache.setLayers([layers[0], year, layers[1], layers[2]])
            #expect(try sample.json("{ movie(id: 1) { title year } }") == #"{"movie":{"title":"3","year":9}}"#)
            try await sample.cache.noteRejected(layers[2].key)
            #expect(try sample.json("{ movie(id: 1) { title year } }") == #"{"movie":{"title":"2","year":9}}"#)
            try sample.cache.setLayers([layers[0], year])
            #expect(try sample.json("{ movie(id: 1) { title year } }") == #"{"movie":{"title":"1","year":9}}"#)
            try sample.cache.setLayers([layers[1], layers[0]])
            #expect(try sample.title("1") == #"{"title":"1"}"#)
            #expect(try sample.missing("{ movie(id: 1) { title year } }") == ["movie.year"])
        }
    }

    @Test("The server's answer takes the layer's place in one step, however often the answer comes")
    func answered() async throws {
        try await withSampleCache(movieSchema) { sample in
            try await sample.writeMovie("1", title: "Old")
            let layer = try sample.titleLayer("k", movie: "1", "Mine")
            try sample.cache.setLayers([layer])
            let operation = try sample.operation("{ movie(id: 1) { id title } }")
            let text = #"{"data":{"movie":{"__typename":"Movie","id":"1","title":"Server's"}}}"#
            let answer = try ParsedResponse.parse(Array(text.utf8), along: operation.layout)
            _ = try await sample.cache.write(answer, of: operation, applying: layer.key, synchronizing: true)
            #expect(try sample.title("1") == #"{"title":"Server's"}"#)
            try await sample.writeMovie("1", title: "Newer")
            _ = try await sample.cache.write(answer, of: operation, applying: layer.key, synchronizing: true)
            #expect(try sample.title("1") == #"{"title":"Newer"}"#)
            try await sample.cache.compact()
            #expect(try sample.title("1") == #"{"title":"Newer"}"#)
            try await sample.cache.clear()
            #expect(try sample.cache.presence(of: "Movie:1").presence == .absent)
        }
    }

    @Test("A layer removes objects, and they come back with the next layer that has them")
    func removal() async throws {
        try await withSampleCache(movieSchema) { sample in
            let list = "{ movies { id title } }"
            try await sample.write(
                list,
                data: #"""
                    {"movies":[{"__typename":"Movie","id":"1","title":"A"},{"__typename":"Movie","id":"2","title":"B"}]}
                    """#)
            let gone = OptimisticLayer(
                key: try #require(AppliedKey("k")), removals: ["Movie:1", "Movie:unknown", "QUERY_ROOT"])
            try sample.cache.setLayers([gone])
            #expect(try sample.json(list) == #"{"movies":[{"id":"2","title":"B"}]}"#)
            #expect(try sample.cache.presence(of: "Movie:1").presence == .deleted)
            try sample.cache.setLayers([gone, sample.titleLayer("l", movie: "1", "Again")])
            #expect(try sample.json(list) == #"{"movies":[{"id":"1","title":"Again"},{"id":"2","title":"B"}]}"#)
            try sample.cache.setLayers([])
            #expect(try sample.json(list) == #"{"movies":[{"id":"1","title":"A"},{"id":"2","title":"B"}]}"#)
        }
    }

    @Test("Objects without identity are changed, replaced and removed in layers")
    func parts() async throws {
        try await withSampleCache(movieSchema) { sample in
            let query = "{ box { x y } movie(id: 1) { id place { x y } points { x } } }"
            try await sample.write(
                query,
                data: #"""
                    {"box":{"x":1,"y":2},"movie":{"__typename":"Movie","id":"1","place":{"x":1,"y":1},
                    "points":[{"x":1},{"x":2}]}}
                    """#)
            try sample.cache.setLayers([
                sample.layer("a", "{ box { x } }", data: #"{"box":{"x":5}}"#),
                sample.layer(
                    "b", "{ movie(id: 1) { id place { y } points { x } } }",
                    data: #"""
                        {"movie":{"__typename":"Movie","id":"1","place":{"y":7},"points":[{"x":3},{"x":4},{"x":5}]}}
                        """#),
            ])
            #expect(
                try sample.json(query) == #"""
                    {"box":{"x":5},"movie":{"id":"1","place":{"y":7},"points":[{"x":3},{"x":4},{"x":5}]}}
                    """#)
            #expect(try Set(sample.missing(query)) == ["box.y", "movie.place.x"])
            try sample.cache.setLayers([
                sample.layer("a", "{ box { x } }", data: #"{"box":null}"#),
                OptimisticLayer(key: try #require(AppliedKey("b")), removals: ["Movie:1"]),
            ])
            #expect(try sample.json(query) == #"{"box":null,"movie":null}"#)
        }
    }

    @Test("Records of very many fields are changed and removed in layers")
    func splitRecords() async throws {
        try await withSampleCache(movieSchema) { sample in
            for number in 0..<80 {
                try await sample.write("{ note(text: \"\(number)\") }", data: "{\"note\":\"\(number)\"}")
            }
            try sample.cache.setLayers([
                sample.layer("a", "{ note(text: \"5\") }", data: #"{"note":"five"}"#),
                sample.layer("b", "{ note(text: \"new\") }", data: #"{"note":"new"}"#),
            ])
            let query = #"{ a: note(text: "5") b: note(text: "6") c: note(text: "new") }"#
            #expect(try sample.json(query) == #"{"a":"five","b":"6","c":"new"}"#)
            #expect(try !sample.cache.read(sample.operation(#"{ a: movie(id: 3) { id } }"#)).isOptimistic)
        }
    }

    @Test("A part of many fields that one layer changes is replaced whole by the next")
    func replacedSplitPart() async throws {
        let schema = "type Query { wide: Wide } type Wide { \(ManyFields.declared) f70: Int f71: Int }"
        try await withSampleCache(schema) { sample in
            try await sample.write(
                "{ wide { \(ManyFields.selected) } }", data: "{\"wide\":{\(ManyFields.values)}}")
            let query = "{ wide { f0 f3 f69 f70 f71 } }"
            let further = try sample.layer(
                "a", "{ wide { f70 f71 } }", data: #"{"wide":{"f70":70,"f71":71}}"#)
            // It contradicts the stored one, and so is another object.
            let other = try sample.layer("b", "{ wide { f3 f71 } }", data: #"{"wide":{"f3":9,"f71":72}}"#)
            try sample.cache.setLayers([further])
            #expect(try sample.json(query) == #"{"wide":{"f0":0,"f3":3,"f69":69,"f70":70,"f71":71}}"#)
            try sample.cache.setLayers([further, other])
            #expect(try sample.json("{ wide { f3 f71 } }") == #"{"wide":{"f3":9,"f71":72}}"#)
            #expect(try sample.missing(query) == ["wide.f0", "wide.f69", "wide.f70"])
            try sample.cache.setLayers([])
            #expect(try sample.missing(query) == ["wide.f70", "wide.f71"])
        }
    }

    @Test("Long values in layers are whole, however many layers and commits come after them")
    func longValues() async throws {
        try await withSampleCache(movieSchema) { sample in
            func text(_ number: Int) -> String { String(repeating: "text \(number) ", count: 700) }
            var layers: [OptimisticLayer] = []
            for number in 0..<20 {
                try await sample.writeMovie("\(number)", title: "short")
                layers.append(try sample.titleLayer("k\(number)", movie: "\(number)", text(number)))
                try sample.cache.setLayers(layers)
                for known in 0...number {
                    #expect(try sample.title("\(known)") == "{\"title\":\"\(text(known))\"}")
                }
            }
        }
    }

    @Test("A layer whose mutation has a very long key goes with its mutation, and comes back when that is forgotten")
    func longKeys() async throws {
        try await withSampleCache(movieSchema) { sample in
            let keys = ["k" + String(repeating: "0", count: 600), "short"]
            for id in 1...4 { try await sample.writeMovie("\(id)", title: "Old") }
            for key in keys {
                try sample.cache.setLayers([
                    sample.titleLayer("a", movie: "2", "New"), sample.titleLayer(key, movie: "1", "New"),
                    sample.titleLayer("b", movie: "3", "New"), sample.titleLayer("c", movie: "4", "New"),
                ])
                #expect(try sample.title("1") == #"{"title":"New"}"#)
                try await sample.cache.noteRejected(try #require(AppliedKey(key)))
                #expect(try sample.title("1") == #"{"title":"Old"}"#)
                try await sample.cache.forgetApplied([try #require(AppliedKey(key))])
                #expect(try sample.title("1") == #"{"title":"New"}"#)
            }
        }
    }

    @Test("A cache that is closed has nothing to tell of its layers")
    func toldAfterClosing() async throws {
        try await withTemporaryFolder { folder in
            let sample = try SampleCache(
                SchemaIndex(parsing: movieSchema), path: folder.appending(path: "records").path)
            try await sample.writeMovie("1", title: "Old")
            let cache = sample.cache
            try cache.setLayers([sample.titleLayer("k", movie: "1", "New")])
            #expect(cache.layers.untold(of: cache.generations)?.changes.isEverything == true)
            #expect(cache.layers.untold(of: cache.generations) == nil)
            cache.replaceLayers([])
            try cache.close()
            #expect(cache.layers.untold(of: cache.generations) == nil)
        }
    }

    @Test("A layer that does not fit is left out and reported, and reads go on")
    func failing() async throws {
        try await withSampleCache(movieSchema) { sample in
            try await sample.writeMovie("1", title: "Old")
            let operation = try sample.fragment("fragment F on Movie { id title }")
            let text = #"{"data":{"__typename":"Movie","id":"2","title":"No"}}"#
            let parsed = try ParsedResponse.parse(Array(text.utf8), along: operation.layout)
            let bad = OptimisticLayer(
                key: try #require(AppliedKey("bad")),
                response: .init(parsed, of: operation, to: .object(key: "Movie:1")))
            let failures = try sample.cache.setLayers([
                sample.titleLayer("a", movie: "1", "A"), bad,
                sample.layer(
                    "c", "{ movie(id: 1) { id year } }", data: #"{"movie":{"__typename":"Movie","id":"1","year":1}}"#),
            ])
            #expect(failures.map(\.key.text) == ["bad"])
            #expect(failures.first?.error.code == .responseMismatch)
            #expect(try sample.json("{ movie(id: 1) { title year } }") == #"{"movie":{"title":"A","year":1}}"#)
            #expect(try sample.cache.layerFailures().count == 1)
        }
    }

    @Test("Layers that cannot be worked out are told of in their order")
    func failuresInOrder() async throws {
        try await withSampleCache(movieSchema) { sample in
            try await sample.writeMovie("1", title: "Old")
            let operation = try sample.fragment("fragment F on Movie { id title }")
            let text = #"{"data":{"__typename":"Movie","id":"2","title":"No"}}"#
            let parsed = try ParsedResponse.parse(Array(text.utf8), along: operation.layout)
            let names = (0..<9).map { "layer \(9 - $0)" }
            let failures = try sample.cache.setLayers(
                names.map { name -> OptimisticLayer in
                    OptimisticLayer(
                        key: try #require(AppliedKey(name)),
                        response: .init(parsed, of: operation, to: .object(key: "Movie:1")))
                })
            #expect(failures.map(\.key.text) == names)
        }
    }

    @Test("A layer that fails is told of once, and once more where it was good, or none was there, in between")
    func toldFailures() async throws {
        let schema = try SchemaIndex(parsing: movieSchema)
        try await withTemporaryFolder { folder in
            let told = Mutex<[String]>([])
            var options = RecordCache.Options()
            options.layerFailed = { failure in told.withLock { $0.append(failure.key.text) } }
            let sample = try SampleCache(schema, path: folder.path, options: options)
            let operation = try sample.fragment("fragment F on Movie { id title }")
            let parsed = try ParsedResponse.parse(
                Array(#"{"data":{"__typename":"Movie","id":"2","title":"No"}}"#.utf8), along: operation.layout)
            let (good, other) = (
                try sample.titleLayer("k", movie: "1", "A"), try sample.titleLayer("other", movie: "3", "B")
            )
            func bad() throws -> OptimisticLayer {
                OptimisticLayer(
                    key: try #require(AppliedKey("k")),
                    response: .init(parsed, of: operation, to: .object(key: "Movie:1")))
            }
            try sample.cache.setLayers([other, bad()])
            try sample.cache.setLayers([other, bad()])
            #expect(told.withLock { $0 } == ["k"])
            try sample.cache.setLayers([other, good])
            try sample.cache.setLayers([other, bad()])
            #expect(told.withLock { $0 } == ["k", "k"])
            try sample.cache.setLayers([])
            try sample.cache.setLayers([other, bad()])
            #expect(told.withLock { $0 } == ["k", "k", "k"])
            try sample.cache.close()
        }
    }

    @Test("Layers stay over what others write, and an update reads and writes what is stored")
    func baseMoves() async throws {
        try await withSampleCache(movieSchema) { sample in
            let query = "{ movie(id: 1) { id title year } }"
            try sample.cache.setLayers([sample.titleLayer("k", movie: "1", "Mine")])
            try await sample.write(query, data: #"{"movie":{"__typename":"Movie","id":"1","title":"S","year":1}}"#)
            #expect(try sample.json(query) == #"{"movie":{"id":"1","title":"Mine","year":1}}"#)
            let operation = try sample.operation(query)
            try await sample.changing {
                try await $0.update(operation) { answer in
                    #expect(String(decoding: answer.response.json, as: UTF8.self).contains("\"S\""))
                    #expect(!answer.isOptimistic)
                    let text = #"{"data":{"movie":{"__typename":"Movie","id":"1","title":"S","year":2}}}"#
                    return try ParsedResponse.parse(Array(text.utf8), along: operation.layout)
                }
            }
            #expect(try sample.json(query) == #"{"movie":{"id":"1","title":"Mine","year":2}}"#)
            try sample.cache.setLayers([])
            #expect(try sample.json(query) == #"{"movie":{"id":"1","title":"S","year":2}}"#)
        }
    }

    @Test("Layers are worked out anew only after commits that they depend on")
    func workedOutOnce() async throws {
        try await withSampleCache(movieSchema) { sample in
            let cache = sample.cache
            func overlay() throws -> Overlay {
                let set = try #require(cache.layers.current)
                return try cache.withLayers(set) { _, snapshot in snapshot.layers }
            }
            try await sample.write(
                "{ movies { id title year } }",
                data: #"""
                    {"movies":[{"__typename":"Movie","id":"1","title":"A","year":1},
                    {"__typename":"Movie","id":"2","title":"B","year":2}]}
                    """#)
            let fragment = try sample.fragment("fragment F on Movie { id title score }")
            func write(_ id: String, _ members: String) async throws {
                let text = #"{"data":{"__typename":"Movie","id":"\#(id)",\#(members)}}"#
                try await sample.write(fragment, response: text, to: .object(key: "Movie:\(id)"))
            }
            let text = #"{"data":{"__typename":"Movie","id":"1","title":"Mine","score":null}}"#
            let parsed = try ParsedResponse.parse(Array(text.utf8), along: fragment.layout)
            let key = try #require(AppliedKey("k"))
            try cache.setLayers([
                OptimisticLayer(
                    key: key, response: .init(parsed, of: fragment, to: .object(key: "Movie:1")),
                    removals: ["Movie:new", "Movie:newer"])
            ])
            let first = try overlay()
            try await sample.write(
                "{ movie(id: 2) { id year } }", data: #"{"movie":{"__typename":"Movie","id":"2","year":9}}"#)
            try await cache.noteRejected(try #require(AppliedKey("other")))
            #expect(try overlay() === first)
            // A name that only the layer knew.
            try await write("2", #""title":"B","score":1.5"#)
            let second = try overlay()
            #expect(second !== first)
            // A key that the layer did not look for.
            try await write("3", #""title":"C","score":null"#)
            #expect(try overlay() === second)
            // A record that the layer changes.
            try await write("1", #""title":"A","score":1.5"#)
            let third = try overlay()
            #expect(third !== second)
            // A key that the layer looked for.
            try await write("new", #""title":"N","score":null"#)
            #expect(try overlay() !== third)
            #expect(try cache.presence(of: "Movie:new").presence == .deleted)
            #expect(try sample.title("1") == #"{"title":"Mine"}"#)
            try await cache.noteRejected(key)
            #expect(try sample.title("1") == #"{"title":"A"}"#)
            #expect(try cache.presence(of: "Movie:new").presence == .present)
        }
    }
}

extension RecordCache {
    /// Replaces the layers, and answers those that cannot be worked out.
    @discardableResult
    func setLayers(_ layers: [OptimisticLayer]) throws -> [LayerFailure] {
        replaceLayers(layers)
        return try layerFailures()
    }
}

extension SampleCache {
    func layer(
        _ key: String, _ text: String, data: String, removals: [String] = [], edits: [ListEdit] = []
    ) throws -> OptimisticLayer {
        let operation = try operation(text)
        let parsed = try ParsedResponse.parse(Array("{\"data\":\(data)}".utf8), along: operation.layout)
        return OptimisticLayer(
            key: try #require(AppliedKey(key)), response: .init(parsed, of: operation), removals: removals,
            edits: edits)
    }

    func titleLayer(_ key: String, movie: String, _ title: String) throws -> OptimisticLayer {
        try layer(
            key, "{ movie(id: \"\(movie)\") { id title } }",
            data: #"{"movie":{"__typename":"Movie","id":"\#(movie)","title":"\#(title)"}}"#)
    }

    func writeMovie(_ id: String, title: String) async throws {
        try await write(
            "{ movie(id: \(id)) { id title } }",
            data: #"{"movie":{"__typename":"Movie","id":"\#(id)","title":"\#(title)"}}"#)
    }

    func movieFragment() throws -> BoundOperation { try fragment("fragment F on Movie { title }") }

    func title(_ id: String) throws -> String { try json(movieFragment(), from: .object(key: "Movie:\(id)")) }

    func fileBytes() throws -> Data {
        try Data(contentsOf: URL(filePath: "\(path)/\(cache.generations.current.number)/data.mdb"))
    }
}

extension RecordCache {
    fileprivate func environmentIsSynchronized() throws { try generations.current.environment.synchronize() }
}
