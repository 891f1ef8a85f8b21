import LarderOperations

/// How long to wait between attempts: a random time up to a bound that doubles, so that many clients do not come back
/// at the same moment ("full jitter",
/// https://aws.amazon.com/builders-library/timeouts-retries-and-backoff-with-jitter/).
package struct Backoff: Sendable, Hashable {
    /// The bound after the first failure.
    package var first: Duration
    /// The greatest bound; a day at most counts.
    package var cap: Duration

    /// One second at first, five minutes at most.
    package init(first: Duration = .seconds(1), cap: Duration = .seconds(300)) {
        self.first = first
        self.cap = cap
    }

    /// The longest pause of all, also where a server asks for more: a day. What it says beyond is a mistake somewhere
    /// on the way, by which something queued would never be sent.
    private static let longest = Duration.milliseconds(StoredPause.longest)

    /// The greater of the pause that grows with failures and the one that the server asked for: a server that asks for
    /// none, or for one that is over, is not asked again at once for ever.
    ///
    /// - Parameters:
    ///   - attempt: From 1: how many have failed.
    ///   - asked: How long the server asked to be left alone.
    ///   - fraction: Random, from 0 to 1.
    func pause(after attempt: Int, asked: Duration? = nil, fraction: Double) -> Duration {
        let doublings = min(max(attempt - 1, 0), 40)
        let bound = min(first * Double(1 << doublings), cap)
        return min(max(bound * min(max(fraction, 0), 1), asked ?? .zero), Self.longest)
    }
}

extension Duration {
    var seconds: Double { Double(components.seconds) + Double(components.attoseconds) * 1e-18 }
}
