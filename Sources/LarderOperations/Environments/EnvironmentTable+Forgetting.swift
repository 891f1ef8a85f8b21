internal import GRDB

extension EnvironmentTable {
    /// Whose data would go with an environment: the names of its partitions.
    ///
    /// - Parameter discarding: Whether mutations that the server may not have may be lost.
    /// - Throws: `.unknownEnvironment`; `.environmentInUse` where it is the current one; `.unsentWork`.
    package func forgettable(_ name: String, discarding: Bool) throws(OperationsError) -> [String] {
        try database.read { db in
            try EnvironmentTransaction(db: db).forgettable(name, discarding: discarding)
        }
    }

    /// Forgets an environment with all the rows of its partitions, in one transaction. Their keys and their caches were
    /// destroyed before.
    ///
    /// - Returns: How many mutations went.
    package func forget(_ name: String, discarding: Bool) async throws(OperationsError) -> Int {
        try await database.write { db in
            let transaction = EnvironmentTransaction(db: db)
            let partitions = try transaction.forgettable(name, discarding: discarding)
            return try transaction.forget(name, partitions)
        }
    }
}

extension EnvironmentTransaction {
    fileprivate func forgettable(_ name: String, discarding: Bool) throws -> [String] {
        guard try environment(name) != nil else { throw OperationsError.unknownEnvironment(name) }
        if try current()?.partition?.environment == name {
            throw OperationsError(
                .environmentInUse, "the environment \(name) is the current one; switch to another, or to none, first")
        }
        let partitions = try partitions().filter { $0.environment == name }.map(\.name)
        let queue = QueueTransaction(db: db)
        for partition in partitions where !discarding {
            guard let owner = try db.partition(partition), try queue.hasUnsent(in: owner) else { continue }
            throw OperationsError(
                .unsentWork, "mutations of \(name) have not reached its server, or were set aside; send them first, or "
                    + "say that they may be lost")
        }
        return partitions
    }

    fileprivate func forget(_ name: String, _ partitions: [String]) throws -> Int {
        // Whatever belongs to a partition says so; mutations take theirs along.
        let owned = try db.rows("""
            SELECT s.name, f."from" FROM sqlite_schema s JOIN pragma_foreign_key_list(s.name) f
            WHERE s.type = 'table' AND f."table" = 'partition' AND s.name <> 'mutation' ORDER BY s.name
            """) { (table: try $0.text(0), column: try $0.text(1)) }
        var mutations = 0
        for partition in partitions {
            guard let owner = try db.partition(partition) else { continue }
            try db.run("DELETE FROM mutation WHERE partition = ?", [owner])
            mutations += db.changesCount
            for (table, column) in owned { try db.run("DELETE FROM \"\(table)\" WHERE \"\(column)\" = ?", [owner]) }
            try db.run("DELETE FROM partition WHERE id = ?", [owner])
        }
        try db.run("DELETE FROM environment WHERE name = ?", [name])
        return mutations
    }
}
