import Foundation
import Larder
import LarderGraphQL
import LarderRecords

/// What is to cost next to nothing, however much is there.
extension Bench {
    /// Removing a field that is not there, of an object with many.
    func removeNothing() async throws -> [BenchRow] {
        func cache(_ fields: Int) async throws -> RecordCache {
            let cache = try RecordCache(folder: freshPath("fields"), stamp: "bench")
            let schema = try SchemaIndex(parsing: ItemShop.schemaText)
            let text = "query C($id: ID!) { item(id: $id) { id title } }"
            let operation = try CompiledOperation(operation: nil, in: Document(parsing: text), schema)
            for start in stride(from: 0, to: fields, by: 1_000) {
                let responses = try (start..<min(start + 1_000, fields)).map { number in
                    let bound = try operation.bound(["id": .string("\(number)")])
                    let body = try ItemShop().changed(number % 100, title: "T")
                    return (parsed: try ParsedResponse.parse(body, along: bound.layout), operation: bound)
                }
                for outcome in await cache.write(responses) { _ = try outcome.get() }
            }
            return cache
        }
        let (many, few) = (try await cache(min(largest, 100_000)), try await cache(100))
        let times = try await Measurement.times(
            rounds: rounds * 3,
            [many, few].map { cache in
                { try await Measurement.time { keep(try await cache.remove(field: "items", of: "QUERY_ROOT")) } }
            })
        try many.close()
        try few.close()
        return [
            BenchRow(
                name: "remove-nothing", what: "a field that matches none of \(min(largest, 100_000)) removed", times,
                floorName: "none of 100", reach: .ratio(1.5))
        ]
    }

    /// Listing what was set aside where nothing was, while many mutations are pending.
    func noDeadLetters() async throws -> [BenchRow] {
        let path = freshPath("letters")
        defer { remove(path) }
        let (store, desk) = try await RatingDesk.open(at: path, pending: min(largest, 100_000))
        let (other, empty) = try await RatingDesk.open(at: "\(path)-empty", pending: 0)
        defer { remove("\(path)-empty") }
        func listing(_ app: Partition) throws -> Double {
            try Measurement.time {
                guard try app.mutations(in: [.deadLetter]).isEmpty else { throw BenchFailure("there are some") }
            }
        }
        let times = try await Measurement.times(rounds: rounds, [{ try listing(desk) }, { try listing(empty) }])
        try store.close()
        try other.close()
        return [
            BenchRow(
                name: "no-dead-letters", what: "what was set aside listed, nothing, beside 100,000 pending", times,
                floorName: "none pending", reach: .ratio(1.5))
        ]
    }

    /// Operations of which each is read once: whatever the caches of operations forget, one read waits for that.
    func manyOperations() async throws -> [BenchRow] {
        let path = freshPath("operations")
        defer { remove(path) }
        let store = try Store.open(at: URL(filePath: path), schema: Schema(parsing: ItemShop.schemaText))
        let app = try store.partition()
        let count = min(largest, 20_000)
        func reading(_ operation: GraphQLOperation) throws -> Double {
            try Measurement.time { keep(try app.read(operation, allowsPartial: true)) }
        }
        var times: [Double] = []
        for number in 0..<count {
            // Texts that differ, each with a variable that differs.
            let operation = GraphQLOperation(
                "query Q\(number)($id: ID!) { item(id: $id) { \(ItemShop.fields) alias\(number): title } }",
                variables: ["id": .string("\(number)")])
            times.append(try reading(operation))
        }
        try store.close()
        let waits = Measurement.Waits(times)
        return [
            BenchRow(name: "many-operations", what: "one read of \(count) that ask each something else", waits),
            BenchRow(
                name: "many-operations-longest", what: "the longest of them", value: waits.longest, reach: .most(0.01)),
        ]
    }
}
