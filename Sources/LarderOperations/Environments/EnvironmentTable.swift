package import Foundation
import GRDB

/// The environments that a store knows, their partitions, and which of these is the current one.
package struct EnvironmentTable: Sendable {
    let database: OperationsDatabase
    /// The partition of a program that named no environment, where it has a cache. It has no row before something was
    /// queued there, and an environment that succeeds it takes it over all the same.
    private var unnamed: String?

    init(database: OperationsDatabase) { self.database = database }

    /// The same table, for a store that has such a cache.
    package func knowing(unnamed name: String?) -> EnvironmentTable {
        var table = self
        table.unnamed = name
        return table
    }

    /// In the order of their names.
    package func list() throws(OperationsError) -> [StoredEnvironment] { try read { try $0.environments() } }

    package func find(_ name: String) throws(OperationsError) -> StoredEnvironment? {
        try read { try $0.environment(name) }
    }

    /// All of them, in the order in which they were made.
    package func partitions() throws(OperationsError) -> [StoredPartition] { try read { try $0.partitions() } }

    /// The partition of this name.
    package func partition(_ name: String) throws(OperationsError) -> StoredPartition? {
        try read { try $0.partition(name) }
    }

    /// The partition of an environment and a user.
    package func partition(
        of environment: String, _ user: Destination.User
    ) throws(OperationsError) -> StoredPartition? {
        try read { try $0.partition(of: environment, user) }
    }

    /// Nil where no environment was ever chosen.
    package func current() throws(OperationsError) -> CurrentPartition? { try read { try $0.current() } }

    /// The partition that a destination leads to, where it is the current one and nothing at all has to be written.
    package func standing(_ destination: Destination) throws(OperationsError) -> StoredPartition? {
        try read { transaction in
            let name: String
            switch destination.environment {
            case .stored(let stored): name = stored
            case .draft(let draft):
                guard try transaction.isStored(draft) else { return nil }
                name = draft.name
            }
            guard let current = try transaction.current()?.partition,
                try transaction.partition(of: name, destination.user)?.name == current.name
            else { return nil }
            return current
        }
    }

    /// Stores an environment. See `EnvironmentDraft.predecessor`.
    ///
    /// - Throws: `.environmentChanged`, `.occupied`.
    package func put(_ draft: EnvironmentDraft, now: Date) async throws(OperationsError) {
        try await write { try $0.put(draft, mayUnprotect: true, now: now) }
    }

    /// Forgets what locates a backend.
    ///
    /// - Throws: `.unknownEnvironment`; `.environmentInUse` where it is the current one, or has partitions.
    package func remove(_ name: String) async throws(OperationsError) { try await write { try $0.remove(name) } }

    /// Makes a partition the current one: in one transaction, wholly or not at all.
    ///
    /// - Parameter work: What becomes of the mutations of the one that is left; nil where none may be left.
    /// - Throws: `.otherPartition` where another is the current one and none may be left; `.unknownEnvironment`,
    ///   `.environmentChanged`, `.occupied`.
    @discardableResult
    package func enter(
        _ destination: Destination, leaving work: PendingWork?, now: Date,
        beforeCommit: @escaping @Sendable () -> Void = {}
    ) async throws(OperationsError) -> SwitchReport {
        try await write { transaction in
            let report = try transaction.enter(destination, leaving: work, now: now)
            beforeCommit()
            return report
        }
    }

    /// As `enter`, and stores the credentials of the user who is entered: both, or neither. The mutations and transfers
    /// of another user than a guest are parked, whatever `work` says.
    ///
    /// - Returns: `.otherKey` without a report, and nothing changed, where the credentials are sealed for another
    ///   partition than the destination's, or with another key than it has.
    package func enter(
        _ destination: Destination, leaving work: PendingWork, signingIn credentials: CredentialReplacement, now: Date,
        beforeCommit: @escaping @Sendable () -> Void = {}
    ) async throws(OperationsError) -> (outcome: CredentialTable.Outcome, report: SwitchReport?) {
        try await write { transaction in
            guard case .stored(let environment) = destination.environment,
                try transaction.partition(of: environment, destination.user)?.name ?? destination.newName
                    == credentials.partition,
                try CredentialTable.hasKey(of: credentials, transaction.db)
            else { return (.otherKey, nil) }
            // A sign-in neither sends another user's mutations with these credentials nor gives them up.
            let left = try transaction.current()?.partition
            let isAnothers = left?.user != nil && left?.name != credentials.partition
            let report = try transaction.enter(destination, leaving: isAnothers ? .park : work, now: now)
            let outcome = try CredentialTable.replace(by: credentials, expecting: nil, transaction.db)
            // A switch without its credentials must not be committed.
            guard outcome == .stored else { throw OperationsError.forgotten(credentials.partition) }
            beforeCommit()
            return (outcome, report)
        }
    }

    /// As `enter`, on the caller's thread: waits for the writes of this process that were asked for before, and for
    /// other processes as long as the options say.
    @discardableResult
    package func enterNow(
        _ destination: Destination, leaving work: PendingWork?, now: Date
    ) throws(OperationsError) -> SwitchReport {
        try database.writeNow { db in
            try EnvironmentTransaction(db: db, unnamed: unnamed).enter(destination, leaving: work, now: now)
        }
    }

    /// What `enter` would do, or `leave` with nil, worked out by doing it and taking it back: nothing is written.
    package func rehearse(
        _ destination: Destination?, leaving work: PendingWork, now: Date
    ) throws(OperationsError) -> SwitchReport {
        try database.rehearse { db in
            let transaction = EnvironmentTransaction(db: db, unnamed: unnamed)
            guard let destination else { return try transaction.leave(work, now: now) }
            return try transaction.enter(destination, leaving: work, now: now)
        }
    }

    /// Leaves the current partition, and enters none.
    @discardableResult
    package func leave(_ work: PendingWork, now: Date) async throws(OperationsError) -> SwitchReport {
        try await write { try $0.leave(work, now: now) }
    }

    private func read<Value>(_ body: (EnvironmentTransaction) throws -> Value) throws(OperationsError) -> Value {
        try database.read { try body(EnvironmentTransaction(db: $0, unnamed: unnamed)) }
    }

    private func write<Value: Sendable>(
        _ body: @escaping @Sendable (EnvironmentTransaction) throws -> Value
    ) async throws(OperationsError) -> Value {
        let unnamed = unnamed
        return try await database.write { try body(EnvironmentTransaction(db: $0, unnamed: unnamed)) }
    }
}
