import CLMDB
import Foundation
import LarderLMDB
import LarderRecords

extension Bench {
    /// Runs the body with the folder of a large store that was closed cleanly.
    private func withLargeStore<Result>(_ body: (String) async throws -> Result) async throws -> Result {
        let path = freshPath("large")
        defer { remove(path) }
        let cache = try RecordCache(folder: path, stamp: "bench")
        try await ItemShop().fill(cache, 0..<largest)
        try cache.close()
        return try await body(path)
    }

    func open() async throws -> [BenchRow] {
        try await withLargeStore { path in
            @Sendable func opening() throws -> Double {
                var opened: RecordCache?
                let time = try Measurement.time { opened = try RecordCache(folder: path, stamp: "bench") }
                try opened?.close()
                return time
            }
            let times = try await Measurement.times(
                rounds: rounds,
                [
                    { try opening() },
                    {
                        try ChildProcess.killSuspended(with: path)
                        return try opening()
                    },
                    {
                        var opened: RawEnvironment?
                        let time = try Measurement.time { opened = try RawEnvironment(folder: "\(path)/1") }
                        keep(opened)
                        return time
                    },
                ])
            let note = "\(largest) records"
            return [
                BenchRow(
                    name: "open", what: "opening a store after a clean close", [times[0], times[2]],
                    floorName: "mdb_env_open", reach: .excess(0.005), note: note),
                BenchRow(
                    name: "open-suspended", what: "opening a store after a kill while it was suspended",
                    [times[1], times[2]], floorName: "mdb_env_open", reach: .excess(0.005), note: note),
            ]
        }
    }

    /// A store that was killed in the midst of writing: no stamp says that its file is whole.
    func openKilled() async throws -> [BenchRow] {
        try await withLargeStore { path in
            let fragment = try ItemShop().fragment
            let (file, stamp) = ("\(path)/1/data.mdb", "\(path)/1/clean.stamp")
            @Sendable func firstRead() throws -> Double {
                var opened: RecordCache?
                let time = try Measurement.time {
                    let cache = try RecordCache(folder: path, stamp: "bench")
                    opened = cache
                    guard try cache.read(fragment, from: .object(key: ItemShop.key(77))).response.isComplete else {
                        throw BenchFailure("an item is missing")
                    }
                }
                try opened?.close()
                return time
            }
            let times = try await Measurement.times(
                rounds: min(rounds, 7),
                [
                    {
                        remove(stamp)
                        let time = try firstRead()
                        // The epoch that an unclean close asks for begins with a commit, after which a close is clean.
                        let cache = try RecordCache(folder: path, stamp: "bench")
                        try await ItemShop().fill(cache, 0..<1)
                        try cache.close()
                        return time
                    },
                    { try Measurement.time { keep(try PageWalk.run(path: file)) } },
                    { try firstRead() },
                ])
            let clean = String(format: "after a clean close %.2f ms", times[2].median * 1e3)
            return [
                BenchRow(
                    name: "open-killed", what: "opening after a kill in the midst of writing, and a first read", times,
                    floorName: "the page walk", reach: .most(0.05), note: "\(largest) records; \(clean)")
            ]
        }
    }

    func walk() async throws -> [BenchRow] {
        try await withLargeStore { path in
            let file = "\(path)/1/data.mdb"
            let size = try FileManager.default.attributesOfItem(atPath: file)[.size] as? Int ?? 0
            let times = try await Measurement.times(
                rounds: min(rounds, 7),
                [
                    { try Measurement.time { keep(try PageWalk.run(path: file)) } },
                    { try Measurement.time { keep(try readOnce(file)) } },
                ])
            return [
                BenchRow(
                    name: "walk", what: "the page walk of that file", times,
                    floorName: "reading the file once", reach: .ratio(3), note: "\(size) bytes, in the system's cache")
            ]
        }
    }

    private func readOnce(_ path: String) throws -> Int {
        let handle = try FileHandle(forReadingFrom: URL(filePath: path))
        defer { try? handle.close() }
        var buffer = [UInt8](repeating: 0, count: 1 << 18)
        var total = 0
        while true {
            let count = buffer.withUnsafeMutableBytes { bytes in
                Foundation.read(handle.fileDescriptor, bytes.baseAddress, bytes.count)
            }
            guard count > 0 else { return total }
            total += count
        }
    }

    func size() async throws -> [BenchRow] {
        let path = freshPath("size")
        defer { remove(path) }
        let cache = try RecordCache(folder: path, stamp: "bench")
        let parsed = try ParsedResponse.parse(input.body, along: input.operation.layout)
        _ = try await cache.write(parsed, of: input.operation)
        let before = try fileSize(currentGeneration(path))
        _ = try await cache.compact()
        try cache.close()
        let generation = try currentGeneration(path)
        let pages = try RawEnvironment(folder: generation).pages()
        return [
            BenchRow(
                name: "size", what: "bytes on disk after compacting", unit: .bytes,
                value: Double(try fileSize(generation)),
                floorName: "the JSON's bytes", floor: Double(input.body.count), reach: .ratio(1),
                note: "\(before) before; \(pages)")
        ]
    }

    /// The folder of the newest generation, which is the current one where no process compacts.
    private func currentGeneration(_ path: String) throws -> String {
        let numbers = try FileManager.default.contentsOfDirectory(atPath: path).compactMap(Int.init)
        guard let newest = numbers.max() else { throw BenchFailure("there is no generation in \(path)") }
        return "\(path)/\(newest)"
    }

    private func fileSize(_ folder: String) throws -> Int {
        try FileManager.default.attributesOfItem(atPath: "\(folder)/data.mdb")[.size] as? Int ?? 0
    }
}
