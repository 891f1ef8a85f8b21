import Larder
import LarderFiles
import LarderHTTP

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// The time by which requests to a server are signed: this machine's, or the server's own where that has refused a
/// request and says another time.
final class SigningClock: Sendable {
    private struct State {
        /// Seconds that the server's clock is ahead of this machine's.
        var offset = 0.0
        /// The same, as the server has said it last.
        var told: Double?
    }

    private let wallClock: @Sendable () -> Date
    private let state = Locked(State())

    /// In seconds: a server overlooks five minutes, and its answers say whole seconds and take their time to come.
    private static let overlooked = 240.0

    init(wallClock: @escaping @Sendable () -> Date) { self.wallClock = wallClock }

    /// Seconds that requests are signed ahead of this machine's clock.
    var offset: Double { state.withLock { $0.offset } }
    /// The time by which a request is signed.
    var now: Date { wallClock().addingTimeInterval(offset) }

    /// Notes what time the server has, from the field `Date` of an answer. Signatures do not follow it yet.
    func hear(_ date: String?) {
        guard let seconds = date.flatMap(HTTPDate.secondsSince1970) else { return }
        let told = Double(seconds) - wallClock().timeIntervalSince1970
        state.withLock { $0.told = told }
    }

    /// Takes over the server's time after a refusal.
    ///
    /// - Parameter offset: The clock's, when the refused request was signed.
    /// - Returns: Whether it is another than that request was signed by.
    func correct(from offset: Double) -> Bool {
        state.withLock { state in
            guard let told = state.told, abs(told - offset) > Self.overlooked else { return false }
            state.offset = told
            return true
        }
    }
}
