/// Waits for an answer for a time. A body that does not answer in time, or before the calling task is cancelled, goes on
/// unheard.
///
/// - Parameters:
///   - time: Nil for as long as it takes.
///   - executor: For a body that may block its thread.
func answering<Answer: Sendable>(
    within time: Duration?, on executor: (any TaskExecutor)? = nil,
    _ body: @escaping @Sendable () async throws -> Answer
) async throws -> Answer {
    let answers = AsyncThrowingStream<Answer, any Error> { continuation in
        let asking = Task(executorPreference: executor) {
            do {
                continuation.yield(try await body())
                continuation.finish()
            } catch { continuation.finish(throwing: error) }
        }
        let waiting = time.map { time in
            Task {
                try await Task.sleep(for: time)
                continuation.finish(throwing: LarderError(.cancelled, "No answer came within \(time)"))
            }
        }
        continuation.onTermination = { _ in
            asking.cancel()
            waiting?.cancel()
        }
    }
    for try await answer in answers { return answer }
    throw LarderError(.cancelled, "The task was cancelled")
}
