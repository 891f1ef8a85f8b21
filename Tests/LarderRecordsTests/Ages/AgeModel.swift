import LarderTestSupport
import Testing

@testable import LarderRecords

/// A dictionary of times beside a cache.
struct AgeModel {
    private static let fieldCount = 80
    private var times: [String: Int64] = [:]
    private var numbers: SeededNumbers

    static func run(_ seed: UInt64, steps: Int) async throws {
        let fields = (0..<fieldCount).map { "f\($0): Int" }.joined(separator: " ")
        let sdl = "type Query { node(id: ID): Node nodes(of: Int): [Node] } type Node { id: ID! \(fields) }"
        try await AgedCache.with(sdl) { aged in
            var model = AgeModel(numbers: SeededNumbers(seed: seed))
            for step in 0..<steps {
                try await model.step(aged)
                try model.compare(aged, "seed \(seed), step \(step)")
            }
        }
    }

    private init(numbers: SeededNumbers) { self.numbers = numbers }

    private func operation(_ list: Int, _ fields: [Int]) -> String {
        "{ nodes(of: \(list)) { id \(fields.map { "f\($0)" }.joined(separator: " ")) } }"
    }

    private mutating func someFields() -> [Int] {
        // Now and then so many that the record is split.
        let share = Int.random(in: 0..<10, using: &numbers) == 0 ? 9 : Int.random(in: 0..<3, using: &numbers)
        return (0..<Self.fieldCount).filter { _ in Int.random(in: 0..<10, using: &numbers) < share }
    }

    private mutating func step(_ aged: AgedCache) async throws {
        switch Int.random(in: 0..<20, using: &numbers) {
        case 0: try aged.sample.reopen()
        case 1: _ = try await aged.sample.cache.compact()
        case 2: aged.now -= Int64.random(in: 0..<5000, using: &numbers)
        case 3:
            let id = Int.random(in: 0..<4, using: &numbers)
            _ = try await aged.sample.cache.remove(keys: ["Node:\(id)"], as: .evicted)
            for key in times.keys where key.hasPrefix("\(id).") { times[key] = nil }
        case 4..<8: aged.now += Int64.random(in: 0..<1000, using: &numbers)
        default:
            let (list, fields) = (Int.random(in: 0..<3, using: &numbers), someFields())
            let ids = (0..<4).filter { _ in Bool.random(using: &numbers) }
            let objects = ids.map { id in
                let values = fields.map { #","f\#($0)":\#(Int.random(in: 0..<2, using: &numbers))"# }
                return #"{"id":"\#(id)"\#(values.joined())}"#
            }
            try await aged.sample.write(
                operation(list, fields), data: #"{"nodes":[\#(objects.joined(separator: ","))]}"#)
            times["list \(list)"] = aged.now
            for id in ids { for field in fields.map({ "f\($0)" }) + ["id"] { times["\(id).\(field)"] = aged.now } }
        }
    }

    private mutating func compare(_ aged: AgedCache, _ comment: Comment) throws {
        let (list, fields) = (Int.random(in: 0..<3, using: &numbers), someFields())
        let response = try aged.response(operation(list, fields))
        guard response.isComplete, let objects = response["nodes"]?.elements else { return }
        var parts = [times["list \(list)"]]
        for object in objects {
            guard let id = object["id"]?.string else { continue }
            parts += (fields.map { "f\($0)" } + ["id"]).map { times["\(id).\($0)"] }
        }
        let known = parts.compactMap(\.self).filter { $0 <= aged.now + 60 }
        let expected = known.count == parts.count ? known.min().map { max(0, aged.now - $0) } : nil
        #expect(response.age?.components.seconds == expected, comment)
    }
}
