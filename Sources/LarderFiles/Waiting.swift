#if canImport(Darwin)
import Darwin
#elseif canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

/// Asks again and again, with growing pauses, until the answer is not nil or the deadline has passed.
package func poll<Answer, Failure: Error>(
    until deadline: ContinuousClock.Instant, _ ask: () throws(Failure) -> Answer?
) throws(Failure) -> Answer? {
    var pause: UInt32 = 50
    while true {
        if let answer = try ask() { return answer }
        let left = ContinuousClock.now.duration(to: deadline)
        guard left > .zero else { return nil }
        let microseconds = left.components.seconds > 0 ? 1_000_000 : left.components.attoseconds / 1_000_000_000_000
        usleep(min(pause, UInt32(clamping: microseconds) + 1))
        pause = min(pause * 2, 10_000)
    }
}

/// This process's number.
package var processID: Int32 { getpid() }

/// Lets another thread have the processor, if one wants it.
package func yieldProcessor() { sched_yield() }
