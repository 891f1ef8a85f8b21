import LarderGraphQL
import LarderTestSupport
import Testing

@testable import LarderRecords

/// Edits of several lists of the same owners beside the same edits of arrays.
@Suite("List edits beside arrays", .timeLimit(.minutes(10)))
struct ListEditModelTests {
    private static let schema = """
        type Movie { id: ID! year: Int! }
        type Query { a: [Movie!]! b: [Movie!]! }
        """
    private static let ids = 0..<8

    private static func edit(_ action: ListEdit.Action, _ list: [Int], _ years: [Int]) -> [Int] {
        func id(_ key: String) -> Int { Int(key.drop { !$0.isNumber }) ?? 0 }
        var list = list
        switch action {
        case .remove(let key): list.removeAll { $0 == id(key) }
        case .insert(let key, let place):
            let id = id(key)
            guard !list.contains(id) else { break }
            let index =
                switch place {
                case .start: 0
                case .end: list.count
                case .ascending: list.firstIndex { years[$0] > years[id] } ?? list.count
                case .descending: list.firstIndex { years[$0] < years[id] } ?? list.count
                }
            list.insert(id, at: index)
        }
        return list
    }

    @Test("Layers that change two lists by turns show what the same changes make of arrays", arguments: 0..<8)
    func model(round: Int) async throws {
        var random = SeededNumbers(seed: TestSeed.of("list edits", round))
        try await withSampleCache(Self.schema) { sample in
            let years = Self.ids.map { _ in Int.random(in: 0..<5, using: &random) }
            func data(_ list: [Int]) -> String {
                let objects = list.map { #"{"__typename":"Movie","id":"\#($0)","year":\#(years[$0])}"# }
                return "[\(objects.joined(separator: ","))]"
            }
            var expected = [[Int]](repeating: [], count: 2)
            for index in 0..<2 { expected[index] = Array(Self.ids.shuffled(using: &random).prefix(4)) }
            // All are there.
            for (name, list) in [("a", Array(Self.ids)), ("a", expected[0]), ("b", expected[1])] {
                try await sample.write("{ \(name) { id year } }", data: #"{"\#(name)":\#(data(list))}"#)
            }
            func shown() throws -> String { try sample.json("{ a { id } b { id } }") }
            func wanted() -> String {
                let lists = expected.map { "[\($0.map { #"{"id":"\#($0)"}"# }.joined(separator: ","))]" }
                return #"{"a":\#(lists[0]),"b":\#(lists[1])}"#
            }
            var layers: [OptimisticLayer] = []
            var edits: [ListEdit] = []
            for number in 0..<12 {
                var some: [ListEdit] = []
                for _ in 0..<Int.random(in: 1...4, using: &random) {
                    let list = Int.random(in: 0...1, using: &random)
                    let key = "Movie:\(Int.random(in: Self.ids, using: &random))"
                    let places: [ListEdit.Place] = [
                        .start, .end, .ascending(field: "year"), .descending(field: "year"),
                    ]
                    let place = places.randomElement(using: &random) ?? .end
                    let isInsert = Int.random(in: 0...2, using: &random) > 0
                    let action: ListEdit.Action = isInsert ? .insert(key: key, at: place) : .remove(key: key)
                    some.append(ListEdit(field: list == 0 ? "a" : "b", action))
                    expected[list] = Self.edit(action, expected[list], years)
                }
                edits += some
                layers.append(OptimisticLayer(key: try #require(AppliedKey("k\(number)")), edits: some))
                try sample.cache.setLayers(layers)
                #expect(try shown() == wanted())
            }
            try sample.cache.setLayers([])
            try sample.cache.writeAsAnother(nil, edits: edits)
            #expect(try shown() == wanted())
        }
    }
}
