internal import GRDB

extension EnvironmentTable {
    /// Removes all that is kept of partitions in this database, in one transaction. Their caches are not here; and
    /// whoever forgets for good destroys their keys before, by `CredentialTable.destroyKey`.
    ///
    /// - Parameters:
    ///   - environment: Removed with them; nil where it stays.
    ///   - losingUnsent: Whether mutations and uploads may be lost that the server may not have.
    /// - Returns: What the storage has of the uploads, and nobody knows the names of any more.
    /// - Throws: `.unknownPartition`; `.environmentInUse` where one is the current one; `.unsentWork`, `.uploadsLeft`;
    ///   for the environment as `remove`.
    @discardableResult
    package func forget(
        partitions names: [String], of environment: String? = nil, losingUnsent: Bool
    ) async throws(OperationsError) -> [LeftUpload] {
        try await database.write { db in
            let transaction = EnvironmentTransaction(db: db)
            var uploads: [LeftUpload] = []
            for name in names {
                try transaction.requireForgettable(name, losingUnsent)
                uploads += try transaction.leftUploads(of: name)
                try transaction.forget(name)
            }
            if let environment { try transaction.remove(environment) }
            return uploads
        }
    }
}

extension EnvironmentTable {
    /// Whose data would go with an environment: the names of its partitions. Whoever destroys several looks first, so
    /// that none goes where another may not.
    ///
    /// - Throws: `.unknownEnvironment`; `.environmentInUse` where one of them is the current one; `.unsentWork`,
    ///   `.uploadsLeft`.
    package func forgettable(_ name: String, losingUnsent: Bool) throws(OperationsError) -> [String] {
        try database.read { db in
            let transaction = EnvironmentTransaction(db: db)
            guard try transaction.environment(name) != nil else { throw OperationsError.unknownEnvironment(name) }
            let partitions = try transaction.partitions().filter { $0.environment == name }.map(\.name)
            for partition in partitions { try transaction.requireForgettable(partition, losingUnsent) }
            return partitions
        }
    }
}

extension EnvironmentTable {
    /// Looks whether `forget` of a partition would be refused.
    ///
    /// - Throws: `.unknownPartition`; `.environmentInUse` where it is the current one; `.unsentWork`, `.uploadsLeft`.
    package func requireForgettable(partition name: String, losingUnsent: Bool) throws(OperationsError) {
        try database.read { try EnvironmentTransaction(db: $0).requireForgettable(name, losingUnsent) }
    }
}

extension EnvironmentTransaction {
    fileprivate func requireForgettable(_ name: String, _ losingUnsent: Bool) throws {
        guard let partition = try partition(name) else {
            throw OperationsError(.unknownPartition, "there is no partition \(name)")
        }
        if try current()?.partition?.name == name {
            throw OperationsError(
                .environmentInUse, "\(partition.label) is the current one; switch to another, or to none, first")
        }
        guard !losingUnsent else { return }
        let count = try db.integer(
            """
            SELECT count(*) FROM mutation WHERE partition = (SELECT id FROM partition WHERE name = ?) AND state <> 2
            """, [name]) ?? 0
        let uploads = try db.partition(name).map(TransferTransaction(db: db).unsentUploads(in:)) ?? 0
        guard Int(count) + uploads == 0 else {
            throw OperationsError(
                .unsentWork, "\(count) mutations and \(uploads) uploads of \(partition.label) have not reached the "
                    + "server; send them, or say that they may be lost")
        }
        let left = try leftUploads(of: name).count
        guard left == 0 else {
            throw OperationsError(
                .uploadsLeft, "the storage has parts of \(left) uploads of \(partition.label) that were given up, and "
                    + "only their names here lead to them; have a runner of it or `larder transfers gc` abort them, or "
                    + "say that they may stay there")
        }
    }

    /// What the storage has begun and neither completed nor aborted, as far as it is known.
    fileprivate func leftUploads(of name: String) throws -> [LeftUpload] {
        try db.rows(
            """
            SELECT bucket, key, region, upload FROM transfer
            WHERE partition = (SELECT id FROM partition WHERE name = ?)
                AND (upload IS NOT NULL OR uploads_before IS NOT NULL)
            ORDER BY sequence
            """, [name]
        ) { row in
            LeftUpload(
                bucket: try row.text(0), key: try row.text(1), region: try row.optional(2, row.text),
                upload: try row.optional(3, row.text))
        }
    }

    fileprivate func forget(_ name: String) throws {
        guard let owner = try db.partition(name) else { return }
        // What refers to others goes before them.
        for table in [
            "mutation", "transfer", "temporary_id", "outcome", "watcher", "credential", "quarantined_credential",
            "session", "partition_key",
        ] {
            try db.run("DELETE FROM \(table) WHERE partition = ?", [owner])
        }
        try db.run("DELETE FROM partition WHERE id = ?", [owner])
    }
}
