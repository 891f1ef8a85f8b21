import CLMDB
import Foundation
import LarderRecords
import Synchronization

extension Bench {
    private func serialization() -> Measurement.Contender {
        let data = Data(input.body)
        return { try Measurement.time { keep(try JSONSerialization.jsonObject(with: data)) } }
    }

    func parse() async throws -> [BenchRow] {
        let layout = input.operation.layout
        let times = try await Measurement.times(
            rounds: rounds,
            [
                { try Measurement.time { keep(try ParsedResponse.parse(input.body, along: layout)) } },
                serialization(),
            ])
        return [
            BenchRow(
                name: "parse", what: "response bytes to records in memory", times,
                floorName: "JSONSerialization", reach: .ratio(0.35))
        ]
    }

    /// As in a program, what is committed has been made just before: the response is parsed, and the floor's entries
    /// are copied, in each round and outside of the time.
    func commit() async throws -> [BenchRow] {
        let (before, after) = try await committedContents()
        // The first commit since the cache was opened also says durably that it is not cleanly closed any more.
        func contender(isFirst: Bool) -> Measurement.Contender {
            {
                let path = freshPath("commit")
                defer { remove(path) }
                let cache = try RecordCache(folder: path, stamp: "bench")
                defer { try? cache.close() }
                if !isFirst, let key = AppliedKey("earlier") { try await cache.noteRejected(key) }
                let parsed = try ParsedResponse.parse(input.body, along: input.operation.layout)
                return try await Measurement.time { keep(try await cache.write(parsed, of: input.operation)) }
            }
        }
        let times = try await Measurement.times(
            rounds: rounds,
            [
                contender(isFirst: false),
                {
                    let path = freshPath("raw")
                    defer { remove(path) }
                    return try commitRaw(path, before, after.map { $0.copied() })
                },
                contender(isFirst: true),
            ])
        let first = String(format: "the first since it was opened: %.2f x", times[2].median / times[1].median)
        let count = after.reduce(0) { $0 + $1.entries.count }
        let bytes = after.reduce(0) { $0 + $1.byteCount }
        return [
            BenchRow(
                name: "commit", what: "those records to durable in an empty cache", times,
                floorName: "mdb_put of the same tables", reach: .ratio(1.5),
                note: "\(count) entries, \(bytes) bytes, \(after.count) tables; \(first)")
        ]
    }

    /// What the cache's file holds before and after the commit.
    private func committedContents() async throws -> (
        before: [RawEnvironment.Contents], after: [RawEnvironment.Contents]
    ) {
        let parsed = try ParsedResponse.parse(input.body, along: input.operation.layout)
        let path = freshPath("contents")
        defer { remove(path) }
        try RecordCache(folder: path, stamp: "bench").close()
        let before = try RawEnvironment(folder: "\(path)/1").contents()
        let cache = try RecordCache(folder: path, stamp: "bench")
        _ = try await cache.write(parsed, of: input.operation)
        try cache.close()
        return (before, try RawEnvironment(folder: "\(path)/1").contents())
    }

    private func commitRaw(
        _ path: String, _ before: [RawEnvironment.Contents], _ after: [RawEnvironment.Contents]
    ) throws -> Double {
        let raw = try RawEnvironment(folder: path)
        var tables: [String: MDB_dbi] = [:]
        for contents in after { tables[contents.name] = try raw.table(contents.name, isInteger: contents.isInteger) }
        func put(_ contents: [RawEnvironment.Contents]) throws {
            try raw.write { transaction in
                for contents in contents {
                    guard let table = tables[contents.name] else { continue }
                    let flags = contents.isInteger ? UInt32(MDB_APPEND) : 0
                    for entry in contents.entries {
                        try RawEnvironment.put(transaction, table, entry.key, entry.value, flags: flags)
                    }
                }
            }
        }
        try put(before)
        return try Measurement.time { try put(after) }
    }

    func recommit() async throws -> [BenchRow] {
        try await withInputCache { cache in
            let published = Mutex(0)
            cache.observe { _ in published.withLock { $0 += 1 } }
            let times = try await Measurement.times(
                rounds: rounds,
                [
                    {
                        var isEmpty = false
                        let time = try await Measurement.time {
                            let parsed = try ParsedResponse.parse(input.body, along: input.operation.layout)
                            isEmpty = try await cache.write(parsed, of: input.operation).changes.isEmpty
                        }
                        guard isEmpty else { throw BenchFailure("the same response again changed something") }
                        return time
                    },
                    serialization(),
                ])
            guard published.withLock({ $0 }) == 0 else { throw BenchFailure("the same response again was published") }
            return [
                BenchRow(
                    name: "recommit", what: "the same response bytes again, nothing changed", times,
                    floorName: "JSONSerialization", reach: .ratio(0.6), note: "publishes nothing")
            ]
        }
    }
}
