import Foundation
import LarderGraphQL
import LarderTestSupport
import Synchronization
import Testing

@testable import LarderRecords

/// What a cache with layers should answer, as plain dictionaries.
private struct LayerModel {
    struct Movie: Equatable {
        /// By field name; objects that are no more have none.
        var fields: [String: Int] = [:]
        var isDeleted = false
    }

    /// What a mutation does, and what its answer does.
    struct Effect {
        var id: String
        var fields: [String: Int]
        var removes: String?
        var edit: ListEdit?
    }

    var movies: [String: Movie] = [:]
    var list: [String]?

    mutating func store(_ id: String, _ fields: [String: Int]) {
        if movies[id]?.isDeleted ?? true { movies[id] = Movie() }
        movies[id]?.fields.merge(fields) { $1 }
    }

    mutating func remove(_ id: String) {
        if movies[id] != nil { movies[id] = Movie(isDeleted: true) }
    }

    mutating func apply(_ effect: Effect) {
        store(effect.id, effect.fields)
        if let removed = effect.removes { remove(removed) }
        if let edit = effect.edit { apply(edit) }
    }

    private mutating func apply(_ edit: ListEdit) {
        guard var list else { return }
        switch edit.action {
        case .remove(let key): list.removeAll { "Movie:\($0)" == key }
        case .insert(let key, let place):
            let id = String(key.dropFirst("Movie:".count))
            guard let movie = movies[id], !movie.isDeleted, !list.contains(id) else { return }
            let index: Int?
            switch place {
            case .start: index = 0
            case .end: index = nil
            case .ascending: index = first(in: list, movie) { $0 > $1 }
            case .descending: index = first(in: list, movie) { $0 < $1 }
            }
            list.insert(id, at: index ?? list.count)
        }
        self.list = list
    }

    private func first(in list: [String], _ movie: Movie, _ isBehind: (Int, Int) -> Bool) -> Int? {
        guard let own = movie.fields["year"] else { return nil }
        return list.firstIndex { movies[$0]?.fields["year"].map { isBehind($0, own) } ?? false }
    }
}

@Suite("Layers beside a model of plain dictionaries", .timeLimit(.minutes(10)))
struct LayerModelTests {
    private struct Pending {
        var key: AppliedKey
        var layer: OptimisticLayer
        var effect: LayerModel.Effect
        /// The cache knows of it, and the layer is there still.
        var isKnown = false
    }

    /// How many times as many seeds as usual.
    static let factor = ProcessInfo.processInfo.environment["LARDER_LAYER_FACTOR"].flatMap(Int.init) ?? 1

    @Test("Random layers over random writes of this and other processes answer as the model does", arguments: 0..<4)
    func random(group: Int) async throws {
        for seed in 0..<(10 * Self.factor) { try await run(seed: UInt64(group * 1000 + seed)) }
    }

