internal import GRDB

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
        let id = try partition(name)
        let current = try row("SELECT partition FROM current_partition WHERE only = 1") { row in
            try row.optional(0, row.integer)
        }
        guard current == .none || (id != nil && current == .some(id)) else { throw OperationsError.parked(name) }
        return id
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
            .parked, "the partition \(partition) is not the current one; switch back to its environment and user")
    }
}
