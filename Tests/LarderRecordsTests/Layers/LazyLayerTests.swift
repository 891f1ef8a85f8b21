import LarderGraphQL
import LarderTestSupport
import Synchronization
import Testing

@testable import LarderRecords

/// Keeps what layers do, and says of some that it is something else, or nothing, by the time that it is asked for.
private final class Drawer: LayerSource {
    struct Sheet {
        var content: OptimisticLayer.Content
        var isChanged = false
        var isGone = false
    }

    private let sheets = Mutex<[Int64: Sheet]>([:])
    private let asked = Mutex<[Int64]>([])

    /// The numbers of the layers whose contents were asked for.
    var opened: [Int64] { asked.withLock { $0 } }

    func put(_ content: OptimisticLayer.Content, isChanged: Bool = false, isGone: Bool = false, _ number: Int64) {
        sheets.withLock { $0[number] = Sheet(content: content, isChanged: isChanged, isGone: isGone) }
    }

    func contents(of layers: [OptimisticLayer]) throws(RecordError) -> [LayerFinding] {
        asked.withLock { $0 += layers.map(\.number) }
        return sheets.withLock { sheets in
            layers.map { layer in
                guard let sheet = sheets[layer.number], !sheet.isGone else { return .gone }
                let content = sheet.content
                return sheet.isChanged ? .changed { content } : .same { content }
            }
        }
    }
}

