package import Foundation
import GRDB

extension CredentialTable {
    /// That a partition gets a new key along with what is sealed with it.
    package struct KeyMaking: Sendable, Hashable {
        /// The key that it must have until then, which can be opened no more: it goes into quarantine, and all that it
        /// has sealed with it. Nil where it must have none.
        package var old: StoredPartitionKey?
        /// Why that can be opened no more.
        package var reason: String
        package var now: Date

        package init(replacing old: StoredPartitionKey? = nil, reason: String = "", now: Date) {
            self.old = old
            self.reason = reason
            self.now = now
        }
    }

    static func make(_ key: StoredPartitionKey, _ making: KeyMaking, of owner: Int64, _ db: Database) throws {
        if let old = making.old {
            let (name, reason, now) = (key.partition, making.reason, making.now)
            for row in try credentials(of: owner, db) {
                _ = try put(row.kind, row.identity, row.sealed, reason, of: owner, named: name, now, db)
            }
            let kind = QuarantinedCredential.partitionKeyKind
            _ = try put(kind, old.sealedWith, old.sealed, reason, of: owner, named: name, now, db)
            try db.run("DELETE FROM credential WHERE partition = ?", [owner])
            try db.run("DELETE FROM partition_key WHERE partition = ?", [owner])
        }
        try db.run(
            "INSERT INTO partition_key (partition, sealed_with, sealed, created) VALUES (?, ?, ?, ?)",
            [owner, key.sealedWith, key.sealed, key.created.milliseconds])
    }

    /// The keys of all partitions.
    package func keys() throws(OperationsError) -> [StoredPartitionKey] {
        try database.read { try Self.keys($0) }
    }

    /// Seals the keys of all partitions anew, all or none.
    ///
    /// - Parameter seal: A key as it is to be stored; nil leaves it as it is. May be called more than once.
    /// - Returns: The keys as they are now.
    package func reseal(
        _ seal: @escaping @Sendable (StoredPartitionKey) -> StoredPartitionKey?
    ) async throws(OperationsError) -> [StoredPartitionKey] {
        try await database.write { db in
            for old in try Self.keys(db) {
                guard let new = seal(old) else { continue }
                try db.run(
                    """
                    UPDATE partition_key SET sealed_with = ?, sealed = ?
                    WHERE partition = (SELECT id FROM partition WHERE name = ?)
                    """, [new.sealedWith, new.sealed, old.partition])
            }
            return try Self.keys(db)
        }
    }

    /// Destroys a partition's key, durably, and with it whatever was ever sealed with it: the credentials, the ones in
    /// quarantine, and the ones in backups that are not older than the key. The rows themselves stay for the next
    /// caller.
    ///
    /// - Parameter deadline: How long to wait for readers, so that the log, in which the key may still be, is emptied.
    /// - Returns: Whether the log was emptied. Where it was not, the next checkpoint does it.
    @discardableResult
    package func destroyKey(
        of partition: String, until deadline: SuspendingClock.Instant
    ) async throws(OperationsError) -> Bool {
        try await database.write { db in
            guard let owner = try db.partition(partition) else { return }
            try db.run("DELETE FROM partition_key WHERE partition = ?", [owner])
            try db.run(
                "DELETE FROM quarantined_credential WHERE partition = ? AND kind = ?",
                [owner, QuarantinedCredential.partitionKeyKind])
        }
        return try await database.emptyLog(until: deadline)
    }

    private static func keys(_ db: Database) throws -> [StoredPartitionKey] {
        try db.rows("SELECT \(StoredPartitionKey.columns) FROM \(StoredPartitionKey.tables) ORDER BY p.id") {
            try StoredPartitionKey($0)
        }
    }
}
