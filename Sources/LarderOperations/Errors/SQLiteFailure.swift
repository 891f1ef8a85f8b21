/// What SQLite said.
package struct SQLiteFailure: Error, Sendable, Hashable, CustomStringConvertible {
    /// The extended result code.
    package let resultCode: Int32
    package let message: String
    /// The statement, without its arguments: those are a user's data.
    package let sql: String?

    package var description: String {
        "SQLite \(resultCode): \(message)" + (sql.map { ", in \($0)" } ?? "")
    }
}
