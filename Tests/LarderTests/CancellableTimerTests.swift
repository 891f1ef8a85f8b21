import Foundation
import LarderTestSupport
import Synchronization
import Testing

@testable import Larder

@Suite("Waits that can be cancelled", .timeLimit(.minutes(10)))
struct CancellableTimerTests {
    @Test("A wait ends when its time has come, and not before", arguments: [0, 1, 30])
    func comes(milliseconds: Int) async {
        let deadline = SuspendingClock.now + .milliseconds(milliseconds)
        #expect(await CancellableTimer.wait(until: deadline))
        #expect(.now >= deadline)
    }

    @Test("A wait ends when its task is cancelled, before or meanwhile")
    func cancelled() async {
        let tasks = (0..<200).map { _ in Task { await CancellableTimer.wait(until: .now + .seconds(3600)) } }
        for task in tasks { task.cancel() }
        for task in tasks { #expect(await !task.value) }
    }

    @Test("A wait looks once a minute how much of it is left, which a machine's sleep may have made less")
    func slept() async throws {
        #expect(CancellableTimer.longest == .seconds(60))
        let looks = Atomic(0)
        let begun = SuspendingClock.now
        let hasCome = await CancellableTimer.wait(atMost: .milliseconds(1)) {
            looks.add(1, ordering: .relaxed).oldValue == 0 ? .seconds(3600) : .zero
        }
        #expect(hasCome && looks.load(ordering: .relaxed) == 2)
        try requireNear(begun)
    }

    #if os(Linux)
    @Test("Waits that are cancelled an hour before their time leave nothing in memory")
    func memory() async throws {
        await waits(2_000)
        // Other tests use memory at the same time: what these waits left would be there each time.
        var least = Int.max
        for _ in 0..<5 where least > 8 << 20 {
            let before = try residentBytes()
            for _ in 0..<20 { await waits(2_000) }
            least = min(least, try residentBytes() - before)
        }
        #expect(least <= 8 << 20, "40,000 waits have left \(least) bytes")
    }

    /// So many side by side, which have all begun when they are cancelled.
    private func waits(_ count: Int) async {
        let begun = Begun()
        await withDiscardingTaskGroup { group in
            for _ in 0..<count {
                group.addTask {
                    begun.count.add(1, ordering: .relaxed)
                    await CancellableTimer.wait(until: .now + .seconds(3600))
                }
            }
            while begun.count.load(ordering: .relaxed) < count { await Task.yield() }
            group.cancelAll()
        }
    }

    private final class Begun: Sendable { let count = Atomic(0) }

    private func residentBytes() throws -> Int {
        let fields = try String(contentsOfFile: "/proc/self/statm", encoding: .utf8).split(separator: " ")
        return try #require(Int(fields[1])) * 4096
    }
    #endif
}
