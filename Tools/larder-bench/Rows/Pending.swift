import Foundation
import Larder
import LarderRecords

/// The cost of pending mutations for a reader, and for a caller that queues more.
extension Bench {
    // MARK: Scrolling

    /// Objects read one by one, each changed by a pending mutation, after the store was opened.
    func scroll() async throws -> [BenchRow] {
        var rows: [BenchRow] = []
        for count in [1_000, 10_000, 30_000] where count <= largest {
            let pending = try await PendingDesk(folder: freshPath("scroll"), items: count)
            try await pending.enqueue(0..<count)
            let plain = try await PendingDesk(folder: freshPath("scroll"), items: count)
            var (worst, longest): ([Double], [Double]) = ([], [])
            let times = try await Measurement.times(
                rounds: max(min(rounds / 7, 3), 1), warmingUp: count <= 1_000,
                [
                    {
                        try pending.reopen()
                        let each = try pending.readEach(count, changed: true)
                        worst.append(each.percentile(99))
                        longest.append(each.percentile(100))
                        return each.reduce(0, +)
                    },
                    {
                        try plain.reopen()
                        return try plain.readEach(count, changed: false).reduce(0, +)
                    },
                ])
            try pending.store.close()
            try plain.store.close()
            rows.append(
                BenchRow(
                    name: "scroll-\(count)", what: "\(count) objects read one by one, each with a pending mutation",
                    times, floorName: "the same, none pending", reach: .ratio(3)))
            rows.append(
                BenchRow(
                    name: "scroll-\(count)-p99", what: "one of those reads", value: worst.percentile(50),
                    reach: .most(1e-3), note: String(format: "at most %.2f ms", longest.percentile(50) * 1e3)))
        }
        return rows
    }

    // MARK: Lists

    /// A short list into which pending mutations insert objects, read for the first time and again.
    func listInserts() async throws -> [BenchRow] {
        var rows: [BenchRow] = []
        for (place, edit) in [("end", ListEdit.Place.end), ("sorted", .ascending(field: "stock"))] {
            for count in [1_000, 10_000] { rows += try await listInserts(count, at: edit, place) }
        }
        return rows
    }

    private func listInserts(_ count: Int, at place: ListEdit.Place, _ name: String) async throws -> [BenchRow] {
        try await withItems(count) { shop, cache in
            let start = 1_000_000
            try await shop.fill(cache, start..<(start + 10))
            let short = try shop.reading(page: start)
            func layers() throws -> [OptimisticLayer] {
                try (0..<count).map { index in
                    guard let key = AppliedKey("key \(index)") else { throw BenchFailure("a key is none") }
                    let edits = [
                        ListEdit(field: "items({\"page\":\(start)})", .insert(key: ItemShop.key(index), at: place))
                    ]
                    let touched = TouchedKeys(OptimisticLayer.Content(edits: edits))
                    return OptimisticLayer(key: key, touching: touched, edits: edits)
                }
            }
            let first = try await Measurement.times(
                rounds: max(rounds / 7, 1), warmingUp: count <= 1_000,
                [
                    {
                        let new = try layers()
                        cache.replaceLayers([])
                        cache.replaceLayers(new)
                        let time = try Measurement.time { keep(try cache.read(short)) }
                        guard try cache.read(short).response["items"]?.count == count + 10 else {
                            throw BenchFailure("the inserts are not seen")
                        }
                        return time
                    }
                ])
            // The same objects in the same order: where they lie in memory makes much of a difference.
            let items = try cache.read(short).response["items"]
            let order = (0..<(count + 10)).compactMap { items?[$0]?["id"]?.string.flatMap { Int($0) } }
            let path = freshPath("items")
            defer { remove(path) }
            let plain = try RecordCache(folder: path, stamp: "bench")
            try await shop.fill(plain, 0..<count)
            try await shop.fill(plain, start..<(start + 10))
            try await shop.fill(plain, page: start, order)
            var number = 0
            func again(_ cache: RecordCache) throws -> Double { try Measurement.time { keep(try cache.read(short)) } }
            /// Writes an object that the list does not hold.
            func againAfterWrite(_ cache: RecordCache) async throws -> Double {
                number += 1
                let operation = try shop.changing(start * 2)
                let body = shop.changed(start * 2, title: "Title \(number)")
                _ = try await cache.write(try ParsedResponse.parse(body, along: operation.layout), of: operation)
                return try again(cache)
            }
            let later = try await Measurement.times(
                rounds: rounds, [{ try again(cache) }, { try again(plain) }])
            let written = try await Measurement.times(
                rounds: rounds, [{ try await againAfterWrite(cache) }, { try await againAfterWrite(plain) }])
            try plain.close()
            let (what, floor) = ("read again", "the same list without pending mutations")
            return [
                BenchRow(
                    name: "list-\(name)-\(count)-first", what: "one of \(count) pending inserts, at the first read",
                    value: first[0].median / Double(count), reach: .most(10e-6)),
                BenchRow(
                    name: "list-\(name)-\(count)-later", what: what, later, floorName: floor,
                    reach: .ratio(1.5)),
                BenchRow(
                    name: "list-\(name)-\(count)-write", what: "\(what) after another object was written",
                    written, floorName: floor, reach: .ratio(1.5)),
            ]
        }
    }

