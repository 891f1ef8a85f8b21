public import Foundation

/// How far a transfer has come.
public struct TransferProgress: Sendable, Hashable {
    /// Why a transfer is not under way.
    public enum WaitingReason: Sendable, Hashable {
        /// There is no network.
        case noNetwork
        /// The storage does not take the credentials: a user has to sign in.
        case notSignedIn
        /// The storage asked to be left alone until then.
        case throttled(until: Date)
        /// An attempt has failed, and the next begins then.
        case retry(at: Date)
        /// An executor outside of the program has the file, until then at most: `RunOptions.Transfers.background`.
        case handedOver(until: Date)
        /// No process carries the partition's transfers out.
        case noRunner
        /// The runner does not have the storage of this name; nil: the one that has no name.
        case noStorage(named: String?)
    }

    /// Where it stands.
    public var state: TransferStatus.State
    /// Bytes that have been moved, also of parts that are not whole. It may go back: the bytes of a part that failed
    /// are moved again.
    public var completed: Int64
    /// In bytes; nil of a download of which nothing is known yet.
    public var total: Int64?
    /// Why a pending one is not under way; nil where it is, or has its turn next, as far as this process knows.
    public var waiting: WaitingReason?
    /// Bytes per second over the last few seconds; nil while nothing moves in this process.
    public var speed: Double?

    /// From 0 to 1; nil where the total is not known.
    public var fraction: Double? {
        guard let total else { return nil }
        return total > 0 ? min(1, Double(completed) / Double(total)) : state == .done ? 1 : 0
    }

    /// The time that is left at this speed; nil where that cannot be told.
    public var remaining: Duration? {
        guard let total, let speed, speed > 0 else { return nil }
        return .seconds(Double(max(0, total - completed)) / speed)
    }

    /// Progress that is known.
    package init(state: TransferStatus.State, completed: Int64, total: Int64?, speed: Double? = nil) {
        self.state = state
        self.completed = completed
        self.total = total
        self.speed = speed
    }
}
