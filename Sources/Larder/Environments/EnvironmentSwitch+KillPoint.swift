extension EnvironmentSwitch {
    /// A step that was just done; a test may kill the program there.
    package enum KillPoint: String, Sendable, CaseIterable {
        /// Nothing yet.
        case asked
        /// All of it is written, and not committed.
        case written
        /// The other partition is the current one.
        case committed
        /// This process's handles of the one that was left are parked.
        case parked
        /// The other one is open.
        case opened
    }
}
