import Foundation
import LarderOperations
import LarderTestSupport

/// One value in one row that nobody would have stored there.
struct HostileRow {
    var table: String
    var column: String
    /// Which of the table's rows, from 0.
    var row: Int
    /// As SQL writes it.
    var value: String

    var description: String { "\(table).\(column) of row \(row) = \(value.prefix(60))" }

    /// Values of every type that a number, a text or bytes may be mistaken for, and the ends of their ranges.
    static let values = [
        "NULL", "0", "-1", "1", "2", "7", "2147483648", "4503599627370496", "9223372036854775806",
        "9223372036854775807",
        "-9223372036854775808", "1.5", "-1e308", "9e999", "''", "'x'", "'12'", "'../../x'", "x''", "x'00'",
        "x'00112233445566778899aabbccddeeff'", "x'ff'", "'a' || char(0) || 'b'", "CAST(x'ff80' AS TEXT)", "'{'",
        "x'7b'",
        "x'5b5d'", "x'7b2261223a317d'", "zeroblob(70000)", "printf('%.70000c', 'x')",
    ]

    /// Each column of each table of a database, asked of its schema, with each value; and rows at random.
    static func all(of database: PlainDatabase, _ random: inout SeededNumbers) throws -> [HostileRow] {
        var rows: [HostileRow] = []
        for table in try tables(of: database) {
            let all = try Int(database.rows("SELECT count(*) FROM \(table)")[0][0]) ?? 0
            // The last are those that must go on.
            let count = ["mutation", "mutation_content", "transfer"].contains(table) ? all - 1 : all
            guard count > 0 else {
                throw PlainDatabase.Refusal(message: "no row of \(table) is in the store of the fuzzer")
            }
            for column in try database.rows("SELECT name FROM pragma_table_info('\(table)')").map({ $0[0] }) {
                for value in values + ["\(Int64(bitPattern: random.next()))", "randomblob(\(random.next() % 40))"] {
                    rows.append(
                        HostileRow(
                            table: table, column: column, row: Int(random.next() % UInt64(count)), value: value))
                }
            }
        }
        return rows
    }

    private static func tables(of database: PlainDatabase) throws -> [String] {
        try database.rows(
            """
            SELECT name FROM sqlite_schema WHERE type = 'table' AND (name NOT LIKE 'sqlite%' OR name = 'sqlite_sequence')
            ORDER BY name
            """
        ).map { $0[0] }
    }

    /// Makes a copy of a sound database in which any column takes any value.
    static func loosen(_ file: URL, into loose: URL) throws {
        try FileManager.default.copyItem(at: file, to: loose)
        let database = try PlainDatabase(loose)
        try database.run("PRAGMA writable_schema = ON")
        for row in try database.rows(
            "SELECT name, sql FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite%'")
        {
            let sql = row[1].replacing(/\)\s*STRICT(, )?/) { $0.output.1 == nil ? ")" : ") " }
                .replacing(" NOT NULL", with: "").replacing(" TEXT", with: " BLOB")
                .replacing(/\sINTEGER(?! PRIMARY)/, with: " BLOB")
            try database.run(
                "UPDATE sqlite_schema SET sql = '\(sql.replacing("'", with: "''"))' WHERE name = '\(row[0])'")
        }
    }

    /// Changes the value in a copy of the loose database, and gives it the definitions of the sound one again.
    ///
    /// - Returns: False where SQLite itself takes no such value.
    func put(into file: URL, loose: URL, sound: URL) throws -> Bool {
        try? FileManager.default.removeItem(at: file)
        try FileManager.default.copyItem(at: loose, to: file)
        let database = try PlainDatabase(file)
        try database.run("PRAGMA foreign_keys = OFF; PRAGMA ignore_check_constraints = ON; PRAGMA writable_schema = ON")
        let keys = try database.rows("SELECT name FROM pragma_table_info('\(table)') WHERE pk > 0 ORDER BY pk").map {
            $0[0]
        }
        let key = keys.isEmpty ? "rowid" : keys.joined(separator: ", ")
        do {
            try database.run(
                """
                UPDATE \(table) SET "\(column)" = \(value)
                WHERE (\(key)) IN (SELECT \(key) FROM \(table) ORDER BY \(key) LIMIT 1 OFFSET \(row))
                """)
        } catch is PlainDatabase.Refusal { return false }
        guard database.changes > 0 else { return false }
        try database.run(
            """
            ATTACH DATABASE '\(sound.path)' AS sound;
            UPDATE main.sqlite_master SET sql = (SELECT s.sql FROM sound.sqlite_master s WHERE s.name = sqlite_master.name)
            WHERE type = 'table' AND name NOT LIKE 'sqlite%';
            """)
        return true
    }
}