@Suite("Layers that are laid when a read comes to what they touch", .timeLimit(.minutes(10)))
struct LazyLayerTests {
    @Test("A reader gets all that it needs where another one gets the first of it meanwhile")
    func together() async throws {
        let drawer = Drawer()
        for number in 1...500 { drawer.put(.init(removals: ["Movie:1"]), Int64(number)) }
        for _ in 0..<200 {
            let layers = try (1...500).map { number in
                OptimisticLayer(
                    key: try #require(AppliedKey("k\(number)")), touching: nil, number: Int64(number), of: drawer)
            }
            let other = Task.detached { try OptimisticLayer.fetch([layers[0]]) }
            #expect(try OptimisticLayer.fetch(layers))
            _ = try await other.value
            let missing = try layers.filter { try $0.content.removals.isEmpty }
            try #require(missing.isEmpty)
        }
    }

    @Test("Reading one object lays its layers alone, and what they are connected with")
    func component() async throws {
        try await withSampleCache(movieSchema) { sample in
            try await sample.fill(1...20)
            var layers = try (1...20).map { try sample.rating("k\($0)", movie: "\($0)", year: 100 + $0) }
            // Of the same movie, and of one with another.
            layers.append(try sample.rating("again", movie: "7", year: 207))
            layers.append(try sample.rating("both", movie: "8", director: "u", year: 208))
            layers.append(try sample.rating("other", movie: "9", director: "u", year: 209))
            sample.cache.replaceLayers(layers)
            #expect(try sample.laidCount() == 0)
            #expect(try sample.year("1") == 101)
            #expect(try sample.laidCount() == 1)
            #expect(try sample.year("7") == 207)
            #expect(try sample.laidCount() == 3)
            #expect(try sample.year("7") == 207)
            #expect(try sample.laidCount() == 3)
            #expect(try sample.year("8") == 208)
            #expect(try sample.laidCount() == 7)
            #expect(try sample.cache.presence(of: "Movie:20").presence == .present)
            #expect(try sample.laidCount() == 8)
            // An object that no layer touches.
            #expect(try sample.cache.presence(of: "Movie:99").presence == .absent)
            #expect(try sample.laidCount() == 8)
        }
    }

    @Test("Reading object after object lays a few layers ahead, and none that much is connected with")
    func ahead() async throws {
        var options = RecordCache.Options()
        options.layersForEachAhead = 4
        try await withSampleCache(movieSchema, options) { sample in
            try await sample.fill(1...400)
            var layers = try (1...400).map { try sample.rating("k\($0)", movie: "\($0)", year: 1000 + $0) }
            // Each is connected with all others.
            for id in 300...320 {
                layers[id - 1] = try sample.rating("u\(id)", movie: "\(id)", director: "u", year: id)
            }
            sample.cache.replaceLayers(layers)
            var counts: [Int] = []
            for id in 1...200 {
                #expect(try sample.year("\(id)") == 1000 + id)
                counts.append(try sample.laidCount())
            }
            // One for each read at first, then more at a time, and never more than 32 besides the one that is read.
            #expect(counts.prefix(4) == [1, 2, 3, 4])
            #expect(zip(counts, counts.dropFirst()).allSatisfy { $1 - $0 <= 33 })
            #expect(Set(counts).count < 60)
            // Backwards as well, without those that are connected with many.
            for id in [330, 329] { #expect(try sample.year("\(id)") == 1000 + id) }
            let before = try sample.laidCount()
            for id in Array(297...299) + Array(321...328) { #expect(try sample.year("\(id)") == 1000 + id) }
            #expect(try sample.laidCount() == before)
            #expect(try sample.year("310") == 310)
            #expect(try sample.laidCount() == before + 21 + 19)
        }
    }

    @Test("A later layer is laid over the earlier ones when a record that it touches is read")
    func appended() async throws {
        try await withSampleCache(movieSchema) { sample in
            try await sample.fill(1...3)
            var layers = try (1...3).map { try sample.rating("k\($0)", movie: "\($0)", year: 100 + $0) }
            sample.cache.replaceLayers(layers)
            #expect(try sample.year("2") == 102)
            layers.append(try sample.rating("later", movie: "2", year: 300))
            sample.cache.replaceLayers(layers)
            #expect(try sample.year("1") == 101)
            #expect(try sample.laidCount() == 2)
            #expect(try sample.year("2") == 300)
            #expect(try sample.laidCount() == 3)
        }
    }

    @Test("Reading a list lays all that touch its objects, and one that all touch lays all")
    func list() async throws {
        try await withSampleCache(movieSchema) { sample in
            try await sample.fill(1...20)
            let layers = try (1...30).map { try sample.rating("k\($0)", movie: "\($0)", year: 100 + $0) }
            sample.cache.replaceLayers(layers)
            let answer = try sample.cache.read(sample.operation("{ movies { year } }"))
            #expect(answer.isOptimistic)
            let years = (1...20).map { "{\"year\":\(100 + $0)}" }.joined(separator: ",")
            #expect(String(decoding: answer.response.json, as: UTF8.self) == "{\"movies\":[\(years)]}")
            #expect(try sample.laidCount() == 20)
            let edits = try (1...30).map { number in
                try sample.rating(
                    "e\(number)", movie: "new\(number)", year: number,
                    edits: [ListEdit(field: "movies", .insert(key: "Movie:new\(number)", at: .end))])
            }
            sample.cache.replaceLayers(edits)
            #expect(try sample.year("new7") == 7)
            #expect(try sample.laidCount() == 30)
        }
    }

    @Test("Layers of which it is not known what they touch are laid always")
    func unknown() async throws {
        try await withSampleCache(movieSchema) { sample in
            try await sample.fill(1...3)
            sample.cache.replaceLayers(
                try (1...3).map { try sample.rating("k\($0)", movie: "\($0)", year: 100 + $0, isKnown: $0 != 2) })
            #expect(try sample.year("1") == 101)
            #expect(try sample.laidCount() == 2)
            #expect(try sample.year("2") == 102)
            #expect(try sample.laidCount() == 2)
            #expect(try sample.year("3") == 103)
        }
    }

    @Test(
        "A layer that looks into a list for its place sees what layers before it do to the list's objects, and no others"
    )
    func orderedPlace() async throws {
        try await withSampleCache(movieSchema) { sample in
            try await sample.fill(1...3)
            let place = ListEdit(field: "movies", .insert(key: "Movie:new", at: .ascending(field: "year")))
            sample.cache.replaceLayers([
                try sample.rating("before", movie: "1", year: 900),
                try sample.rating("new", movie: "new", year: 500, edits: [place]),
                try sample.rating("after", movie: "3", year: 800),
            ])
            // What comes after is laid first.
            #expect(try sample.year("3") == 800)
            #expect(try sample.laidCount() == 1)
            #expect(
                try sample.json("{ movies { id } }") == #"{"movies":[{"id":"new"},{"id":"1"},{"id":"2"},{"id":"3"}]}"#)
            #expect(try sample.laidCount() == 3)
        }
    }

    @Test("All layers are laid after a few reads that come to one which lies under those that are laid")
    func repeated() async throws {
        try await withSampleCache(movieSchema) { sample in
            try await sample.fill(1...20)
            sample.cache.replaceLayers(
                try (1...20).map { id in
                    let place = ListEdit(
                        .object(key: "Movie:\(id)"), field: "cast",
                        .insert(key: "User:\(id)", at: .ascending(field: "name")))
                    return try sample.rating("k\(id)", movie: "\(id)", year: 100 + id, edits: [place])
                })
            for id in (9...20).reversed() { #expect(try sample.year("\(id)") == 100 + id) }
            #expect(try sample.laidCount() == 20)
            #expect(try sample.year("1") == 101)
        }
    }

    @Test("Keys that have the same number cost time and do no harm")
    func collision() async throws {
        try await withSampleCache(movieSchema) { sample in
            try await sample.fill(1...3)
            let numbers = ["Movie:1", "Movie:2", "Movie:3"].map { TouchedKeys.number(of: $0) }
            sample.cache.replaceLayers(
                try (1...3).map { number in
                    let layer = try sample.rating("k\(number)", movie: "\(number)", year: 100 + number)
                    return OptimisticLayer(
                        key: layer.key, touching: TouchedKeys(numbers: numbers, isWhole: true),
                        response: try layer.content.response)
                })
            #expect(try sample.year("2") == 102)
            #expect(try sample.laidCount() == 3)
            #expect(try sample.year("3") == 103)
        }
    }

    @Test("An object that was evicted is looked for in all layers where a list comes to it")
    func evicted() async throws {
        try await withSampleCache(movieSchema) { sample in
            try await sample.fill(1...3)
            try await sample.changing { try await $0.remove(keys: ["Movie:2"], as: .evicted) }
            sample.cache.replaceLayers(
                try (2...3).map { try sample.rating("k\($0)", movie: "\($0)", year: 100 + $0) })
            #expect(try sample.json("{ movies { year } }") == #"{"movies":[{"year":1},{"year":102},{"year":103}]}"#)
        }
    }

    // MARK: Where it is kept what layers do

    @Test("A layer's content is asked for when it is laid, and once")
    func fetched() async throws {
        try await withSampleCache(movieSchema) { sample in
            try await sample.fill(1...5)
            let drawer = Drawer()
            sample.cache.replaceLayers(try (1...5).map { try sample.kept(Int64($0), in: drawer) })
            #expect(try sample.year("4") == 104)
            #expect(try sample.year("4") == 104)
            #expect(drawer.opened == [4])
            #expect(
                try sample.json("{ movies { year } }")
                    == #"{"movies":[{"year":101},{"year":102},{"year":103},{"year":104},{"year":105}]}"#)
            #expect(drawer.opened.sorted() == [1, 2, 3, 4, 5])
        }
    }

    @Test("A layer whose mutation has ended meanwhile is not seen, and its answer is")
    func ended() async throws {
        try await withSampleCache(movieSchema) { sample in
            try await sample.fill(1...5)
            let drawer = Drawer()
            let layers = try (1...5).map { try sample.kept(Int64($0), in: drawer) }
            sample.cache.replaceLayers(layers)
            #expect(try sample.year("1") == 101)
            let answer = try sample.rating("-", movie: "2", year: 222)
            try sample.cache.writeAsAnother(try answer.content.response, applying: layers[1].key)
            drawer.put(.init(), isGone: true, 2)
            drawer.put(.init(), isGone: true, 3)
            #expect(try sample.year("2") == 222)
            #expect(try sample.year("3") == 3)
            #expect(try sample.year("4") == 104)
        }
    }

    @Test("A layer that has become another meanwhile is seen wherever it is now")
    func changed() async throws {
        try await withSampleCache(movieSchema) { sample in
            try await sample.fill(1...5)
            let drawer = Drawer()
            sample.cache.replaceLayers(try (1...5).map { try sample.kept(Int64($0), in: drawer) })
            let other = try sample.rating("k2", movie: "5", year: 500).content
            drawer.put(other, isChanged: true, 2)
            #expect(try sample.year("2") == 2)
            // In its place in the order.
            #expect(try sample.year("5") == 105)
            #expect(try sample.year("4") == 104)
        }
    }

    @Test("Observers are told what all layers do, also layers that no read has met")
    func observed() async throws {
        try await withSampleCache(movieSchema) { sample in
            try await sample.fill(1...5)
            sample.cache.replaceLayers(
                try (1...4).map { try sample.rating("k\($0)", movie: "\($0)", year: 100 + $0) })
            #expect(try sample.year("1") == 101)
            let told = Mutex<[Commit]>([])
            sample.cache.observe { commit in told.withLock { $0.append(commit) } }
            sample.cache.replaceLayers(
                try (1...5).map { try sample.rating("k\($0)", movie: "\($0)", year: 100 + $0) })
            try await sample.cache.noticeOtherProcesses()
            #expect(told.withLock { $0.last?.changes.isEverything } == true)
            #expect(try sample.laidCount() == 5)
            sample.cache.replaceLayers(
                try (1...3).map { try sample.rating("k\($0)", movie: "\($0)", year: 100 + $0) })
            try await sample.cache.noticeOtherProcesses()
            let last = try #require(told.withLock { $0.last })
            #expect(
                try Set(last.changes.fields.map(\.record))
                    .isSuperset(of: ["4", "5"].map { try sample.number(of: "Movie:\($0)") }))
            #expect(try sample.year("5") == 5)
        }
    }

    // MARK: The stored form

    @Test("The keys that a layer touches are stored by numbers that never change, and are of no use to another schema")
    func storedForm() async throws {
        try await withSampleCache(movieSchema) { sample in
            let layer = try sample.rating(
                "k", movie: "1", director: "u", year: 5,
                edits: [ListEdit(.object(key: "Movie:2"), field: "cast", .remove(key: "User:z"))])
            let touched = try #require(layer.touched)
            let keys = ["Movie:1", "User:u", "Movie:2", "User:z"]
            #expect(touched.numbers == keys.map { TouchedKeys.number(of: $0) }.sorted())
            #expect(touched.isWhole)
            #expect(TouchedKeys.number(of: "Movie:1") == 7_802_409_061_566_733_184)
            let stored = touched.stored(schema: 7)
            #expect(TouchedKeys(stored: stored, schema: 7) == touched)
            #expect(TouchedKeys(stored: stored, schema: 8) == nil)
            for count in stored.indices where (count - 10) % 8 != 0 || count < 10 {
                #expect(TouchedKeys(stored: Array(stored[..<count]), schema: 7) == nil)
            }
            #expect(TouchedKeys(stored: [2] + stored.dropFirst(), schema: 7) == nil)
            let ordered = ListEdit(field: "movies", .insert(key: "Movie:1", at: .descending(field: "year")))
            #expect(try sample.rating("k", movie: "1", year: 5, edits: [ordered]).touched?.isWhole == false)
            #expect(try SchemaIndex(parsing: movieSchema).number == SchemaIndex(parsing: movieSchema).number)
            var other = try SchemaIndex(parsing: movieSchema)
            try other.setKeyFields(["title"], for: "Movie")
            #expect(try other.number != SchemaIndex(parsing: movieSchema).number)
        }
    }

    @Test("A layer keeps which objects it touches up to 128 of them, and nothing of more")
    func manyKeys() {
        func touched(_ count: Int) -> TouchedKeys? {
            TouchedKeys(OptimisticLayer.Content(removals: (0..<count).map { "Movie:\($0)" }))
        }
        #expect(touched(128)?.numbers.count == 128)
        #expect(touched(129) == nil)
    }

    @Test("A layer that finds a place by what others change is laid before them, whatever is read first")
    func placeBeneath() async throws {
        try await withSampleCache(movieSchema) { sample in
            let edit = try await sample.insertByYear()
            let placing = try OptimisticLayer(key: try #require(AppliedKey("p")), edits: [edit]).tellingItsKeys()
            let layers = [placing, try sample.rating("k", movie: "2", year: 5)]
            sample.cache.replaceLayers(layers)
            #expect(try sample.year("2") == 5)
            #expect(try sample.json("{ movies { id } }") == #"{"movies":[{"id":"1"},{"id":"9"},{"id":"2"}]}"#)
            #expect(try sample.year("2") == 5)
        }
    }
}

extension OptimisticLayer {
    /// The same, and what it touches is known.
    func tellingItsKeys() throws -> OptimisticLayer {
        let content = try content
        return OptimisticLayer(key: key, touching: TouchedKeys(content)) { content }
    }
}

extension SampleCache {
    func fill(_ numbers: ClosedRange<Int>) async throws {
        let movies = numbers.map { #"{"__typename":"Movie","id":"\#($0)","year":\#($0)}"# }.joined(separator: ",")
        try await write("{ movies { id year } }", data: #"{"movies":[\#(movies)]}"#)
    }

    /// A layer of a mutation, whose root is no object of the cache.
    func rating(
        _ key: String, movie: String, director: String? = nil, year: Int, edits: [ListEdit] = [], isKnown: Bool = true
    ) throws -> OptimisticLayer {
        let operation = try operation(
            "mutation { rate(id: 1, stars: 1) { movie { id year \(director == nil ? "" : "director { id name }") } } }")
        let user = director.map { #","director":{"__typename":"User","id":"\#($0)","name":"\#(key)"}"# } ?? ""
        let text = #"{"data":{"rate":{"movie":{"__typename":"Movie","id":"\#(movie)","year":\#(year)\#(user)}}}}"#
        let parsed = try ParsedResponse.parse(Array(text.utf8), along: operation.layout)
        let layer = OptimisticLayer(
            key: try #require(AppliedKey(key)), response: .init(parsed, of: operation), edits: edits)
        return isKnown ? try layer.tellingItsKeys() : layer
    }

    fileprivate func kept(_ number: Int64, in drawer: Drawer) throws -> OptimisticLayer {
        let layer = try rating("k\(number)", movie: "\(number)", year: 100 + Int(number))
        drawer.put(try layer.content, number)
        return OptimisticLayer(key: layer.key, touching: layer.touched, number: number, of: drawer)
    }

    func year(_ id: String) throws -> Int? {
        let response = try cache.read(fragment("fragment F on Movie { year }"), from: .object(key: "Movie:\(id)"))
            .response
        guard case .object(let members) = try Value(json: response.json), case .int(let year)? = members["year"] else {
            return nil
        }
        return Int(year)
    }

    /// How many layers are laid over the newest snapshot.
    func laidCount() throws -> Int {
        let set = try #require(cache.layers.current)
        return try cache.withLayers(set) { _, snapshot in snapshot.layers.laid.count }
    }

    func number(of key: String) throws -> UInt64 {
        try cache.generations.withSnapshot { generation, transaction in
            try #require(try generation.tables.record(of: key, transaction))
        }
    }
}
