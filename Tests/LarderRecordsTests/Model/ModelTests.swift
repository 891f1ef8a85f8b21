import LarderGraphQL
import LarderTestSupport
import Testing

@testable import LarderRecords

@Suite("Beside a model of plain dictionaries", .timeLimit(.minutes(10)))
struct ModelTests {
    @Test("Random writes, removals and reopenings answer as the model does", arguments: 0..<4)
    func consistentServer(group: Int) async throws {
        for seed in 0..<30 { try await run(seed: UInt64(group * 1000 + seed), steps: 16, isContradictory: false) }
    }

    @Test("A server that contradicts itself leaves the cache sound and its changes exact", arguments: 0..<2)
    func contradictoryServer(group: Int) async throws {
        for seed in 0..<25 {
            try await run(seed: UInt64(50_000 + group * 1000 + seed), steps: 14, isContradictory: true)
        }
    }

    private struct Asked {
        var selections: [ModelSelection]
        var operation: BoundOperation
    }

    private func run(seed: UInt64, steps: Int, isContradictory: Bool) async throws {
        try await withSampleCache(ModelSchema.text) { sample in
            var random = SeededNumbers(seed: seed)
            var model = ModelCache()
            var asked: [Asked] = []
            for step in 0..<steps {
                let place = Comment(rawValue: "seed \(seed), step \(step)")
                if asked.count < 3 || Int.random(in: 0..<4, using: &random) == 0 {
                    var next = 0
                    let selections = ModelSelection.random(of: "Query", depth: 4, &next, &random)
                    let text = ModelSelection.text(selections, in: "Query")
                    asked.append(Asked(selections: selections, operation: try sample.operation(text)))
                }
                guard let current = asked.randomElement(using: &random) else { continue }
                switch Int.random(in: 0..<10, using: &random) {
                case 0:
                    let key =
                        "\(["A", "B"][Int.random(in: 0...1, using: &random)]):\(Int.random(in: 1...4, using: &random))"
                    let removal: RecordCache.Removal = Bool.random(using: &random) ? .deleted : .evicted
                    try await sample.changing { try await $0.remove(keys: [key, "C:1", key], as: removal) }
                    model.remove(key, leavingTombstone: removal == .deleted)
                case 1:
                    let removal: RecordCache.Removal = Bool.random(using: &random) ? .deleted : .evicted
                    try await sample.changing { try await $0.remove(type: "B", as: removal) }
                    model.remove(type: "B", leavingTombstone: removal == .deleted)
                case 2:
                    let key = ["QUERY_ROOT", "A:1", "B:2"][Int.random(in: 0...2, using: &random)]
                    let field = ["a", "ps", "p", "a({\"x\":1})", "as"][Int.random(in: 0...4, using: &random)]
                    try await sample.changing { try await $0.remove(field: field, of: key) }
                    model.remove(field: field, of: key)
                case 3: try sample.reopen()
                default:
                    var server = ModelServer(
                        seed: random.next(), isContradictory: isContradictory,
                        hasErrors: Int.random(in: 0..<3, using: &random) == 0)
                    let response = server.response(to: current.selections)
                    try await sample.write(current.operation, response: response)
                    if isContradictory { continue }
                    model.write(server.entities)
                    let again = try await sample.write(current.operation, response: response)
                    #expect(again.changes.isEmpty, place)
                }
                if isContradictory { continue }
                for asked in asked {
                    let answer = try sample.cache.read(asked.operation).response
                    let expected = model.read(asked.selections, from: "QUERY_ROOT")
                    let found = ModelCache.Answer(
                        data: try Value(json: answer.json), missing: answer.missing.map(\.description).sorted())
                    try #require(found == expected, place)
                }
            }
        }
    }
}
