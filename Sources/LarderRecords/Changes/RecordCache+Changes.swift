import LarderLMDB

extension RecordCache {
    /// The newest change, to ask from later.
    package var position: ChangePosition {
        get throws(RecordError) {
            try translated {
                try generations.withSnapshot { generation, transaction in
                    // Commits with numbers that a caller noted may be lost: the next commit starts another epoch.
                    try GenerationState.stored(transaction, generation.tables).position
                }
            }
        }
    }

    /// What was changed after a position, by whatever process.
    ///
    /// - Complexity: O(n) in the changes since.
    package func changes(since position: ChangePosition) throws(RecordError) -> ChangesSince {
        try translated {
            try generations.withSnapshot { generation, transaction in
                let state = try GenerationState.stored(transaction, generation.tables)
                let found = try generation.reliableChanges(since: position, state, transaction)
                return found.map { .changes($0) } ?? .everything
            }
        }
    }
}

extension Generation {
    /// As `changes`; nil as well where the position may be of a commit that was lost: until the next one starts an epoch.
    func reliableChanges(
        since position: ChangePosition, _ state: GenerationState,
        _ transaction: borrowing some RecordSnapshot & ~Copyable
    ) throws -> [(number: UInt64, set: ChangeSet)]? {
        guard !mayHaveLostCommits.load(ordering: .relaxed) else { return nil }
        return try changes(since: position, state, transaction)
    }

    /// What was changed after a position, the oldest first, each with its number; nil where the log does not tell.
    func changes(
        since position: ChangePosition, _ state: GenerationState,
        _ transaction: borrowing some RecordSnapshot & ~Copyable
    ) throws -> [(number: UInt64, set: ChangeSet)]? {
        guard position.epoch == state.epoch, position.number &+ 1 >= state.firstChange,
            position.number <= state.lastChange
        else { return nil }
        var found: [(number: UInt64, set: ChangeSet)] = []
        guard position.number < state.lastChange else { return found }
        var cursor = try transaction.cursor(in: tables.changes)
        var entry = try cursor.seek(atLeast: position.number + 1)
        while let current = entry {
            let number = current.integerKey
            // Safe: the set is read while the bytes are lent, and holds nothing of them.
            let set = unsafe try current.value.withUnsafeBytes { bytes throws(RecordError) in
                unsafe try ChangeSet(sealed: bytes, number: number)
            }
            found.append((number, set))
            entry = try cursor.next()
        }
        guard found.count == Int(clamping: state.lastChange - position.number) else { throw ChangeSet.damaged }
        return found
    }
}

extension ChangeSet {
    /// From the table `changes`.
    ///
    /// Safe: the caller lends the bytes for the length of the call; `SealedText` looks how many they are.
    init(sealed bytes: UnsafeRawBufferPointer, number: UInt64) throws(RecordError) {
        guard unsafe SealedText.isSound(bytes, seed: number), let text = unsafe SealedText.text(bytes) else {
            throw ChangeSet.damaged
        }
        self = unsafe try ChangeSet(encoded: text)
    }
}
