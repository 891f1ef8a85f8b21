package import Foundation
import GRDB

/// The pins that are stored.
package struct PinTable: Sendable {
    let database: OperationsDatabase

    /// Stores a pin, or changes what the one of this name pins.
    package func put(
        _ name: String, in partition: String, document: String, operationName: String? = nil,
        variables: [UInt8] = Array("{}".utf8), now: Date
    ) async throws(OperationsError) {
        try await database.write { db in
            let owner = try db.partition(making: partition)
            try db.run(
                """
                INSERT OR REPLACE INTO pin (partition, name, document, operation_name, variables, created)
                VALUES (?, ?, ?, ?, ?, ?)
                """,
                [owner, name, document, operationName, variables, now.milliseconds])
        }
    }

    /// All of a partition, or of all, by name. Those whose rows are damaged are left out; a check names them.
    package func list(in partition: String? = nil) throws(OperationsError) -> [StoredPin] {
        try database.read { db in
            try db.readableRows(Self.selection, [partition], Self.pin)
        }
    }

    /// All of a partition, by name.
    ///
    /// - Throws: `.damagedRow` too: what is pinned there is not known.
    package func all(in partition: String) throws(OperationsError) -> [StoredPin] {
        try database.read { db in
            try db.rows(Self.selection, [partition], Self.pin)
        }
    }

    /// - Returns: Whether there was one.
    package func remove(_ name: String, in partition: String) async throws(OperationsError) -> Bool {
        try await database.write { db in
            try db.run(
                "DELETE FROM pin WHERE partition = (SELECT id FROM partition WHERE name = ?) AND name = ?",
                [partition, name])
            return db.changesCount > 0
        }
    }

    package func removeAll(in partition: String) async throws(OperationsError) {
        try await database.write { db in
            try db.run("DELETE FROM pin WHERE partition = (SELECT id FROM partition WHERE name = ?)", [partition])
        }
    }

    static let columns = "p.name AS partition, i.name, i.document, i.operation_name, i.variables, i.created"
    static let tables = "pin i JOIN partition p ON p.id = i.partition"
    private static let selection =
        "SELECT \(columns) FROM \(tables) WHERE ?1 IS NULL OR p.name = ?1 ORDER BY p.name, i.name"

    static func pin(_ row: Columns) throws(OperationsError) -> StoredPin {
        StoredPin(
            partition: try row.text(0), name: try row.text(1), document: try row.text(2),
            operationName: try row.optional(3, row.text), variables: try row.json(4), created: try row.date(5))
    }
}

/// An operation whose answer stays in the cache.
package struct StoredPin: Sendable, Hashable {
    package var partition: String
    /// Unique in its partition.
    package var name: String
    package var document: String
    package var operationName: String?
    package var variables: [UInt8]
    package var created: Date
}
