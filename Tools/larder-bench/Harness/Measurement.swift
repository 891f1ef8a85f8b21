/// Times of several contenders, taken in turns so that whatever slows the machine slows all of them.
struct Measurement {
    /// What is timed: does its work once and answers for how long, in seconds.
    typealias Contender = () async throws -> Double

    /// What came of the rounds of one contender, in seconds.
    struct Times {
        var median: Double
        /// On a machine that does other things too, the nearest to what the work itself takes.
        var fastest: Double

        func dividing(by count: Double) -> Times { Times(median: median / count, fastest: fastest / count) }
    }

    /// How long people waited, one by one, in seconds: where the longest waits matter, and not the middle one.
    struct Waits {
        private let sorted: [Double]

        init(_ times: [Double]) { sorted = times.sorted() }

        var count: Int { sorted.count }
        var longest: Double { sorted.last ?? 0 }
        var half: Double { atMost(of: 50) }
        var ninetyNine: Double { atMost(of: 99) }

        /// What so many of a hundred did not exceed.
        private func atMost(of hundred: Int) -> Double {
            sorted.isEmpty ? 0 : sorted[min(sorted.count * hundred / 100, sorted.count - 1)]
        }
    }

    /// Runs each once to warm up, unless that would take too long, then all in turns.
    static func times(
        rounds: Int, warmingUp: Bool = true, _ contenders: [Contender]
    ) async throws -> [Times] {
        if warmingUp { for contender in contenders { _ = try await contender() } }
        var times: [[Double]] = Array(repeating: [], count: contenders.count)
        for _ in 0..<max(rounds, 1) {
            for (index, contender) in contenders.enumerated() { times[index].append(try await contender()) }
        }
        return times.map { times in
            let sorted = times.sorted()
            return Times(median: sorted[sorted.count / 2], fastest: sorted[0])
        }
    }

    /// How long one of `count` runs of the body takes on average.
    static func time(repeating count: Int = 1, _ body: () throws -> Void) rethrows -> Double {
        let start = SuspendingClock.now
        for _ in 0..<count { try body() }
        return seconds(since: start) / Double(count)
    }

    static func time(_ body: () async throws -> Void) async rethrows -> Double {
        let start = SuspendingClock.now
        try await body()
        return seconds(since: start)
    }

    private static func seconds(since start: SuspendingClock.Instant) -> Double {
        let (seconds, attoseconds) = (SuspendingClock.now - start).components
        return Double(seconds) + Double(attoseconds) * 1e-18
    }
}

/// Keeps the compiler from leaving out work whose result is not used.
@inline(never)
@_optimize(none)
func keep<T>(_ value: T) {}
