/// What a check of the database found.
package struct OperationsCheck: Sendable, Hashable {
    /// Something that is not as it must be.
    package struct Problem: Sendable, Hashable, CustomStringConvertible {
        package enum Kind: String, Sendable, Hashable {
            /// SQLite's own `integrity_check`.
            case integrity
            /// A row refers to one that is not there.
            case reference
            /// A row holds what nothing reads.
            case row
            /// A rule of ours does not hold.
            case rule
        }

        package var kind: Kind
        package var what: String
        package var description: String { "\(kind.rawValue): \(what)" }
    }

    /// The first problems, at most 100 of each rule and of each table.
    package var problems: [Problem] = []
    /// How many rows were looked at.
    package var mutations = 0
    package var transfers = 0
    package var outcomes = 0
    package var watchers = 0

    package var isSound: Bool { problems.isEmpty }
}
