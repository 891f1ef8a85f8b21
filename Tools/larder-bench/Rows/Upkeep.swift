import CLMDB
import Foundation
import LarderLMDB
import LarderRecords
import Synchronization

/// What keeping a cache in order costs, and whom it keeps waiting.
extension Bench {
    // MARK: Garbage

    func collecting() async throws -> [BenchRow] {
        let path = freshPath("garbage")
        defer { remove(path) }
        let pageSize = min(ItemShop.pageSize, largest / 2)
        let garbage = stride(from: pageSize, to: largest, by: 2 * pageSize).map { $0..<min($0 + pageSize, largest) }
        let cache = try RecordCache(folder: path, stamp: "bench")
        try await ItemShop().fill(cache, 0..<largest)
        for page in garbage {
            _ = try await cache.remove(field: "items({\"page\":\(page.lowerBound)})", of: "QUERY_ROOT")
        }
        try cache.close()
        var growth: [Int] = []
        var waits: [Double] = []
        @Sendable func copied() throws -> String {
            let copy = freshPath("garbage-copy")
            try FileManager.default.copyItem(atPath: path, toPath: copy)
            // Else the first commit would wait until the whole copy is on the disk.
            try FileHandle(forUpdating: URL(filePath: "\(copy)/1/data.mdb")).synchronize()
            return copy
        }
        let times = try await Measurement.times(
            rounds: min(rounds, 3), warmingUp: false,
            [
                {
                    let copy = try copied()
                    defer { remove(copy) }
                    let cache = try RecordCache(folder: copy, stamp: "bench")
                    let before = Memory.own ?? 0
                    let most = Atomic(0)
                    let slices = Atomic(0)
                    var report: GarbageReport?
                    let time = try await Measurement.time {
                        report = try await cache.collectGarbage(keeping: NoRoots()) { _ in
                            // To look takes a third of a millisecond.
                            guard slices.add(1, ordering: .relaxed).newValue % 16 == 0 else { return }
                            most.max(Memory.own ?? 0, ordering: .relaxed)
                        }
                    }
                    growth.append(most.load(ordering: .relaxed) - before)
                    guard report?.objects == garbage.reduce(0, { $0 + $1.count }) else {
                        throw BenchFailure("the collection removed \(report?.objects ?? 0) objects")
                    }
                    try cache.close()
                    return time
                },
                {
                    let copy = try copied()
                    defer { remove(copy) }
                    return try Measurement.time {
                        keep(try PageWalk.run(path: "\(copy)/1/data.mdb"))
                        try removeRaw(garbage, folder: "\(copy)/1")
                    }
                },
                {
                    let copy = try copied()
                    defer { remove(copy) }
                    let cache = try RecordCache(folder: copy, stamp: "bench")
                    waits += try await writing(into: cache) { _ = try await cache.collectGarbage(keeping: NoRoots()) }
                    try cache.close()
                    return 0
                },
            ])
        return [
            BenchRow(
                name: "collect", what: "collecting a store of \(largest), half of them garbage", times,
                floorName: "the page walk, and removing the keys through the C API, 1,000 to a commit",
                reach: .ratio(2)),
            BenchRow(
                name: "collect-memory", what: "most memory of its own above what there was before", unit: .bytes,
                value: Double(growth.max() ?? 0), reach: .most(64 * 1_048_576)),
            BenchRow(
                name: "collect-wait", what: "one write while garbage is collected", Measurement.Waits(waits),
                reach: .most(0.01)),
        ]
    }

    /// Changes one object after the other until `body` is done, and says how long each write took.
    func writing(into cache: RecordCache, _ body: @Sendable @escaping () async throws -> Void) async throws
        -> [Double]
    {
        let shop = try ItemShop()
        let isDone = Done()
        async let work: Void = {
            defer { isDone.set() }
            try await body()
        }()
        var waits: [Double] = []
        var number = 0
        while !isDone.isSet {
            number += 1
            let (operation, body) = (
                try shop.changing(number % 1_000), shop.changed(number % 1_000, title: "\(number)")
            )
            let parsed = try ParsedResponse.parse(body, along: operation.layout)
            waits.append(try await Measurement.time { _ = try await cache.write(parsed, of: operation) })
        }
        try await work
        return waits
    }

