extension MutationRunner {
    /// A step that was just done; a test may kill the program there.
    package enum KillPoint: String, Sendable, CaseIterable {
        /// The attempt has begun; nothing is sent yet.
        case begun
        /// The server has answered; the runner has not noted it yet.
        case received
        /// The answer is noted.
        case acknowledged
        /// The result is in the cache.
        case stored
        /// The outcome is noted, and the mutation is gone.
        case settled
    }
}
