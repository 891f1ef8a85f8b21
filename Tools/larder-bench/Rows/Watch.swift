import Foundation
import Larder
import Synchronization

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
    private var concerned: [Watch.Iterator] = []
    private var others: [Watch] = []
    private var round = 0

    init(folder: String, watchers: Int) async throws {
        store = try Store.open(at: URL(filePath: folder), schema: Schema(parsing: ItemShop.schemaText))
        partition = try store.partition()
        let items = (0..<ItemShop.pageSize).map(ItemShop.item).joined(separator: ",")
        try await partition.write(
            GraphQLOperation("{ items(page: 0) { \(ItemShop.fields) } }"), json: Array(#"{"items":[\#(items)]}"#.utf8))
        for index in 0..<watchers {
            let stream = try partition.watch(CacheKey(ItemShop.key(index < 10 ? 0 : index)), fragment)
            if index < 10 { concerned.append(stream.makeAsyncIterator()) } else { others.append(stream) }
        }
        for index in concerned.indices { _ = await concerned[index].next() }
    }

    func change() async throws {
        round += 1
        let title = "Title \(round)"
        try await partition.write(
            CacheKey(ItemShop.key(0)), fragment,
            json: Array(#"{"__typename":"Item","id":"0","title":"\#(title)"}"#.utf8))
        for index in concerned.indices {
            // A state of before may still wait in the stream.
            while let state = await concerned[index].next(), state.response?["title"]?.string != title {}
        }
    }
}

extension Bench {
    /// Writes to one object that many watch.
    func hotObject() async throws -> [BenchRow] {
        let watched = try await HotStore(folder: freshPath("hot"), watchers: 1_000)
        let plain = try await HotStore(folder: freshPath("hot"), watchers: 0)
        let count = 2_000
        let times = try await Measurement.times(
            rounds: max(rounds / 7, 3),
            [
                { try await Measurement.time { try await watched.change(count) } },
                { try await Measurement.time { try await plain.change(count) } },
            ]
        ).map { $0.dividing(by: Double(count)) }
        try await watched.expectNewest()
        try watched.store.close()
        try plain.store.close()
        return [
            BenchRow(
                name: "hot-object", what: "one write of many to an object with 1,000 watchers", times,
                floorName: "no watcher", reach: .ratio(1.25))
        ]
    }
}

/// A store of one object, and readers that take every state of it.
private final class HotStore {
    let store: Store
    private let partition: Partition
    private let fragment = GraphQLFragment("fragment One on Item { id title }")
    private let newest: [Newest]
    private var round = 0

    private final class Newest: Sendable {
        let title = Mutex("")
    }

    init(folder: String, watchers: Int) async throws {
        store = try Store.open(at: URL(filePath: folder), schema: Schema(parsing: ItemShop.schemaText))
        partition = try store.partition()
        newest = (0..<watchers).map { _ in Newest() }
        for newest in newest {
            let stream = try partition.watch(CacheKey(ItemShop.key(0)), fragment)
            Task {
                for await state in stream {
                    if let title = state.response?["title"]?.string { newest.title.withLock { $0 = title } }
                }
            }
        }
    }

    func change(_ count: Int) async throws {
        for _ in 0..<count {
            round += 1
            try await partition.write(
                CacheKey(ItemShop.key(0)), fragment,
                json: Array(#"{"__typename":"Item","id":"0","title":"Title \#(round)"}"#.utf8))
        }
    }

    /// Waits until every reader has what was written last.
    func expectNewest() async throws {
        for _ in 0..<1_000 {
            if newest.allSatisfy({ $0.title.withLock { $0 } == "Title \(round)" }) { return }
            try await Task.sleep(for: .milliseconds(10))
        }
        throw BenchFailure("a watcher has not come to the newest state")
    }
}
