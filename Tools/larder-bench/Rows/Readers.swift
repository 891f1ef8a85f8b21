import Foundation
import Larder
import LarderRecords
import Synchronization

extension Bench {
    /// Threads that read one object each at a time, as fast as they can: how long one read takes of all the time.
    func readers() async throws -> [BenchRow] {
        let path = freshPath("readers")
        defer { remove(path) }
        let store = try Store.open(at: URL(filePath: path), schema: Schema(parsing: ItemShop.schemaText))
        let app = try store.partition()
        let items = (0..<ItemShop.pageSize).map(ItemShop.item).joined(separator: ",")
        try await app.write(
            GraphQLOperation("{ items(page: 0) { \(ItemShop.fields) } }"), json: Array(#"{"items":[\#(items)]}"#.utf8))
        let fragment = GraphQLFragment(ItemShop.fragmentText)
        let unprepared = try await readers("unprepared") { number in
            keep(try app.read(CacheKey(ItemShop.key(number)), fragment))
        }
        try store.close()
        let prepared = try await withItems(ItemShop.pageSize) { shop, cache in
            try await readers("prepared") { number in
                keep(try cache.read(shop.fragment, from: .object(key: ItemShop.key(number))))
            }
        }
        return prepared + unprepared
    }

    private func readers(_ name: String, _ read: @escaping @Sendable (Int) throws -> Void) async throws -> [BenchRow] {
        let counts = [1, 2, 4, 8]
        let times = try await Measurement.times(
            rounds: max(rounds / 3, 3), counts.map { count in { try Self.spread(100_000, over: count, read) } })
        return zip(counts, times).dropFirst().map { count, time in
            BenchRow(
                name: "readers-\(count)-\(name)", what: "\(count) threads that read one object at a time",
                [time, times[0]].map { $0.dividing(by: 100_000) }, floorName: "one thread",
                reach: .ratio(count == 2 ? 1 / 1.7 : 1 / 0.9),
                note: String(format: "%.0f reads a second, fastest %.0f", 1e5 / time.median, 1e5 / time.fastest))
        }
    }

    /// Seconds that threads take for so many reads together.
    private static func spread(
        _ total: Int, over count: Int, _ read: @escaping @Sendable (Int) throws -> Void
    ) throws -> Double {
        let failure = Mutex<(any Error)?>(nil)
        let time = Measurement.time {
            let group = DispatchGroup()
            for thread in 0..<count {
                group.enter()
                Thread.detachNewThread {
                    defer { group.leave() }
                    do {
                        for index in 0..<(total / count) { try read((index &* 7 &+ thread) % ItemShop.pageSize) }
                    } catch { failure.withLock { $0 = error } }
                }
            }
            group.wait()
        }
        if let error = failure.withLock({ $0 }) { throw error }
        return time
    }
}
