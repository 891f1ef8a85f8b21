#if canImport(Darwin)
import Darwin
#elseif canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

/// Asks again and again, with growing pauses, until the answer is not nil or the deadline has passed.
package func poll<Answer, Failure: Error>(
    until deadline: SuspendingClock.Instant, _ ask: () throws(Failure) -> Answer?
) throws(Failure) -> Answer? {
    var pause: UInt32 = 50
    while true {
        if let answer = try ask() { return answer }
        let left = SuspendingClock.now.duration(to: deadline)
        guard left > .zero else { return nil }
        let microseconds = left.components.seconds > 0 ? 1_000_000 : left.components.attoseconds / 1_000_000_000_000
        usleep(min(pause, UInt32(clamping: microseconds) + 1))
        pause = min(pause * 2, 10_000)
    }
}

/// The wall clock's time, UTC, which may be set to another while the process runs.
package func millisecondsSince1970() -> Int64 {
    var time = timeval()
    gettimeofday(&time, nil)
    return Int64(time.tv_sec) * 1000 + Int64(time.tv_usec) / 1000
}

/// This process's number.
package var processID: Int32 { getpid() }

/// Whether this process could map so many bytes more than it has mapped now.
package func hasAddressSpace(for bytes: Int) -> Bool {
    guard let place = mmap(nil, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANON | MAP_NORESERVE, -1, 0),
        place != UnsafeMutableRawPointer(bitPattern: -1)
    else { return false }
    // Nothing was ever in it.
    munmap(place, bytes)
    return true
}

/// Lets another thread have the processor, if one wants it.
package func yieldProcessor() { sched_yield() }
