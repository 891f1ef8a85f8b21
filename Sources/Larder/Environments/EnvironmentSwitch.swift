import LarderOperations

/// What a switch did, and where the program works now.
public struct EnvironmentSwitch: Sendable {
    /// How many mutations and transfers a partition has.
    public struct Work: Sendable, Hashable {
        /// Mutations that wait for their turn.
        public let pending: Int
        /// Mutations that the server may have taken.
        public let inFlight: Int
        /// Mutations whose answers are yet to be stored.
        public let answered: Int
        /// Mutations that were set aside.
        public let setAside: Int
        /// Transfers that are yet to be done, paused ones included.
        public let transfers: Int
        /// Transfers that have failed.
        public let failedTransfers: Int
    }

    /// A partition's work, before and after.
    public struct Side: Sendable, Hashable {
        /// Whose they are.
        public let partition: PartitionIdentity
        /// As it was.
        public let before: Work
        /// As it is.
        public let after: Work
    }

    /// The current partition.
    public let partition: Partition
    /// The partition that was left; nil where there was nothing to leave, or it was the current one already.
    public let left: Side?
    /// The partition that was entered.
    public let entered: Side
    /// How many mutations went along.
    public let carried: Int
    /// How many were given up.
    public let discarded: Int
    /// How many transfers went along.
    public let carriedTransfers: Int
    /// How many transfers were given up.
    public let discardedTransfers: Int
}

extension EnvironmentSwitch.Side {
    init(_ side: SwitchReport.Side) {
        partition = PartitionIdentity(side.partition)
        before = .init(side.before)
        after = .init(side.after)
    }
}

extension EnvironmentSwitch.Work {
    init(_ work: SwitchReport.Work) {
        pending = work.pending
        inFlight = work.inFlight
        answered = work.acknowledged
        setAside = work.deadLetters
        transfers = work.transfers
        failedTransfers = work.failedTransfers
    }
}
