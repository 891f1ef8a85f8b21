/// How long to try again what other processes were quicker with, who compact or clear meanwhile: some times however long
/// one takes, and then until a deadline.
struct Retries {
    private static let fewest = 8
    private let deadline: ContinuousClock.Instant
    private var count = 1

    init(until deadline: ContinuousClock.Instant) { self.deadline = deadline }

    /// Whether to try once more.
    mutating func goOn() -> Bool {
        count += 1
        return count <= Self.fewest || .now < deadline
    }
}
