/// What something took, and what came of it.
func timed<Result>(
    isolation: isolated (any Actor)? = #isolation, _ work: () async throws -> Result
) async rethrows -> (result: Result, duration: Duration) {
    let start = ContinuousClock.now
    let result = try await work()
    return (result, start.duration(to: .now))
}

/// The median of what something takes.
func median(of times: Int, _ work: () throws -> Void) rethrows -> Duration {
    var durations: [Duration] = []
    for _ in 0..<max(1, times) {
        let start = ContinuousClock.now
        try work()
        durations.append(start.duration(to: .now))
    }
    durations.sort()
    return durations[durations.count / 2]
}
