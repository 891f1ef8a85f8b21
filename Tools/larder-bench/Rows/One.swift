import CLMDB
import Foundation
import LarderRecords

extension Bench {
    /// Runs the body with a cache of items.
    func withItems<Result>(
        _ count: Int, _ body: (ItemShop, RecordCache) async throws -> Result
    ) async throws -> Result {
        let path = freshPath("items")
        defer { remove(path) }
        let shop = try ItemShop()
        let cache = try RecordCache(folder: path, stamp: "bench")
        try await shop.fill(cache, 0..<count)
        let result = try await body(shop, cache)
        try cache.close()
        return result
    }

    func readOne() async throws -> [BenchRow] {
        try await withItems(ItemShop.pageSize) { shop, cache in
            let path = freshPath("raw")
            defer { remove(path) }
            let raw = try RawItems(folder: path)
            try raw.fill(0..<ItemShop.pageSize)
            return [try await readOne(shop, cache, raw, count: ItemShop.pageSize, name: "read-one")]
        }
    }

    /// Items in an order that the caches of the processor do not know.
    private func readOne(
        _ shop: ItemShop, _ cache: RecordCache, _ raw: RawItems, count: Int, name: String
    ) async throws -> BenchRow {
        var generator = SystemRandomNumberGenerator()
        let keys = (0..<2_000).map { _ in ItemShop.key(Int.random(in: 0..<count, using: &generator)) }
        let rawKeys = keys.map { Array($0.utf8) }
        let times = try await Measurement.times(
            rounds: rounds,
            [
                {
                    var missing = 0
                    let time = try Measurement.time {
                        for key in keys {
                            if try !cache.read(shop.fragment, from: .object(key: key)).response.isComplete {
                                missing += 1
                            }
                        }
                    }
                    guard missing == 0 else { throw BenchFailure("\(missing) items are missing") }
                    return time / Double(keys.count)
                },
                {
                    let time = try Measurement.time { for key in rawKeys { try raw.get(key) } }
                    return time / Double(keys.count)
                },
            ])
        return BenchRow(
            name: name, what: "one record of ten fields by key, to a Response", times,
            floorName: "mdb_get in a renewed transaction", reach: .ratio(4),
            note: "\(count) records")
    }

    func scale() async throws -> [BenchRow] {
        let path = freshPath("scale")
        let rawPath = freshPath("raw")
        defer {
            remove(path)
            remove(rawPath)
        }
        let shop = try ItemShop()
        let cache = try RecordCache(folder: path, stamp: "bench")
        let raw = try RawItems(folder: rawPath)
        var rows: [BenchRow] = []
        var filled = 0
        for count in [1_000, 10_000, 100_000, 1_000_000] where count <= largest {
            try await shop.fill(cache, filled..<count)
            try raw.fill(filled..<count)
            filled = count
            rows.append(try await readOne(shop, cache, raw, count: count, name: "scale"))
        }
        try cache.close()
        return rows
    }

    func changeOne() async throws -> [BenchRow] {
        try await withItems(ItemShop.pageSize) { shop, cache in
            let number = 5_000
            let operation = try shop.changing(number)
            var round = 0
            func change() async throws {
                round += 1
                let body = shop.changed(number, title: "Item title \(10_000 + round)")
                let parsed = try ParsedResponse.parse(body, along: operation.layout)
                guard try await cache.write(parsed, of: operation).changes.fields.count == (round == 1 ? 2 : 1) else {
                    throw BenchFailure("a change of one field was not one change")
                }
            }
            try await change()
            let path = freshPath("raw")
            defer { remove(path) }
            let raw = try RawChange(folder: path, recordCount: ItemShop.pageSize)
            let times = try await Measurement.times(
                rounds: rounds * 3,
                [
                    { try await Measurement.time { try await change() } },
                    { try Measurement.time { try raw.change(number) } },
                ])
            return [
                BenchRow(
                    name: "change-one", what: "one field of one record, durable", times,
                    floorName: "mdb_put into records, changes and meta", reach: .ratio(1.3))
            ]
        }
    }
}
