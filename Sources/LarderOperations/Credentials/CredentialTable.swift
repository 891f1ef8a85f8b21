import Foundation
import GRDB

/// What a partition has of credentials, at one moment.
package struct CredentialSnapshot: Sendable, Hashable {
    /// Whether there is such a partition.
    package var isKnown = false
    package var key: StoredPartitionKey?
    /// By kind.
    package var credentials: [SealedCredential] = []
    package var session: StoredSession?

    package init() {}
}

/// Sealed credentials, the sealed keys of partitions, and whether a user is signed in.
///
/// Nothing is opened here. Each call is one transaction.
package struct CredentialTable: Sendable {
    let database: OperationsDatabase

    /// What became of a write that others may have been quicker than.
    package enum Outcome: Sendable, Hashable {
        case stored
        /// The partition's credentials are not the expected ones; nothing was changed.
        case changed
        /// The partition has no key, or another than the one that sealed them; nothing was changed.
        case otherKey
        /// Nothing was expected, so that a session is to begin, and it may not: the change has none. Nothing was
        /// changed.
        case refused
    }

    /// What a partition has, at one moment.
    package func snapshot(of partition: String) throws(OperationsError) -> CredentialSnapshot {
        try database.read { db in
            var snapshot = CredentialSnapshot()
            guard let owner = try db.partition(partition) else { return snapshot }
            snapshot.isKnown = true
            snapshot.key = try Self.key(of: owner, named: partition, db)
            snapshot.credentials = try Self.credentials(of: owner, db)
            snapshot.session = try Self.session(of: owner, db)
            return snapshot
        }
    }

    /// Whether a user is signed in; nil where nothing is known.
    package func session(of partition: String) throws(OperationsError) -> StoredSession? {
        try database.read { db in try db.partition(partition).flatMap { try Self.session(of: $0, db) } }
    }

    /// Stores a partition's credentials in the place of its present ones, and what becomes of its session.
    ///
    /// - Parameter expected: What must be there; nil for whatever is.
    /// - Throws: `.unknownPartition` where it was forgotten; `.parked` where they were issued under another identity
    ///   than that of the partition's environment.
    package func replace(
        by new: CredentialReplacement, expecting expected: [SealedCredential]? = nil
    ) async throws(OperationsError) -> Outcome {
        try await database.write { db in try Self.replace(by: new, expecting: expected, db) }
    }

    static func replace(
        by new: CredentialReplacement, expecting expected: [SealedCredential]?, _ db: Database
    ) throws -> Outcome {
        let partition = new.partition
        let owner = try db.credentialOwner(partition)
        guard try hasKey(of: new, db) else { return .otherKey }
        if let expected, try credentials(of: owner, db).map(\.sealed) != expected.map(\.sealed) { return .changed }
        let session = new.change(try session(of: owner, db))
        if expected == nil, session == nil { return .refused }
        for credential in new.credentials {
            try db.requireIdentity(credential.identity, of: owner, named: partition)
        }
        if let making = new.making { try make(new.key, making, of: owner, db) }
        let kinds = Set(new.credentials.map(\.kind))
        for old in try credentials(of: owner, db) where !kinds.contains(old.kind) {
            try db.run("DELETE FROM credential WHERE partition = ? AND kind = ?", [owner, old.kind])
        }
        // A session that begins is another sign-in.
        let created = expected == nil ? "excluded.created" : "created"
        for new in new.credentials {
            try db.run(
                """
                INSERT INTO credential (partition, kind, identity, sealed, created, updated)
                VALUES (?, ?, ?, ?, ?, ?)
                ON CONFLICT (partition, kind) DO UPDATE
                SET identity = excluded.identity, sealed = excluded.sealed, created = \(created),
                    updated = excluded.updated
                """,
                [owner, new.kind, new.identity, new.sealed, new.created.milliseconds, new.updated.milliseconds])
        }
        if let session { try put(session, to: owner, db) }
        return .stored
    }

    /// Whether the partition's key is the one that credentials were sealed with, or that they replace. A partition that
    /// is yet to be made has none.
    static func hasKey(of new: CredentialReplacement, _ db: Database) throws -> Bool {
        let owner = try db.partition(new.partition)
        let known = try owner.flatMap { try key(of: $0, named: new.partition, db) }
        // Its bytes change when the program's key does; it is the same as long as it was made at the same time.
        return new.making.map { known == $0.old } ?? (known?.created == new.key.created)
    }

    /// Changes a partition's session.
    ///
    /// - Parameter expected: The credentials that must be there; nil for whatever is.
    /// - Returns: What it is now.
    /// - Throws: `.unknownPartition` where the partition was forgotten.
    @discardableResult
    package func changeSession(
        of partition: String, expecting expected: [SealedCredential]? = nil, _ change: @escaping SessionChange
    ) async throws(OperationsError) -> StoredSession? {
        try await database.write { db in
            let owner = try db.credentialOwner(partition)
            let isExpected = try expected.map { try Self.credentials(of: owner, db).map(\.sealed) == $0.map(\.sealed) }
            if isExpected ?? true { try Self.apply(change, to: owner, db) }
            return try Self.session(of: owner, db)
        }
    }

    /// Destroys a partition's credentials. What is in quarantine stays.
    ///
    /// - Throws: `.unknownPartition` where the partition was forgotten.
    package func forget(
        in partition: String, session change: @escaping SessionChange
    ) async throws(OperationsError) {
        try await database.write { db in
            let owner = try db.credentialOwner(partition)
            try db.run("DELETE FROM credential WHERE partition = ?", [owner])
            try Self.apply(change, to: owner, db)
        }
    }

    static func apply(_ change: SessionChange, to owner: Int64, _ db: Database) throws {
        if let new = change(try session(of: owner, db)) { try put(new, to: owner, db) }
    }

    private static func put(_ new: StoredSession, to owner: Int64, _ db: Database) throws {
        try db.run(
            "INSERT OR REPLACE INTO session (partition, state, reason, changed) VALUES (?, ?, ?, ?)",
            [owner, new.state, new.reason, new.changed.milliseconds])
    }

    static func key(of owner: Int64, named partition: String, _ db: Database) throws -> StoredPartitionKey? {
        try db.row(
            "SELECT \(StoredPartitionKey.columns) FROM \(StoredPartitionKey.tables) WHERE k.partition = ?", [owner]
        ) { try StoredPartitionKey($0) }
    }

    static func credentials(of owner: Int64, _ db: Database) throws -> [SealedCredential] {
        try db.rows(
            "SELECT \(SealedCredential.columns) FROM credential c WHERE c.partition = ? ORDER BY c.kind", [owner]
        ) { try SealedCredential($0) }
    }

    static func session(of owner: Int64, _ db: Database) throws -> StoredSession? {
        try db.row("SELECT \(StoredSession.columns) FROM session s WHERE s.partition = ?", [owner]) {
            try StoredSession($0)
        }
    }
}
