import GRDB
import LarderFiles

/// An upload in parts that the storage has begun, and neither completed nor aborted, of a transfer that was forgotten.
package struct LeftUpload: Sendable, Hashable {
    /// The name of the storage; nil: the one that has none.
    package var storage: String?
    package var bucket: String
    package var key: String
    package var region: String?
    /// The storage's name for it; nil where the storage was asked to begin it and no name arrived.
    package var upload: String?
}

/// What forgetting has removed, and what it leads to outside of this database.
package struct ForgottenWork: Sendable, Hashable {
    /// The names of the partitions.
    package var partitions: [String] = []
    package var mutations = 0
    /// What the storage has of the uploads. Nothing else names it any more.
    package var uploads: [LeftUpload] = []
    /// The downloads, with the whole paths of their files. Nothing else names their partial files any more.
    package var downloads: [StoredTransfer] = []
}

extension EnvironmentTable {
    /// Decides whether partitions may be forgotten, and removes all that is kept of them in this database, the keys of
    /// their credentials too: in one transaction, so that no switch comes between the decision and the destruction.
    /// Their caches are not here, and the log may still hold their keys until it is emptied.
    ///
    /// - Parameter losingUnsent: Whether mutations and uploads may be lost that the server may not have.
    /// - Throws: `.unknownPartition`; `.environmentInUse` where one is the current one; `.unsentWork`, `.uploadsLeft`.
    ///   Then nothing was removed.
    @discardableResult
    package func forget(partitions names: [String], losingUnsent: Bool) async throws(OperationsError) -> ForgottenWork {
        try await forgetting { try $0.forget(names, losingUnsent) }
    }

    /// The same for an environment and all its partitions.
    ///
    /// - Throws: `.unknownEnvironment`; otherwise as for partitions.
    @discardableResult
    package func forget(environment name: String, losingUnsent: Bool) async throws(OperationsError) -> ForgottenWork {
        try await forgetting { transaction in
            guard try transaction.environment(name) != nil else { throw OperationsError.unknownEnvironment(name) }
            let partitions = try transaction.partitions().filter { $0.environment == name }.map(\.name)
            let forgotten = try transaction.forget(partitions, losingUnsent)
            try transaction.remove(name)
            return forgotten
        }
    }

    private func forgetting(
        _ body: @escaping @Sendable (EnvironmentTransaction) throws -> ForgottenWork
    ) async throws(OperationsError) -> ForgottenWork {
        var forgotten = try await database.write { try body(EnvironmentTransaction(db: $0)) }
        forgotten.downloads = forgotten.downloads.map(database.transfers.located)
        return forgotten
    }
}

extension EnvironmentTransaction {
    /// All of them, or none.
    fileprivate func forget(_ names: [String], _ losingUnsent: Bool) throws -> ForgottenWork {
        for name in names { try requireForgettable(name, losingUnsent) }
        var forgotten = ForgottenWork(partitions: names)
        for name in names {
            guard let owner = try db.partition(name) else { continue }
            forgotten.mutations += Int(
                try db.integer("SELECT count(*) FROM mutation WHERE partition = ?", [owner]) ?? 0)
            forgotten.uploads += try leftUploads(of: name)
            forgotten.downloads += try TransferTransaction(db: db).list(name, nil).filter { $0.kind == .download }
            try remove(owner)
        }
        return forgotten
    }

    private func requireForgettable(_ name: String, _ losingUnsent: Bool) throws {
        guard let partition = try partition(name) else {
            throw OperationsError(.unknownPartition, "There is no partition \(name)")
        }
        if try current()?.partition?.name == name {
            throw OperationsError(
                .environmentInUse, "\(partition.label) is the current one; switch to another, or to none, first")
        }
        guard !losingUnsent else { return }
        let count =
            try db.integer(
                """
                SELECT count(*) FROM mutation WHERE partition = (SELECT id FROM partition WHERE name = ?)
                    AND state <> \(mutation: .acknowledged)
                """, [name]) ?? 0
        let uploads = try db.partition(name).map(TransferTransaction(db: db).unsentUploads(in:)) ?? 0
        guard Int(count) + uploads == 0 else {
            throw OperationsError(
                .unsentWork,
                "The server does not have \(count.counted("mutation")) and \(uploads.counted("upload")) of "
                    + "\(partition.label) yet; send them, or say that they may be lost",
                unsent: .init(mutations: Int(count), uploads: uploads))
        }
        let left = try leftUploads(of: name).count
        guard left == 0 else {
            throw OperationsError(
                .uploadsLeft,
                "The storage has parts of \(left.counted("upload")) of \(partition.label) given up here, and "
                    + "only their names here lead to them; have a runner of it or `larder transfers gc` abort them, or "
                    + "say that they may stay there", unsent: .init(uploads: left))
        }
    }

    /// What the storage has begun and neither completed nor aborted, as far as it is known.
    private func leftUploads(of name: String) throws -> [LeftUpload] {
        try db.rows(
            """
            SELECT storage, bucket, key, region, upload FROM transfer
            WHERE partition = (SELECT id FROM partition WHERE name = ?)
                AND (upload IS NOT NULL OR uploads_before IS NOT NULL)
            ORDER BY sequence
            """, [name]
        ) { row in
            LeftUpload(
                storage: try row.optional(0, row.text), bucket: try row.text(1), key: try row.text(2),
                region: try row.optional(3, row.text), upload: try row.optional(4, row.text))
        }
    }

    private func remove(_ owner: Int64) throws {
        try ForgottenOutcomes(db: db).noteAll(of: owner)
        // What refers to others goes before them.
        for table in [
            "mutation", "transfer", "temporary_id", "outcome", "watcher", "pin", "credential",
            "quarantined_credential", "session", "partition_key",
        ] {
            try db.run("DELETE FROM \(table) WHERE partition = ?", [owner])
        }
        try db.run("DELETE FROM partition WHERE id = ?", [owner])
    }
}
