/// How far a transfer has come.
public struct TransferProgress: Sendable, Hashable {
    /// Where it stands.
    public var state: TransferStatus.State
    /// Bytes that have been moved, also of parts that are not whole. It may go back: the bytes of a part that failed
    /// are moved again.
    public var completed: Int64
    /// In bytes; nil of a download of which nothing is known yet.
    public var total: Int64?
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
    public init(state: TransferStatus.State, completed: Int64, total: Int64?, speed: Double? = nil) {
        self.state = state
        self.completed = completed
        self.total = total
        self.speed = speed
    }
}
