import LarderGraphQL
import LarderTestSupport
import Testing

@testable import LarderRecords

@Suite("Layers laid when they are needed beside the same layers laid at once", .timeLimit(.minutes(10)))
struct LazyLayerModelTests {
    @Test("Whatever is read, in whatever order, is the same", arguments: 0..<8)
    func random(group: Int) async throws {
        for seed in 0..<(4 * LayerModelTests.factor) { try await run(seed: UInt64(group * 1000 + seed)) }
    }

    /// Of the same mutation: one tells what it touches, unless nobody can know.
    private struct Twins {
        var lazy: OptimisticLayer
        var eager: OptimisticLayer
    }

    private func run(seed: UInt64) async throws {
        var options = RecordCache.Options()
        // Of some caches, nearly every read lays layers ahead.
        if seed % 2 == 1 { options.layersForEachAhead = 1 }
        try await withSampleCache(movieSchema, options) { lazy in
            try await withSampleCache(movieSchema) { eager in
                var random = SeededNumbers(seed: seed)
                var pending: [Twins] = []
                var count = 0
                for step in 0..<60 {
                    let place = Comment(rawValue: "seed \(seed), step \(step)")
                    switch Int.random(in: 0..<20, using: &random) {
                    case 0..<3:
                        let answer = answer(&random)
                        for sample in [lazy, eager] {
                            let (operation, parsed, root) = try read(answer, in: sample)
                            _ = try await sample.cache.write(parsed, of: operation, to: root)
                        }
                    case 3..<8:
                        for _ in 0..<Int.random(in: 1...4, using: &random) {
                            count += 1
                            pending.append(try twins("k\(count)", lazy, eager, &random))
                        }
                        show(pending, lazy, eager)
                    case 8:
                        guard let index = pending.indices.randomElement(using: &random) else { continue }
                        pending.remove(at: index)
                        show(pending, lazy, eager)
                    case 9:
                        guard let twins = pending.randomElement(using: &random) else { continue }
                        for sample in [lazy, eager] { try await sample.cache.noteRejected(twins.lazy.key) }
                    case 10:
                        let key = movie(&random)
                        for sample in [lazy, eager] { _ = try await sample.cache.remove(keys: [key], as: .evicted) }
                    case 11:
                        for sample in [lazy, eager] { try sample.reopen() }
                        show(pending, lazy, eager)
                    default:
                        for _ in 0..<3 { try compare(lazy, eager, place, &random) }
                    }
                }
                for sample in [lazy, eager] { #expect(try sample.cache.check().problems == [], "seed \(seed)") }
            }
        }
    }

    private func show(_ pending: [Twins], _ lazy: SampleCache, _ eager: SampleCache) {
        lazy.cache.replaceLayers(pending.map(\.lazy))
        eager.cache.replaceLayers(pending.map(\.eager))
    }

    private func compare(
        _ lazy: SampleCache, _ eager: SampleCache, _ place: Comment, _ random: inout SeededNumbers
    ) throws {
        let key = Bool.random(using: &random) ? movie(&random) : user(&random)
        if Int.random(in: 0..<6, using: &random) == 0 {
            try #require(try lazy.cache.presence(of: key).presence == eager.cache.presence(of: key).presence, place)
            return
        }
        let queries = [
            "{ movies { id year title director { name } } }",
            "{ movies { id } top { id year } }",
            "{ movie(id: \(Int.random(in: 1...9, using: &random))) { id year place { x next { y movie { year } } } } }",
        ]
        let fragments = [
            "fragment F on Movie { id title year director { id name best { name } } }",
            "fragment F on Movie { points { x movie { year } } place { x y } related(first: 2) { id year cast { name } } }",
        ]
        let answers = try [lazy, eager].map { sample in
            if key.hasPrefix("User") {
                return try sample.cache.read(
                    sample.fragment("fragment F on User { id name best { name login } }"), from: .object(key: key))
            }
            return try sample.cache.read(sample.fragment(fragments[key.utf8.count % 2]), from: .object(key: key))
        }
        try expectSame(answers, "\(place), \(key)")
        let query = queries[Int.random(in: 0..<3, using: &random)]
        try expectSame([lazy, eager].map { try $0.cache.read($0.operation(query)) }, "\(place), \(query)")
        let fragment = fragments[Int.random(in: 0..<2, using: &random)]
        let root = movie(&random)
        try expectSame(
            [lazy, eager].map { try $0.cache.read($0.fragment(fragment), from: .object(key: root)) },
            "\(place), \(fragment) \(root)")
    }

    private func expectSame(_ answers: [CacheAnswer], _ comment: Comment) throws {
        let texts = answers.map { answer in
            let missing = answer.response.missing.map(\.description).sorted()
            return String(decoding: answer.response.json, as: UTF8.self)
                + " \(missing) \(answer.isDeleted) \(answer.isOptimistic)"
        }
        try #require(texts[0] == texts[1], comment)
    }

    // MARK: What is written

    private func movie(_ random: inout SeededNumbers) -> String { "Movie:\(movieID(&random))" }
    private func user(_ random: inout SeededNumbers) -> String { "User:\(Int.random(in: 1...5, using: &random))" }

    /// Some stand in for those that a server has yet to give.
    private func movieID(_ random: inout SeededNumbers) -> String {
        let number = Int.random(in: 1...12, using: &random)
        return number > 9 ? "larder-temporary-\(number)" : String(number)
    }

    private struct Text {
        var operation: String
        var isFragment = false
        var data: String
        var root = RecordCache.Root.query
    }

    private func read(
        _ text: Text, in sample: SampleCache
    ) throws -> (BoundOperation, ParsedResponse, RecordCache.Root) {
        let operation = try text.isFragment ? sample.fragment(text.operation) : sample.operation(text.operation)
        let json = Array("{\"data\":\(text.data)}".utf8)
        return (operation, try ParsedResponse.parse(json, along: operation.layout), text.root)
    }

    private func answer(_ random: inout SeededNumbers) -> Text {
        switch Int.random(in: 0..<4, using: &random) {
        case 0:
            let ids = Set((0..<4).map { _ in movieID(&random) }).sorted()
            let movies = ids.map { #"{"__typename":"Movie","id":"\#($0)","year":\#(number(&random))}"# }
            return Text(operation: "{ movies { id year } }", data: "{\"movies\":[\(movies.joined(separator: ","))]}")
        case 1:
            let (id, other) = (movieID(&random), movieID(&random))
            return Text(
                operation: "fragment F on Movie { id related(first: 2) { id title } }", isFragment: true,
                data: #"""
                    {"__typename":"Movie","id":"\#(id)",
                    "related":[{"__typename":"Movie","id":"\#(other)","title":"T\#(number(&random))"}]}
                    """#, root: .object(key: "Movie:\(id)"))
        default: return change(&random)
        }
    }

    private func number(_ random: inout SeededNumbers) -> Int { Int.random(in: 0...9, using: &random) }

    /// What a mutation answers, whose root is stored or is not.
    private func change(_ random: inout SeededNumbers) -> Text {
        let id = movieID(&random)
        let (fields, members): (String, String)
        switch Int.random(in: 0..<5, using: &random) {
        case 0: (fields, members) = ("year", #""year":\#(number(&random))"#)
        case 1:
            let user = user(&random).dropFirst(5)
            (fields, members) = (
                "title director { id name }",
                #"""
                "title":"T\#(number(&random))",
                "director":{"__typename":"User","id":"\#(user)","name":"N\#(number(&random))"}
                """#
            )
        case 2:
            let other = movieID(&random)
            (fields, members) = (
                "place { x next { y movie { id year } } }",
                #"""
                "place":{"__typename":"Point","x":\#(number(&random)),"next":{"__typename":"Point","y":1,
                "movie":{"__typename":"Movie","id":"\#(other)","year":\#(number(&random))}}}
                """#
            )
        case 3:
            let points = (0..<Int.random(in: 0...3, using: &random)).map { _ in
                #"{"__typename":"Point","x":\#(number(&random)),"movie":null}"#
            }
            (fields, members) = ("points { x movie { id } }", "\"points\":[\(points.joined(separator: ","))]")
        default:
            let user = user(&random).dropFirst(5)
            (fields, members) = (
                "director { id best { id name login } }",
                #"""
                "director":{"__typename":"User","id":"\#(user)",
                "best":{"__typename":"User","id":"\#(number(&random) % 5 + 1)","name":"B","login":"l"}}
                """#
            )
        }
        let movie = #"{"__typename":"Movie","id":"\#(id)",\#(members)}"#
        switch Int.random(in: 0..<5, using: &random) {
        case 0: return Text(operation: "{ movie(id: \"\(id)\") { id \(fields) } }", data: "{\"movie\":\(movie)}")
        case 1:
            return Text(
                operation: "fragment F on Movie { id \(fields) }", isFragment: true, data: movie,
                root: .object(key: "Movie:\(id)"))
        default:
            return Text(
                operation: "mutation { rate(id: 1, stars: 1) { movie { id \(fields) } } }",
                data: "{\"rate\":{\"movie\":\(movie)}}")
        }
    }

    private func twins(
        _ key: String, _ lazy: SampleCache, _ eager: SampleCache, _ random: inout SeededNumbers
    ) throws -> Twins {
        let text = change(&random)
        let hasAnswer = Int.random(in: 0..<8, using: &random) > 0
        let removals = Int.random(in: 0..<6, using: &random) == 0 ? [movie(&random)] : []
        var edits: [ListEdit] = []
        if Int.random(in: 0..<5, using: &random) == 0 { edits.append(edit(&random)) }
        if Int.random(in: 0..<20, using: &random) == 0 { edits.append(edit(&random)) }
        let isKnown = Int.random(in: 0..<10, using: &random) > 0
        let applied = try #require(AppliedKey(key))
        let contents = try [lazy, eager].map { sample in
            let (operation, parsed, root) = try read(text, in: sample)
            return OptimisticLayer.Content(
                response: hasAnswer ? .init(parsed, of: operation, to: root) : nil, removals: removals, edits: edits)
        }
        let (first, second) = (contents[0], contents[1])
        return Twins(
            lazy: OptimisticLayer(key: applied, touching: isKnown ? TouchedKeys(first) : nil) { first },
            eager: OptimisticLayer(key: applied) { second })
    }

    private func edit(_ random: inout SeededNumbers) -> ListEdit {
        let key = movie(&random)
        let places: [ListEdit.Place] = [.start, .end, .ascending(field: "year"), .descending(field: "year")]
        let action: ListEdit.Action =
            Int.random(in: 0..<4, using: &random) == 0
            ? .remove(key: key) : .insert(key: key, at: places[Int.random(in: 0..<4, using: &random)])
        return Bool.random(using: &random)
            ? ListEdit(field: "movies", action)
            : ListEdit(.object(key: movie(&random)), field: #"related({"first":2})"#, action)
    }
}
