import GRDB

extension OperationsDatabase {
    /// What has been applied of the library's migrations, and what has not.
    ///
    /// - Throws: `.newerFormat`, `.migrationChanged`, `.migrationMissing` where the history is not a beginning of what
    ///   this library knows.
    package func schemaStatus() throws(OperationsError) -> SchemaStatus {
        try read { [migrations] db in
            let history = try migrations.history(db)
            let pending = try migrations.missing(in: history)
            return SchemaStatus(
                formatVersion: try Int.fetchOne(db, sql: "PRAGMA user_version") ?? 0,
                identity: try Self.identity(db),
                applied: history.map {
                    .init(number: $0.number, name: $0.name, checksum: $0.checksum, applied: $0.time)
                },
                pending: pending.map { .init(number: $0.number, name: $0.name, checksum: $0.checksum, applied: nil) })
        }
    }

    /// Applies what is missing, all in one transaction.
    ///
    /// - Parameter lock: Held by the caller, for this store.
    package func migrate(holding lock: MigrationLock) throws(OperationsError) {
        try writeWithoutTransaction { try migrations.apply($0) }
    }

    /// The store's identity, in hexadecimal; nil where the table is not there yet.
    static func identity(_ db: Database) throws -> String? {
        guard try db.hasTable("store") else { return nil }
        return try String.fetchOne(db, sql: "SELECT lower(hex(identity)) FROM store")
    }

    /// The names of all partitions, each with its environment's, in the order in which they were made.
    package func partitionOwners() throws(OperationsError) -> [(name: String, environment: String?)] {
        try read { db in
            guard try db.hasTable("partition") else { return [] }
            guard try db.hasTable("environment") else {
                return try db.texts("SELECT name FROM partition ORDER BY id").map { ($0, nil) }
            }
            return try db.rows(
                """
                SELECT p.name, e.name FROM partition p LEFT JOIN environment e ON e.id = p.environment ORDER BY p.id
                """
            ) { row in (try row.text(0), try row.optional(1, row.text)) }
        }
    }
}

extension Database {
    /// GRDB caches what tables there are, and does not notice tables that another connection makes.
    func hasTable(_ name: String, in schema: String = "main") throws -> Bool {
        try integer(
            "SELECT count(*) FROM \(schema).sqlite_schema WHERE type = 'table' AND name = ?", [name]) ?? 0 > 0
    }
}
