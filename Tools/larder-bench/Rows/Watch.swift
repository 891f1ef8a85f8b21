import Foundation
import Larder

extension Bench {
    /// One change, until all ten that it concerns have the new state.
    func watch() async throws -> [BenchRow] {
        let many = try await WatchedStore(folder: freshPath("watch"), watchers: 10_000)
        let few = try await WatchedStore(folder: freshPath("watch"), watchers: 10)
        let times = try await Measurement.times(
            rounds: rounds * 3,
            [
                { try await Measurement.time { try await many.change() } },
                { try await Measurement.time { try await few.change() } },
            ])
        try many.store.close()
        try few.store.close()
        return [
            BenchRow(
                name: "watch", what: "one change with 10,000 watchers, 10 concerned, until they have it", times,
                floorName: "the same with 10 watchers", reach: .ratio(1.2))
        ]
    }
}

/// A store of which ten watchers watch one item, and the rest other items.
private final class WatchedStore {
    let store: Store
    private let partition: Partition
    private let fragment = GraphQLFragment("fragment One on Item { id title }")
    private var concerned: [AsyncStream<WatchState>.Iterator] = []
    private var others: [AsyncStream<WatchState>] = []
    private var round = 0

    init(folder: String, watchers: Int) async throws {
        store = try Store.open(at: URL(filePath: folder), schema: Schema(parsing: ItemShop.schemaText))
        partition = try store.partition()
        let items = (0..<ItemShop.pageSize).map(ItemShop.item).joined(separator: ",")
        try await partition.write(
            GraphQLOperation("{ items(page: 0) { \(ItemShop.fields) } }"), json: Array(#"{"items":[\#(items)]}"#.utf8))
        for index in 0..<watchers {
            let stream = try partition.watch(ItemShop.key(index < 10 ? 0 : index), fragment)
            if index < 10 { concerned.append(stream.makeAsyncIterator()) } else { others.append(stream) }
        }
        for index in concerned.indices { _ = await concerned[index].next() }
    }

    func change() async throws {
        round += 1
        let title = "Title \(round)"
        try await partition.write(
            ItemShop.key(0), fragment, json: Array(#"{"__typename":"Item","id":"0","title":"\#(title)"}"#.utf8))
        for index in concerned.indices {
            // A state of before may still wait in the stream.
            while let state = await concerned[index].next(), state.response?["title"]?.string != title {}
        }
    }
}