    // MARK: Queueing

    /// One mutation queued while others wait and objects are watched.
    func enqueueWatched() async throws -> [BenchRow] {
        let watchers = 100
        let plain = try await PendingDesk(folder: freshPath("enqueue"), items: 1_000)
        var rows: [BenchRow] = []
        for count in [1_000, 10_000, 100_000] where count <= max(largest / 10, 1_000) {
            let watched = try await PendingDesk(folder: freshPath("enqueue"), items: 1_000)
            try await watched.enqueue(0..<count)
            try await watched.watch(watchers)
            var (next, bare) = (count, 0)
            let times = try await Measurement.times(
                rounds: rounds * 5,
                [
                    {
                        next += 1
                        return try await Measurement.time { try await watched.enqueue(next..<(next + 1)) }
                    },
                    {
                        bare += 1
                        return try await Measurement.time { try await plain.enqueue(bare..<(bare + 1)) }
                    },
                ])
            try watched.store.close()
            rows.append(
                BenchRow(
                    name: "enqueue-watched-\(count)",
                    what: "one mutation queued, \(watchers) watchers, \(count) pending", times,
                    floorName: "no watcher, hardly any pending", reach: .ratio(1.5)))
        }
        try plain.store.close()
        return rows
    }
}

extension [Double] {
    /// The value that so many of a hundred are not above; 0 where there are no values.
    func percentile(_ percent: Int) -> Double {
        let sorted = sorted()
        return sorted.isEmpty ? 0 : sorted[(sorted.count - 1) * percent / 100]
    }
}

/// A store of items, and mutations of them that wait.
private final class PendingDesk {
    private(set) var store: Store
    private var app: Partition
    private let folder: String
    private let fragment = GraphQLFragment("fragment F on Item { title }")
    private var streams: [Watch] = []

    init(folder: String, items count: Int) async throws {
        self.folder = folder
        (store, app) = try RatingDesk.reopen(at: folder)
        for start in stride(from: 0, to: count, by: 500) {
            let fields = (start..<min(start + 500, count)).map { number in
                #""i\#(number)":{"__typename":"Item","id":"\#(number)","title":"Item number \#(number)"}"#
            }
            let selection = (start..<min(start + 500, count)).map { "i\($0): item(id: \"\($0)\") { id title }" }
            try await app.write(
                GraphQLOperation("{ \(selection.joined(separator: " ")) }"),
                json: Array("{\(fields.joined(separator: ","))}".utf8))
        }
    }

    func reopen() throws {
        try store.close()
        (store, app) = try RatingDesk.reopen(at: folder)
    }

    func enqueue(_ numbers: Range<Int>) async throws {
        for start in stride(from: numbers.lowerBound, to: numbers.upperBound, by: 1_000) {
            try await app.enqueue((start..<min(start + 1_000, numbers.upperBound)).map(RatingDesk.mutation))
        }
    }

    func watch(_ count: Int) async throws {
        streams = try (0..<count).map { try app.watch("Item:\($0)", fragment) }
        for stream in streams { for await _ in stream { break } }
        streams = try (0..<count).map { try app.watch("Item:\($0)", fragment) }
    }

    /// How long each read takes, in seconds.
    func readEach(_ count: Int, changed: Bool) throws -> [Double] {
        try (0..<count).map { number in
            var title: String?
            let time = try Measurement.time {
                title = try app.read("Item:\(number)", fragment)["title"]?.string
            }
            guard title?.hasPrefix("A soup") == changed else { throw BenchFailure("the layer of \(number)") }
            return time
        }
    }
}
