import LarderLMDB

extension RecordCache {
    /// Notes that a mutation was rejected, or that its answer is not stored: its optimistic layer is gone with that.
    ///
    /// Survives power loss when it returns. Where something is known of the mutation already, that stays, and
    /// `Commit.earlier` says what.
    @discardableResult
    package func noteRejected(
        _ key: AppliedKey, deadline: SuspendingClock.Instant? = nil
    ) async throws(RecordError) -> Commit {
        try await write(
            [.note(key, .rejected, time: options.now())], synchronizing: true, deadline: deadline)
    }

    /// What is known of a mutation; nil where nothing is.
    package func applied(_ key: AppliedKey) throws(RecordError) -> AppliedEntry? {
        try translated {
            try generations.withSnapshot { (generation, transaction) throws in
                try generation.tables.applied(key.text, transaction)
            }
        }
    }

    /// Whether the cache holds a mutation's answer, or knows that there will be none.
    package func isApplied(_ key: AppliedKey) throws(RecordError) -> Bool { try applied(key) != nil }

    /// Everything that is known of mutations, in the order of their keys.
    ///
    /// - Complexity: O(n) in the mutations.
    package func applied() throws(RecordError) -> [AppliedEntry] {
        try translated {
            try generations.withSnapshot { (generation, transaction) throws in
                try generation.tables.allApplied(transaction)
            }
        }
    }

    /// Forgets mutations. Pass only mutations that can neither be answered again nor be in the layers of any process.
    @discardableResult
    package func forgetApplied(
        _ keys: [AppliedKey], deadline: SuspendingClock.Instant? = nil
    ) async throws(RecordError) -> Commit {
        try await write([.forget(keys)], deadline: deadline)
    }
}
