/// What a switch did.
package struct SwitchReport: Sendable, Hashable {
    /// How many mutations and transfers a partition has.
    package struct Work: Sendable, Hashable {
        package var pending = 0
        package var inFlight = 0
        package var acknowledged = 0
        package var deadLetters = 0

        /// Transfers that are yet to be done, paused ones included.
        package var transfers = 0
        package var failedTransfers = 0

        package init(_ counts: [MutationState: Int] = [:], transfers: [TransferState: Int] = [:]) {
            pending = counts[.pending] ?? 0
            inFlight = counts[.inFlight] ?? 0
            acknowledged = counts[.acknowledged] ?? 0
            deadLetters = counts[.deadLetter] ?? 0
            self.transfers = [.pending, .running, .paused].reduce(0) { $0 + (transfers[$1] ?? 0) }
            failedTransfers = transfers[.failed] ?? 0
        }
    }

    /// A partition and what it has to do, before and after.
    package struct Side: Sendable, Hashable {
        package var partition: StoredPartition
        package var before: Work
        package var after: Work
    }

    /// Nil where there was no current partition.
    package var from: Side?
    /// Nil where none is the current one now.
    package var to: Side?
    /// False where it was the current one already, and nothing was left.
    package var isSwitch: Bool
    /// How many mutations went along.
    package var carried = 0
    /// How many were given up.
    package var discarded = 0
    package var carriedTransfers = 0
    package var discardedTransfers = 0
}