    /// Removes items' records and keys as any program would that knew them.
    private func removeRaw(_ ranges: [Range<Int>], folder: String) throws {
        let raw = try RawEnvironment(folder: folder)
        let (records, keys) = (try raw.table("records", isInteger: true), try raw.table("keys"))
        for range in ranges {
            for start in stride(from: range.lowerBound, to: range.upperBound, by: 1_000) {
                try raw.write { transaction in
                    for number in start..<min(start + 1_000, range.upperBound) {
                        // The root of all queries is the first record.
                        var id = UInt64(number + 2)
                        try withUnsafeMutableBytes(of: &id) { bytes in
                            var key = MDB_val(mv_size: 8, mv_data: bytes.baseAddress)
                            let status = mdb_del(transaction, records, &key, nil)
                            if status != MDB_NOTFOUND { try RawEnvironment.check(status) }
                        }
                        var text = Array(ItemShop.key(number).utf8)
                        try text.withUnsafeMutableBytes { bytes in
                            var key = MDB_val(mv_size: bytes.count, mv_data: bytes.baseAddress)
                            let status = mdb_del(transaction, keys, &key, nil)
                            if status != MDB_NOTFOUND { try RawEnvironment.check(status) }
                        }
                    }
                }
            }
        }
    }

    // MARK: A day

    /// A day of use, as many seconds of it as there are rounds for: 100 changes in each, over 200,000 objects, and a
    /// bound of 50 MB that is looked at once a minute.
    func day() async throws -> [BenchRow] {
        let path = freshPath("day")
        defer { remove(path) }
        let (bound, count) = (50_000_000, min(largest, 200_000))
        let seconds = 86_400 * min(rounds, 21) / 21
        let clock = Clock()
        var options = RecordCache.Options()
        options.now = { clock.milliseconds }
        let cache = try RecordCache(folder: path, stamp: "bench", options: options)
        let shop = try ItemShop()
        var random = UInt64(1)
        func number(_ bound: Int) -> Int {
            random = random &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            return Int((random >> 33) % UInt64(bound))
        }
        var (quiet, busy): ([Double], [Double]) = ([], [])
        var (largestFile, evictions) = (0, 0)
        var upkeep: Task<Void, any Error>?
        let isWorking = Done()
        for second in 0..<seconds {
            clock.advance()
            let page = number(count / 100)
            let operation = try shop.reading(page: page)
            let items = (0..<100).map { _ in ItemShop.item(number(count)) }
            let text = items.joined(separator: ",").replacing("Item number", with: "Item in second \(second)")
            let parsed = try ParsedResponse.parse(
                Array(#"{"data":{"items":[\#(text)]}}"#.utf8), along: operation.layout)
            let wasBusy = isWorking.isSet
            let time = try await Measurement.time { _ = try await cache.write(parsed, of: operation) }
            if wasBusy || isWorking.isSet { busy.append(time) } else { quiet.append(time) }
            if second % 60 == 59 {
                try await upkeep?.value
                let size = try FileManager.default.attributesOfItem(atPath: "\(path)/1/data.mdb")[.size] as? Int ?? 0
                largestFile = max(largestFile, size)
                guard try cache.bytesInUse() > bound else { continue }
                evictions += 1
                isWorking.set()
                upkeep = Task {
                    defer { isWorking.clear() }
                    _ = try await cache.evict(EvictionRule(maximumBytes: bound / 10 * 9), keeping: NoRoots())
                }
            }
        }
        try await upkeep?.value
        try cache.close()
        busy.sort()
        quiet.sort()
        let longest = (busy.last ?? 0, quiet.last ?? 0)
        return [
            BenchRow(
                name: "day", what: "the file of a store of \(count) objects, bound to \(bound) bytes", unit: .bytes,
                value: Double(largestFile), floorName: "the bound", floor: Double(bound), reach: .ratio(1.2),
                note: "\(seconds) s with 100 changes each; bound kept \(evictions) times"),
            BenchRow(
                name: "day-wait", what: "the longest write of 100 changes beside that", value: longest.0,
                floorName: "the longest when nothing else went on", floor: longest.1, reach: .excess(0.02),
                note: String(
                    format: "%d writes beside it, 99 of 100 within %.1f ms; without, %.1f ms", busy.count,
                    (busy.isEmpty ? 0 : busy[busy.count * 99 / 100]) * 1e3,
                    (quiet.isEmpty ? 0 : quiet[quiet.count * 99 / 100]) * 1e3)),
        ]
    }
}

private struct NoRoots: CollectionRoots {
    func needed(fromStart: Bool) -> [Dependencies] { [] }
    func newlyWatched() -> [Dependencies] { [] }
}

private final class Done: Sendable {
    private let value = Atomic(false)

    var isSet: Bool { value.load(ordering: .relaxed) }
    func set() { value.store(true, ordering: .relaxed) }
    func clear() { value.store(false, ordering: .relaxed) }
}

/// A clock that goes on by a second when it is told to.
private final class Clock: Sendable {
    private let time = Atomic<Int64>(1_800_000_000_000)

    var milliseconds: Int64 { time.load(ordering: .relaxed) }
    func advance() { time.add(1_000, ordering: .relaxed) }
}
