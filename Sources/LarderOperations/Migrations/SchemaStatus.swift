package import Foundation

/// What a database has of the library's migrations.
package struct SchemaStatus: Sendable, Hashable {
    /// A migration, as the history or the library has it.
    package struct Entry: Sendable, Hashable {
        package var number: Int
        package var name: String
        /// SHA-256 of its text, in hexadecimal.
        package var checksum: String
        /// When it was applied; nil where it was not.
        package var applied: Date?

        /// The number in four digits and the name, as in the file's.
        package var label: String { String(repeating: "0", count: max(0, 4 - "\(number)".count)) + "\(number)-\(name)" }
    }

    /// How the history is kept.
    package var formatVersion: Int
    /// The random number by which a backup knows its store, in hexadecimal; nil before the migration that makes it.
    package var identity: String?
    /// In the order of their numbers.
    package var applied: [Entry]
    /// The migrations yet to be applied, in order; none where the history is not a beginning of the known ones.
    package var pending: [Entry]
}
