package import Foundation
import GRDB

/// The watchers that are stored.
package struct WatcherTable: Sendable {
    let database: OperationsDatabase

    /// Stores a watcher, or changes what the one of this name watches. The position is kept where document, operation
    /// and variables are the same, and forgotten where they are not: what was delivered says nothing about them.
    package func put(
        _ name: String, in partition: String, document: String, operationName: String? = nil,
        variables: [UInt8] = Array("{}".utf8), now: Date
    ) async throws(OperationsError) -> StoredWatcher {
        try await database.write { db in
            let owner = try db.partition(making: partition)
            let old = try Self.watcher(name, in: partition, db)
            let isSame = old.map {
                $0.document.utf8.elementsEqual(document.utf8) && $0.operationName == operationName
                    && $0.variables == variables
            }
            let new = StoredWatcher(
                partition: partition, name: name, document: document, operationName: operationName,
                variables: variables, position: isSame == true ? old?.position : nil,
                created: old?.created ?? Date(milliseconds: now.milliseconds),
                updated: isSame == true ? old?.updated ?? now : Date(milliseconds: now.milliseconds))
            guard isSame != true else { return new }
            try db.run(
                """
                INSERT OR REPLACE INTO watcher
                    (partition, name, document, operation_name, variables, epoch, number, created, updated)
                VALUES (?, ?, ?, ?, ?, NULL, NULL, ?, ?)
                """,
                [
                    owner, name, document, operationName, variables, new.created.milliseconds,
                    new.updated.milliseconds,
                ])
            return new
        }
    }

    package func get(_ name: String, in partition: String) throws(OperationsError) -> StoredWatcher? {
        try database.read { try Self.watcher(name, in: partition, $0) }
    }

    /// All of a partition, or of all, by name. Those whose rows are damaged are left out; a check names them.
    package func list(in partition: String? = nil) throws(OperationsError) -> [StoredWatcher] {
        try database.read { db in
            try db.readableRows(
                Self.selection + " WHERE ?1 IS NULL OR p.name = ?1 ORDER BY p.name, w.name", [partition], Self.watcher)
        }
    }

    /// All of a partition, by name.
    ///
    /// - Throws: `.damagedRow` too: what is watched there is not known.
    package func all(in partition: String) throws(OperationsError) -> [StoredWatcher] {
        try database.read { db in
            try db.rows(Self.selection + " WHERE p.name = ?1 ORDER BY w.name", [partition], Self.watcher)
        }
    }

    /// Notes what was delivered. Within an epoch a position that is not past the stored one changes nothing; one of
    /// another epoch takes its place.
    ///
    /// - Returns: The position that is stored now.
    /// - Throws: `.unknownWatcher`.
    @discardableResult
    package func note(
        _ position: StoredWatcher.Position, of name: String, in partition: String, now: Date
    ) async throws(OperationsError) -> StoredWatcher.Position {
        try await database.write { db in
            guard let old = try Self.watcher(name, in: partition, db) else { throw OperationsError.unknown(name) }
            if let stored = old.position, stored.epoch == position.epoch, stored.number >= position.number {
                return stored
            }
            try db.run(
                """
                UPDATE watcher SET epoch = ?, number = ?, updated = ?
                WHERE partition = (SELECT id FROM partition WHERE name = ?) AND name = ?
                """,
                [
                    Int64(bitPattern: position.epoch), Int64(bitPattern: position.number), now.milliseconds, partition,
                    name,
                ])
            return position
        }
    }

    /// - Throws: `.unknownWatcher`.
    package func remove(_ name: String, in partition: String) async throws(OperationsError) {
        try await database.write { db in
            try db.run(
                "DELETE FROM watcher WHERE partition = (SELECT id FROM partition WHERE name = ?) AND name = ?",
                [partition, name])
            guard db.changesCount > 0 else { throw OperationsError.unknown(name) }
        }
    }

    package func removeAll(in partition: String) async throws(OperationsError) {
        try await database.write { db in
            try db.run("DELETE FROM watcher WHERE partition = (SELECT id FROM partition WHERE name = ?)", [partition])
        }
    }

    static let columns = """
        p.name AS partition, w.name, w.document, w.operation_name, w.variables, w.epoch, w.number, w.created, w.updated
        """
    static let tables = "watcher w JOIN partition p ON p.id = w.partition"
    private static let selection = "SELECT \(columns) FROM \(tables)"

    private static func watcher(_ name: String, in partition: String, _ db: Database) throws -> StoredWatcher? {
        try db.row(selection + " WHERE p.name = ? AND w.name = ?", [partition, name], watcher)
    }

    static func watcher(_ row: Columns) throws(OperationsError) -> StoredWatcher {
        var watcher = StoredWatcher(
            partition: try row.text(0), name: try row.text(1), document: try row.text(2),
            operationName: try row.optional(3, row.text), variables: try row.json(4), created: try row.date(7),
            updated: try row.date(8))
        if !row.isNull(5) {
            watcher.position = .init(
                epoch: UInt64(bitPattern: try row.integer(5)), number: UInt64(bitPattern: try row.integer(6)))
        }
        return watcher
    }
}

extension OperationsError {
    fileprivate static func unknown(_ watcher: String) -> OperationsError {
        OperationsError(.unknownWatcher, "There is no watcher named \(watcher); put it first")
    }
}
