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
}
