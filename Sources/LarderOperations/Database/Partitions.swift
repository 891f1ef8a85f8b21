import GRDB

extension Database {
    /// The number by which a partition is known in the other tables; nil if it has never had anything.
    func partition(_ name: String) throws -> Int64? {
        try integer("SELECT id FROM partition WHERE name = ?", [name])
    }

    /// The same, and makes one if there is none.
    func partition(making name: String) throws -> Int64 {
        if let known = try partition(name) { return known }
        try run("INSERT INTO partition (name) VALUES (?)", [name])
        return lastInsertedRowID
    }

    /// The number of a partition in which mutations may be queued and begun; nil if it has never had anything.
    ///
    /// - Throws: `.parked` where another is the current one, or none is to be.
    func usablePartition(_ name: String) throws -> Int64? {
        let known = try row(Self.usabilitySQL, [name]) { row in
            (id: try row.integer(0), isParked: try row.integer(1) == 1)
        }
        // Where there is a current one, what has never had anything is not it.
        let isParked = try known?.isParked ?? exists("SELECT 1 FROM current_partition WHERE only = 1")
        guard !isParked else { throw OperationsError.parked(name) }
        return known?.id
    }

    private static let usabilitySQL = "SELECT p.id, \(isParked("p.id")) FROM partition p WHERE p.name = ?"

    /// An expression: whether a partition, by its number, is not the one in which something may be begun.
    static func isParked(_ id: String) -> String {
        "EXISTS (SELECT 1 FROM current_partition c WHERE c.only = 1 AND c.partition IS NOT \(id))"
    }

    /// The same, and makes one if there is none.
    func usablePartition(making name: String) throws -> Int64 {
        if let known = try usablePartition(name) { return known }
        try run("INSERT INTO partition (name) VALUES (?)", [name])
        return lastInsertedRowID
    }
}

extension OperationsError {
    static func parked(_ partition: String) -> OperationsError {
        OperationsError(
            .parked, "The partition \(partition) is not the current one; switch back to its environment and user")
    }
}
