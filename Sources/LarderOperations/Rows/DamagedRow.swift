/// A row that cannot be read.
package struct DamagedRow: Sendable, Hashable, CustomStringConvertible {
    package var table: String
    /// The columns by which it is found, as SQL writes them: `sequence = 7`.
    package var key: String
    /// What is wrong with it.
    package var reason: String

    package var description: String { "\(table) where \(key): \(reason)" }
}
