public import Foundation
import Synchronization

/// A time of day that stands still until a test moves it.
///
/// ```swift
/// let clock = TestClock()
/// var options = Store.Options()
/// options.now = { clock.now }
/// …
/// clock.advance(by: .seconds(3600))   // cached answers are an hour older, and what was to wait so long is due
/// ```
///
/// A store notes and compares times by it: ages, when a mutation expires, pauses that a server asked for, and when
/// credentials end. Deadlines of calls, `within:` and `timeout`, pass as real time does.
public final class TestClock: Sendable {
    private let time: Mutex<Date>

    /// A clock that shows a time; the same in each run unless it is given.
    public init(_ now: Date = Date(timeIntervalSince1970: 1_800_000_000)) { time = Mutex(now) }

    /// The time that it shows. A test may set it, also to an earlier one.
    public var now: Date {
        get { time.withLock { $0 } }
        set { time.withLock { $0 = newValue } }
    }

    /// Moves the clock, back where the time is negative.
    public func advance(by time: Duration) { self.time.withLock { $0 += time / .seconds(1) } }
}
