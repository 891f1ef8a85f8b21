import GRDB

/// Makes damaged rows readable, and loses as little of them as can be: values of another type than the column's; where
/// that is not all, the one value without which the rest can be read; or all but the keys.
struct RowMending {
    let db: Database

    /// A row, by its table and the condition by which it is found.
    struct Place {
        var table: String
        var condition: String
        /// What some of its columns are to be, whatever they are.
        var forced: [String: StoredValue] = [:]
        /// Columns that are not touched unless they are of another type: no neutral value says what they say.
        var kept: Set<String> = []
    }

    /// - Parameter isReadable: Whether that is enough.
    /// - Returns: Whether it was, in the end. The columns that were lost are in no order.
    func mend(_ places: [Place], until isReadable: () throws -> Bool) throws -> (isReadable: Bool, lost: [String]) {
        var lost: [String] = []
        for place in places { lost += try update(place) { !$0.fits($1) } }
        if try isReadable() { return (true, lost) }
        for place in places {
            for column in try TableColumn.all(of: place.table, in: db) where !column.isKey {
                guard !place.kept.contains(column.name), place.forced[column.name] == nil else { continue }
                let isEnough = try attempt {
                    _ = try update(place) { other, _ in other == column }
                    return try isReadable()
                }
                if isEnough { return (true, lost + ["\(column.table).\(column.name)"]) }
            }
        }
        for place in places {
            lost += try update(place) { column, _ in !column.isKey && !place.kept.contains(column.name) }
        }
        return (try isReadable(), lost)
    }

    /// Puts neutral values in the places of values for which a condition holds, and the forced ones in theirs.
    private func update(
        _ place: Place, where isLost: (TableColumn, StoredValue) -> Bool
    ) throws -> [String] {
        let columns = try TableColumn.all(of: place.table, in: db)
        let names = columns.map { "\"\($0.name)\"" }
        let found = try db.row(
            "SELECT \(names.joined(separator: ", ")) FROM \(place.table) WHERE \(place.condition)"
        ) { $0.values }
        guard let old = found else { return [] }
        var (changed, lost): ([(name: String, value: StoredValue)], [String]) = ([], [])
        for (column, value) in zip(columns, old) where !column.isKey || !column.fits(value) {
            if let forced = place.forced[column.name] {
                if forced != value { changed.append((column.name, forced)) }
            } else if isLost(column, value) {
                changed.append((column.name, column.neutral))
                lost.append("\(column.table).\(column.name)")
            }
        }
        guard !changed.isEmpty else { return [] }
        let settings = changed.map { "\"\($0.name)\" = ?" }.joined(separator: ", ")
        try db.run("UPDATE \(place.table) SET \(settings) WHERE \(place.condition)", changed.map(\.value))
        return lost
    }

    /// Tries something, and takes it back where it fails or is not enough.
    private func attempt(_ body: () throws -> Bool) throws -> Bool {
        try db.run("SAVEPOINT mending")
        var isEnough = false
        do { isEnough = try body() } catch let error as DatabaseError where error.resultCode == .SQLITE_CONSTRAINT {}
        if !isEnough { try db.run("ROLLBACK TRANSACTION TO SAVEPOINT mending") }
        try db.run("RELEASE SAVEPOINT mending")
        return isEnough
    }
}
