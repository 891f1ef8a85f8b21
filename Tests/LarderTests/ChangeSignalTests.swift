import Foundation
import LarderTestSupport
import Testing

@testable import Larder

/// Runs the steps of its tasks one by one, in the order in which they can be taken.
private final class StepwiseExecutor: TaskExecutor {
    private let queue = DispatchQueue(label: "larder.test.stepwise")

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        queue.async { job.runSynchronously(on: self.asUnownedTaskExecutor()) }
    }
}

@Suite("Waits for a signal", .timeLimit(.minutes(10)))
struct ChangeSignalTests {
    @Test("Of many waits each ends at its own time, whichever came first, and none before")
    func deadlines() async throws {
        let signal = ChangeSignal()
        let count = signal.count
        let begun = SuspendingClock.now
        let times = [400, 50, 300, 100, 350, 50, 200].map { Duration.milliseconds($0) }
        let waits = times.map { time in
            Task { () -> Duration in
                let start = SuspendingClock.now
                await signal.wait(past: count, for: time)
                return .now - start
            }
        }
        for (time, wait) in zip(times, waits) {
            let waited = await wait.value
            #expect(waited >= time)
        }
        try requireNear(begun + .milliseconds(400))
    }

    @Test("A notification ends all waits, with a time or without, and a cancellation its own")
    func notified() async {
        let signal = ChangeSignal()
        let count = signal.count
        let waits = (0..<100).map { number in
            Task { await signal.wait(past: count, for: number.isMultiple(of: 2) ? nil : .seconds(3_600)) }
        }
        waits[7].cancel()
        await waits[7].value
        #expect(signal.count == count)
        signal.notify()
        for wait in waits { await wait.value }
        // What was notified before is not waited for.
        await signal.wait(past: count, for: nil)
    }

    @Test("A notification wakes the tasks that wait in the order in which they came")
    func order() async {
        let signal = ChangeSignal()
        let (count, executor) = (signal.count, StepwiseExecutor())
        let (woken, waking) = AsyncStream.makeStream(of: Int.self)
        var waits: [Task<Void, Never>] = []
        for number in 0..<20 {
            waits.append(
                Task(executorPreference: executor) {
                    await signal.wait(past: count, for: nil)
                    waking.yield(number)
                })
        }
        // Its turn comes when all of them wait.
        await Task(executorPreference: executor) { signal.notify() }.value
        for wait in waits { await wait.value }
        waking.finish()
        #expect(await woken.reduce(into: []) { $0.append($1) } == Array(0..<20))
    }

    @Test("A signal whose waits have ended goes with its last holder, however long they might have lasted")
    func released() async throws {
        weak var gone: ChangeSignal?
        do {
            let signal = ChangeSignal()
            gone = signal
            let wait = Task { [count = signal.count] in await signal.wait(past: count, for: .seconds(3_600)) }
            try await Task.sleep(for: .milliseconds(20))
            wait.cancel()
            await wait.value
        }
        let deadline = SuspendingClock.now + .seconds(60)
        while gone != nil, .now < deadline { try await Task.sleep(for: .milliseconds(2)) }
        #expect(gone == nil)
    }
}
