/// How long anything may take here before the demonstration gives up; a slow machine needs a fraction of it.
let patience = Duration.seconds(20)

/// Waits until `value` has one.
///
/// - Throws: `Mismatch` when the time is over, `CancellationError` when the task is cancelled.
func waiting<Value>(for claim: String, _ value: () throws -> Value?) async throws -> Value {
    let deadline = SuspendingClock.now + patience
    while true {
        if let value = try value() { return value }
        guard SuspendingClock.now < deadline else {
            throw Mismatch(claim: claim, expected: "it within \(patience)", found: "nothing")
        }
        try await Task.sleep(for: .milliseconds(1))
    }
}
