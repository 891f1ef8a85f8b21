/// Waits for something that other tasks or processes bring about, by asking every 2 ms.
///
/// - Parameter time: Long enough for whatever is waited for, beside all other tests on a slow machine.
/// - Throws: `WrongEnd` with the place of the call once `time` has passed. The error must reach the test: no issue is
///   recorded where its thrower is a server or a task whose errors are dropped.
package func eventually(
    within time: Duration = .seconds(120), fileID: String = #fileID, line: Int = #line,
    isolation: isolated (any Actor)? = #isolation, _ isSo: () async throws -> Bool
) async throws {
    let deadline = SuspendingClock.now + time
    while try await !isSo() {
        guard .now < deadline else {
            throw WrongEnd(description: "\(fileID):\(line): what was waited for did not come about in \(time).")
        }
        try await Task.sleep(for: .milliseconds(2))
    }
}
