import Foundation
import LarderRecords
import Synchronization

/// For how long single writes wait while a large cache is compacted, checked or backed up, and how much memory that
/// takes.
extension Bench {
    func upkeepWaits() async throws -> [BenchRow] {
        let path = freshPath("upkeep")
        defer { remove(path) }
        let cache = try RecordCache(folder: path, stamp: "bench")
        try await ItemShop().fill(cache, 0..<largest)
        let alone = Measurement.Waits(
            try await writing(into: cache) { try await Task.sleep(for: .seconds(1)) })
        var rows: [BenchRow] = []
        let repeats = min(max(rounds / 7, 1), 3)
        rows += try await waits("check", "checked", alone, repeats, cache) {
            let report = try await onThread { try cache.check() }
            guard report.isSound else { throw BenchFailure("the cache is not sound") }
        }
        rows += try await waits("compact", "compacted", alone, repeats, cache) {
            try await cache.compact(deadline: .now + .seconds(60))
        }
        rows += try await backupWaits(path, alone, repeats, cache)
        guard try await onThread({ try cache.check().isSound }) else { throw BenchFailure("the cache is not sound") }
        try cache.close()
        return rows
    }

    private func backupWaits(
        _ path: String, _ alone: Measurement.Waits, _ repeats: Int, _ cache: RecordCache
    ) async throws -> [BenchRow] {
        let child = Mutex<Int32?>(nil)
        return try await waits(
            "backup", "backed up by another process", alone, repeats, cache,
            memory: { child.withLock { $0 }.flatMap { Memory.own(of: $0) } }
        ) {
            let target = freshPath("backup")
            defer { remove(target) }
            let process = try ChildProcess.own(["copy-cache", path, target])
            try process.run()
            child.withLock { $0 = process.processIdentifier }
            try await onThread { process.waitUntilExit() }
            child.withLock { $0 = nil }
            guard process.terminationStatus == 0 else { throw BenchFailure("the copy failed") }
        }
    }

    /// - Parameter memory: That of the process which works.
    private func waits(
        _ name: String, _ what: String, _ alone: Measurement.Waits, _ repeats: Int, _ cache: RecordCache,
        memory: @escaping @Sendable () -> Int? = { Memory.own }, _ work: @Sendable @escaping () async throws -> Void
    ) async throws -> [BenchRow] {
        var times: [Double] = []
        var whole: [Double] = []
        var growth = 0
        for _ in 0..<repeats {
            let before = name == "backup" ? 0 : memory() ?? 0
            let most = Atomic(before)
            let isDone = Atomic(false)
            async let sampled: Void = onThread {
                while !isDone.load(ordering: .relaxed) {
                    most.max(memory() ?? 0, ordering: .relaxed)
                    usleep(5_000)
                }
            }
            let start = SuspendingClock.now
            let end = Mutex(start)
            times += try await writing(into: cache) {
                try await work()
                end.withLock { $0 = .now }
            }
            isDone.store(true, ordering: .relaxed)
            try await sampled
            let taken = start.duration(to: end.withLock { $0 }).components
            whole.append(Double(taken.seconds) + Double(taken.attoseconds) * 1e-18)
            growth = max(growth, most.load(ordering: .relaxed) - before)
        }
        whole.sort()
        var wait = BenchRow(
            name: "\(name)-wait", what: "one write while a cache of \(largest) records is \(what)",
            Measurement.Waits(times), floorName: "when nothing else goes on", floor: alone, reach: .most(0.01))
        wait.note = String(format: "the whole takes %.2f s", whole[whole.count / 2])
        return [
            wait,
            BenchRow(
                name: "\(name)-memory", what: "most memory of its own above what there was before", unit: .bytes,
                value: Double(growth), reach: .most(64 * 1_048_576)),
        ]
    }
}

/// Runs what blocks on a thread of its own.
private func onThread<Answer: Sendable>(_ body: @escaping @Sendable () throws -> Answer) async throws -> Answer {
    try await withCheckedThrowingContinuation { continuation in
        Thread.detachNewThread { continuation.resume(with: Result { try body() }) }
    }
}
