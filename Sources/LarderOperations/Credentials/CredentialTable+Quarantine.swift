package import Foundation
import GRDB

extension CredentialTable {
    /// A credential to put into quarantine, and why.
    package struct Suspect: Sendable, Hashable {
        package var credential: SealedCredential
        package var reason: String

        package init(_ credential: SealedCredential, reason: String) {
            self.credential = credential
            self.reason = reason
        }
    }

    /// Moves credentials to where no caller uses them or waits for them.
    ///
    /// What was replaced since it was read stays where it is.
    ///
    /// - Parameters:
    ///   - identity: The fingerprint of identity that the caller takes for that of the partition's environment.
    ///   - key: The partition's key, where that is what cannot be opened.
    ///   - change: What becomes of the session where no credential is left.
    /// - Returns: What was moved.
    /// - Throws: `.parked` where the environment's identity is another since: then the caller is foreign, and nothing
    ///   is moved.
    package func quarantine(
        _ suspects: [Suspect], key: (key: StoredPartitionKey, reason: String)? = nil, in partition: String,
        of identity: String, now: Date, session change: @escaping SessionChange
    ) async throws(OperationsError) -> [QuarantinedCredential] {
        try await database.write { db in
            guard let owner = try db.partition(partition) else { return [] }
            try db.requireIdentity(identity, of: owner, named: partition)
            var moved: [QuarantinedCredential] = []
            for suspect in suspects {
                let (old, reason) = (suspect.credential, suspect.reason)
                try db.run(
                    "DELETE FROM credential WHERE partition = ? AND kind = ? AND sealed = ?",
                    [owner, old.kind, old.sealed])
                guard db.changesCount > 0 else { continue }
                moved.append(
                    try Self.put(old.kind, old.identity, old.sealed, reason, of: owner, named: partition, now, db))
            }
            if let (old, reason) = key {
                try db.run("DELETE FROM partition_key WHERE partition = ? AND sealed = ?", [owner, old.sealed])
                if db.changesCount > 0 {
                    let kind = QuarantinedCredential.partitionKeyKind
                    moved.append(
                        try Self.put(kind, old.sealedWith, old.sealed, reason, of: owner, named: partition, now, db))
                }
            }
            if !moved.isEmpty, try Self.credentials(of: owner, db).isEmpty { try Self.apply(change, to: owner, db) }
            return moved
        }
    }

    /// Puts credentials into quarantine that were never in use, and changes the session.
    ///
    /// - Returns: `.refused` where the change has no session for them; as `replace` otherwise.
    package func quarantine(
        _ new: CredentialReplacement, as reason: String, now: Date
    ) async throws(OperationsError) -> Outcome {
        try await database.write { db in
            let owner = try db.credentialOwner(new.partition)
            guard try Self.hasKey(of: new, db) else { return .otherKey }
            guard let session = new.change(try Self.session(of: owner, db)) else { return .refused }
            if let making = new.making { try Self.make(new.key, making, of: owner, db) }
            for row in new.credentials {
                _ = try Self.put(
                    row.kind, row.identity, row.sealed, reason, of: owner, named: new.partition, now, db)
            }
            try Self.apply({ _ in session }, to: owner, db)
            return .stored
        }
    }

    /// Destroys what is in quarantine of a partition.
    ///
    /// - Returns: How many there were.
    package func emptyQuarantine(of partition: String) async throws(OperationsError) -> Int {
        try await database.write { db in
            guard let owner = try db.partition(partition) else { return 0 }
            try db.run("DELETE FROM quarantined_credential WHERE partition = ?", [owner])
            return db.changesCount
        }
    }

    /// What is in quarantine, of a partition or of all, oldest first.
    package func quarantined(in partition: String? = nil) throws(OperationsError) -> [QuarantinedCredential] {
        try database.read { try Self.quarantined(in: partition, $0) }
    }

    /// What can be said of a partition, or of all, without a key.
    package func overview(of partition: String? = nil) throws(OperationsError) -> [CredentialOverview] {
        try database.read { db in
            let quarantined = Dictionary(grouping: try Self.quarantined(in: partition, db), by: \.partition)
            let owners = try db.rows(
                """
                SELECT p.id, p.name, e.name, p.user FROM partition p LEFT JOIN environment e ON e.id = p.environment
                WHERE ?1 IS NULL OR p.name = ?1 ORDER BY p.id
                """, [partition]
            ) { row in
                (
                    id: try row.integer(0), name: try row.text(1), environment: try row.optional(2, row.text),
                    user: try row.optional(3, row.text)
                )
            }
            return try owners.map { owner in
                CredentialOverview(
                    partition: owner.name, environment: owner.environment, user: owner.user,
                    session: try Self.session(of: owner.id, db),
                    credentials: try Self.credentials(of: owner.id, db).map {
                        .init(kind: $0.kind, identity: $0.identity, created: $0.created, updated: $0.updated)
                    },
                    sealedWith: try Self.key(of: owner.id, named: owner.name, db)?.sealedWith,
                    quarantined: quarantined[owner.name] ?? [])
            }
        }
    }

    static func put(
        _ kind: String, _ identity: String, _ sealed: [UInt8], _ reason: String, of owner: Int64,
        named partition: String, _ now: Date, _ db: Database
    ) throws -> QuarantinedCredential {
        try db.run(
            """
            INSERT INTO quarantined_credential (partition, kind, identity, sealed, reason, quarantined)
            VALUES (?, ?, ?, ?, ?, ?)
            """, [owner, kind, identity, sealed, reason, now.milliseconds])
        return QuarantinedCredential(
            id: db.lastInsertedRowID, partition: partition, kind: kind, identity: identity, reason: reason,
            quarantined: Date(milliseconds: now.milliseconds))
    }

    private static func quarantined(in partition: String?, _ db: Database) throws -> [QuarantinedCredential] {
        try db.rows(
            """
            SELECT \(QuarantinedCredential.columns) FROM \(QuarantinedCredential.tables)
            WHERE ?1 IS NULL OR p.name = ?1 ORDER BY q.id
            """, [partition]
        ) { try QuarantinedCredential($0) }
    }
}