    private func run(seed: UInt64) async throws {
        try await withSampleCache(movieSchema) { sample in
            var random = SeededNumbers(seed: seed)
            var base = LayerModel()
            var pending: [Pending] = []
            var count = 0
            for step in 0..<40 {
                let place = Comment(rawValue: "seed \(seed), step \(step)")
                switch Int.random(in: 0..<14, using: &random) {
                case 0:
                    let ids = (1...6).map(String.init).shuffled(using: &random).prefix(3)
                    let json = ids.map { #"{"__typename":"Movie","id":"\#($0)","year":\#($0)}"# }.joined(separator: ",")
                    let answer = try sample.layer("-", "{ movies { id year } }", data: "{\"movies\":[\(json)]}")
                    try await write(answer, nil, in: sample, &random)
                    for id in ids { base.store(id, ["year": Int(id) ?? 0]) }
                    base.list = Array(ids)
                case 1, 2, 3:
                    let effect = effect(&random, isAnswer: true)
                    try await write(try layer("-", effect, in: sample), nil, in: sample, &random)
                    base.apply(effect)
                case 4, 5, 6, 7:
                    count += 1
                    let effect = effect(&random, isAnswer: false)
                    let layer = try layer("mutation-\(count)", effect, in: sample)
                    // What some of them touch is not known.
                    let shown = Int.random(in: 0..<4, using: &random) == 0 ? layer : try layer.tellingItsKeys()
                    pending.append(Pending(key: layer.key, layer: shown, effect: effect))
                    sample.cache.replaceLayers(pending.map(\.layer))
                    if Int.random(in: 0..<4, using: &random) == 0 {
                        #expect(try sample.cache.layerFailures().isEmpty, place)
                    }
                case 8, 9:
                    guard let index = pending.indices.randomElement(using: &random) else { continue }
                    let effect = effect(&random, isAnswer: true)
                    let answer = try layer("-", effect, in: sample)
                    try await write(answer, pending[index].key, in: sample, &random)
                    if !pending[index].isKnown { base.apply(effect) }
                    pending[index].isKnown = true
                case 10:
                    guard let index = pending.indices.randomElement(using: &random) else { continue }
                    try await sample.cache.noteRejected(pending[index].key)
                    pending[index].isKnown = true
                case 11:
                    pending.removeAll { $0.isKnown }
                    sample.cache.replaceLayers(pending.map(\.layer))
                case 12: try await sample.cache.compact()
                default:
                    if Int.random(in: 0..<3, using: &random) == 0 {
                        try await sample.cache.clear()
                        base = LayerModel()
                    } else {
                        try sample.reopen()
                        sample.cache.replaceLayers(pending.map(\.layer))
                    }
                }
                var seen = base
                for layer in pending where !layer.isKnown { seen.apply(layer.effect) }
                // Seldom all of it: what was read before decides on what is laid already.
                let lines = (0..<10).filter { _ in Int.random(in: 0..<4, using: &random) == 0 }.shuffled(using: &random)
                let wanted = expected(seen)
                for line in lines {
                    try #require(try self.read(sample, line) == wanted[line], place)
                }
                if step % 8 == 7 {
                    try #require(try (0..<10).map { try self.read(sample, $0) } == wanted, place)
                }
            }
            #expect(try sample.cache.check().problems == [], "seed \(seed)")
            try sample.cache.setLayers([])
            #expect(try (0..<10).map { try self.read(sample, $0) } == expected(base), "seed \(seed)")
        }
    }

    private func effect(_ random: inout SeededNumbers, isAnswer: Bool) -> LayerModel.Effect {
        let id = Int.random(in: 1...(isAnswer ? 7 : 9), using: &random)
        var fields: [String: Int] = [:]
        for name in ["year", "score"] where Bool.random(using: &random) {
            fields[name] = Int.random(in: 0...9, using: &random)
        }
        let removes = Int.random(in: 0..<6, using: &random) == 0 ? Int.random(in: 1...9, using: &random) : nil
        let key = "Movie:\(Int.random(in: 1...9, using: &random))"
        let places: [ListEdit.Place] = [
            .start, .end, .ascending(field: "year"), .descending(field: "year"),
        ]
        let action: ListEdit.Action? =
            switch Int.random(in: 0..<4, using: &random) {
            case 0: .remove(key: key)
            case 1: nil
            default: .insert(key: key, at: places[Int.random(in: 0..<4, using: &random)])
            }
        return LayerModel.Effect(
            id: String(id), fields: fields, removes: isAnswer ? nil : removes.map(String.init),
            edit: action.map { ListEdit(field: "movies", $0) })
    }

    private func layer(
        _ key: String, _ effect: LayerModel.Effect, in sample: SampleCache
    ) throws -> OptimisticLayer {
        let names = effect.fields.keys.sorted()
        let members = names.map { ",\"\($0)\":\(effect.fields[$0] ?? 0)" }.joined()
        // One that is not asked for at the root of queries, which would connect all.
        if key != "-", let digit = key.utf8.last, digit % 2 == 1 {
            let fragment = try sample.fragment("fragment F on Movie { id \(names.joined(separator: " ")) }")
            let text = #"{"data":{"__typename":"Movie","id":"\#(effect.id)"\#(members)}}"#
            let parsed = try ParsedResponse.parse(Array(text.utf8), along: fragment.layout)
            return OptimisticLayer(
                key: try #require(AppliedKey(key)),
                response: .init(parsed, of: fragment, to: .object(key: "Movie:\(effect.id)")),
                removals: effect.removes.map { ["Movie:\($0)"] } ?? [], edits: effect.edit.map { [$0] } ?? [])
        }
        return try sample.layer(
            key, "{ movie(id: \(effect.id)) { id \(names.joined(separator: " ")) } }",
            data: #"{"movie":{"__typename":"Movie","id":"\#(effect.id)"\#(members)}}"#,
            removals: effect.removes.map { ["Movie:\($0)"] } ?? [], edits: effect.edit.map { [$0] } ?? [])
    }

    /// Stores what a layer holds, as this process does or another.
    private func write(
        _ layer: OptimisticLayer, _ key: AppliedKey?, in sample: SampleCache, _ random: inout SeededNumbers
    ) async throws {
        let content = try layer.content
        let answer = try #require(content.response)
        if Bool.random(using: &random) {
            try sample.cache.writeAsAnother(answer, edits: content.edits, applying: key)
            if Bool.random(using: &random) { try await sample.cache.noticeOtherProcesses() }
        } else {
            _ = try await sample.cache.write(answer.parsed, of: answer.operation, applying: key, edits: content.edits)
        }
    }

    private func expected(_ model: LayerModel) -> [String] {
        var lines = (1...9).map { id in
            let movie = model.movies[String(id)]
            if movie?.isDeleted == true { return "\(id) deleted" }
            let fields = ["year", "score"].map { movie?.fields[$0].map(String.init) ?? "missing" }
            return "\(id) \(fields.joined(separator: " "))"
        }
        lines.append(
            model.list.map { ids in
                ids.filter { model.movies[$0]?.isDeleted == false }.joined(separator: " ")
            } ?? "missing")
        return lines
    }

    /// - Parameter line: 0 to 8 for the movies, 9 for the list.
    private func read(_ sample: SampleCache, _ line: Int) throws -> String {
        guard line == 9 else { return try read(movie: line + 1, sample) }
        let list = try sample.cache.read(sample.operation("{ movies { id } }")).response
        guard list.isComplete, case .object(let members) = try Value(json: list.json),
            case .list(let movies)? = members["movies"]
        else { return "missing" }
        return movies.map { movie in
            if case .object(let fields) = movie, case .string(let id)? = fields["id"] { id } else { "?" }
        }.joined(separator: " ")
    }

    private func read(movie id: Int, _ sample: SampleCache) throws -> String {
        let fragments = try ["year", "score"].map { try sample.fragment("fragment F on Movie { \($0) }") }
        let fields = try fragments.map { fragment in
            let answer = try sample.cache.read(fragment, from: .object(key: "Movie:\(id)"))
            if answer.isDeleted { return "deleted" }
            guard answer.response.isComplete else { return "missing" }
            guard case .object(let members) = try Value(json: answer.response.json), let value = members.values.first
            else { return "nothing" }
            return switch value {
            case .int(let number): String(number)
            case .float(let number): String(Int(number))
            default: "\(value)"
            }
        }
        return fields == ["deleted", "deleted"] ? "\(id) deleted" : "\(id) \(fields.joined(separator: " "))"
    }

    @Test("A constant reader never sees an answer together with its layer, nor neither of them")
    func neverBothNeverNeither() async throws {
        try await withSampleCache(movieSchema) { sample in
            try await sample.write("{ movies { id } }", data: #"{"movies":[]}"#)
            let cache = sample.cache
            let list = try sample.operation("{ movies { id } }")
            let isDone = Mutex(false)
            // The list is as long as there were mutations, whoever holds the last of them.
            let reader = Task.detached {
                var greatest = 0
                var faults: [String] = []
                while !isDone.withLock({ $0 }) {
                    let json = String(decoding: try cache.read(list).response.json, as: UTF8.self)
                    let ids = json.split(separator: "\"id\":\"").dropFirst().map { $0.prefix { $0 != "\"" } }
                    if ids.count < greatest { faults.append("\(ids.count) after \(greatest)") }
                    greatest = max(greatest, ids.count)
                    for id in ids where id.hasPrefix("tmp") && ids.contains("n\(id.dropFirst(3))") {
                        faults.append("\(id) beside its answer")
                    }
                    await Task.yield()
                }
                return (faults, greatest)
            }
            for number in 1...60 {
                let text = "{ movie(id: \"n\(number)\") { id } }"
                let layer = try sample.layer(
                    "k\(number)", "{ movie(id: \"tmp\(number)\") { id } }",
                    data: #"{"movie":{"__typename":"Movie","id":"tmp\#(number)"}}"#,
                    edits: [ListEdit(field: "movies", .insert(key: "Movie:tmp\(number)", at: .start))])
                try cache.setLayers([layer])
                let answer = try sample.layer(
                    "-", text, data: #"{"movie":{"__typename":"Movie","id":"n\#(number)"}}"#)
                let response = try #require(answer.content.response)
                let edit = ListEdit(field: "movies", .insert(key: "Movie:n\(number)", at: .start))
                if number % 2 == 0 {
                    try cache.writeAsAnother(response, edits: [edit], applying: layer.key)
                } else {
                    _ = try await cache.write(
                        response.parsed, of: response.operation, applying: layer.key, edits: [edit])
                }
                if number % 20 == 0 { try await cache.compact() }
                try cache.setLayers([])
            }
            isDone.withLock { $0 = true }
            let (faults, greatest) = try await reader.value
            #expect(faults == [])
            #expect(greatest > 0)
            #expect(try cache.check().problems == [])
        }
    }
}
