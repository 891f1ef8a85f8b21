import Dispatch
import Foundation
import LarderFiles
import Testing

/// The value that every read of a cache begins with.
@Suite("Values that threads look at all the time")
struct ReadMostlyTests {
    private final class Shared: Sendable {
        let value = ReadMostly(0)
        let found = Locked<Set<Int>>([])
    }

    @Test("Once it is replaced, every thread finds the new one")
    func replaced() {
        for number in 1...50 {
            let shared = Shared()
            shared.value.replace(with: number)
            let threads = DispatchGroup()
            for _ in 0..<20 {
                threads.enter()
                Thread.detachNewThread {
                    _ = shared.found.withLock { $0.insert(shared.value.value) }
                    threads.leave()
                }
            }
            #expect(threads.wait(timeout: .now() + 60) == .success)
            #expect(shared.found.withLock { $0 } == [number])
        }
    }
}
