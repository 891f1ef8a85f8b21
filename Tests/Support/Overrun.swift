/// A wait that went on long after its deadline.
package struct Overrun: Error, CustomStringConvertible {
    package let time: Duration

    package var description: String { "The wait ended \(time) after its deadline." }
}

/// Throws `Overrun` where a deadline passed long ago: to be called after a wait until that deadline, whose error says
/// nothing of how long it took.
///
/// - Parameter slack: What a loaded machine may take besides; an overrun that is looked for takes longer.
package func requireNear(_ deadline: ContinuousClock.Instant, slack: Duration = .seconds(15)) throws {
    let time = deadline.duration(to: .now)
    if time > slack { throw Overrun(time: time) }
}
