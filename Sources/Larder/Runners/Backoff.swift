/// How long to wait between attempts: a random time up to a bound that doubles, so that many clients do not come back
/// at the same moment ("full jitter",
/// https://aws.amazon.com/builders-library/timeouts-retries-and-backoff-with-jitter/).
public struct Backoff: Sendable, Hashable {
    /// The bound after the first failure.
    public var first: Duration
    /// The greatest bound.
    public var cap: Duration

    /// One second at first, five minutes at most.
    public init(first: Duration = .seconds(1), cap: Duration = .seconds(300)) {
        self.first = first
        self.cap = cap
    }

    /// How long a server is left alone that asked for it: a day at most. What it says beyond is a mistake somewhere on
    /// the way, by which something queued would never be sent.
    static func heeded(_ asked: Duration?) -> Duration? { asked.map { min($0, .seconds(86_400)) } }

    /// - Parameters:
    ///   - attempt: From 1: how many have failed.
    ///   - fraction: Random, from 0 to 1.
    func pause(after attempt: Int, fraction: Double) -> Duration {
        let doublings = min(max(attempt - 1, 0), 40)
        let bound = min(first * Double(1 << doublings), cap)
        return bound * min(max(fraction, 0), 1)
    }
}
