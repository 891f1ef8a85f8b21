import GRDB

/// The rows of one table as they go into the new file: as they are, or without values that do not have their column's
/// type.
struct SalvagedRows {
    let db: Database
    let table: String
    /// All that the table has.
    let columns: [TableColumn]
    /// The columns that were read, in the order of their values.
    let names: [String]

    private static let owners: Set<String> = ["partition", "environment"]

    /// A row that did not go into the new file as it was.
    struct Damage {
        var row: DamagedRow
        /// The number of the mutation or the transfer that it is of; nil where it is of none, or that cannot be read.
        var sequence: Int64?
    }

    /// - Returns: Nil where the row is there as it was.
    func insert(_ values: [StoredValue]) throws -> Damage? {
        let row = zip(names, values).map { ($0, $1) }
        if try put(row) { return nil }
        let keys = row.filter { isKey($0.0) }
        let literals = try keys.map { name, value in
            "\(name) = " + (try db.row("SELECT quote(?)", [value]) { try $0.text(0) } ?? "NULL")
        }
        let key = literals.joined(separator: " AND ")
        // It was copied on the way from the other end.
        if try db.exists("SELECT 1 FROM \(table) WHERE \(key)") { return nil }
        let damaged = DamagedRow(table: table, key: key, reason: "a value is not one of its column")
        // The least loss that can be stored: only values of another type; one value more, in a row that owns others; or
        // all values.
        var losses: [Set<String>] = [[]]
        if Self.owners.contains(table) { losses += columns.map { Set([$0.name]) } }
        losses.append(Set(columns.map(\.name)))
        for lost in losses {
            let mended = row.map { name, value -> (String, StoredValue) in
                if let forced = DamagedRows.forced[table]?[name] { return (name, forced) }
                guard let column = columns.first(where: { $0.name == name }), !column.isKey, name != "partition"
                else { return (name, value) }
                return (name, lost.contains(name) || !column.fits(value) ? column.neutral : value)
            }
            if try put(mended) { break }
        }
        var sequence: Int64?
        if case .integer(let number)? = row.first(where: { $0.0 == "sequence" })?.1 { sequence = number }
        return Damage(row: damaged, sequence: sequence)
    }

    private func isKey(_ name: String) -> Bool { columns.contains { $0.name == name && $0.isKey } }

    private func put(_ row: [(String, StoredValue)]) throws -> Bool {
        let list = row.map { "\"\($0.0)\"" }.joined(separator: ", ")
        let marks = Array(repeating: "?", count: row.count).joined(separator: ", ")
        do {
            try db.run("INSERT OR IGNORE INTO \(table) (\(list)) VALUES (\(marks))", row.map(\.1))
            return db.changesCount > 0
        } catch let error as DatabaseError where error.resultCode == .SQLITE_CONSTRAINT {
            return false
        } catch let error as DatabaseError where error.resultCode == .SQLITE_MISMATCH {
            // A key that is no number.
            return false
        }
    }
}
