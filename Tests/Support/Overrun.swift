/// A wait that went on long after its deadline.
package struct Overrun: Error, CustomStringConvertible {
    package let time: Duration

    package var description: String { "The wait ended \(time) after its deadline." }
}

/// Throws `Overrun` where a deadline passed long ago: to be called after a wait until that deadline, whose error says
/// nothing of how long it took.
///
/// - Parameter slack: What a loaded machine may take besides; an overrun that is looked for takes longer.
package func requireNear(_ deadline: SuspendingClock.Instant, slack: Duration = .seconds(15)) throws {
    let time = deadline.duration(to: .now)
    if time > slack { throw Overrun(time: time) }
}

/// A wait that ended otherwise than it was to at its deadline.
package struct WrongEnd: Error, CustomStringConvertible {
    package let description: String
}

/// Gives `body` a deadline for what does not come about, and requires that it throws at that deadline: not before, and
/// not long after.
///
/// - Parameters:
///   - time: How far away the deadline is.
///   - holder: What the error must name: who holds what is waited for.
/// - Returns: The error.
@discardableResult
package func requireEnd(
    after time: Duration = .milliseconds(50), naming holder: String? = nil, slack: Duration = .seconds(15),
    _ body: (_ deadline: SuspendingClock.Instant) async throws -> Void
) async throws -> any Error {
    let deadline = SuspendingClock.now + time
    do { try await body(deadline) } catch {
        if .now < deadline { throw WrongEnd(description: "The wait ended before its deadline: \(error)") }
        try requireNear(deadline, slack: slack)
        if let holder, !"\(error)".contains(holder) {
            throw WrongEnd(description: "The error does not name \(holder): \(error)")
        }
        return error
    }
    throw WrongEnd(description: "The wait ended without an error.")
}
