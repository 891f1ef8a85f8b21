/// What something took, and what came of it.
func timed<Result>(
    isolation: isolated (any Actor)? = #isolation, _ work: () async throws -> Result
) async rethrows -> (result: Result, duration: Duration) {
    let start = SuspendingClock.now
    let result = try await work()
    return (result, start.duration(to: .now))
}

/// The median of what something takes.
///
/// - Throws: What `work` throws, and `CancellationError` when the task is cancelled.
func median(of times: Int, _ work: () throws -> Void) throws -> Duration {
    var durations: [Duration] = []
    for _ in 0..<max(1, times) {
        try Task.checkCancellation()
        let start = SuspendingClock.now
        try work()
        durations.append(start.duration(to: .now))
    }
    durations.sort()
    return durations[durations.count / 2]
}
