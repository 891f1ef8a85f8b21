import LarderCommandLine
import LarderOperations

/// Whose the rows of the store's tables are, and of whom they are to be shown.
struct RowOwners {
    private let known: [String: StoredPartition]
    private let wanted: Set<String>?

    /// All of them.
    init(_ database: OperationsDatabase) throws {
        known = try Self.known(database)
        wanted = nil
    }

    /// - Parameter options: By which the user names partitions; none: all of them.
    init(_ database: OperationsDatabase, of options: PartitionOptions) throws {
        known = try Self.known(database)
        wanted = try options.rows(database.environments).map { Set($0.map(\.name)) }
    }

    private static func known(_ database: OperationsDatabase) throws -> [String: StoredPartition] {
        Dictionary(try database.environments.partitions().map { ($0.name, $0) }) { $1 }
    }

    /// Whether only some are to be shown.
    var isFiltered: Bool { wanted != nil }

    func includes(_ partition: String) -> Bool { wanted?.contains(partition) ?? true }

    subscript(partition: String) -> StoredPartition {
        known[partition] ?? StoredPartition(name: partition, environment: nil, user: nil)
    }
}

/// A row, and whose it is.
struct OwnedRow<Row> {
    var row: Row
    var owner: StoredPartition
}

extension StoredPartition {
    /// Its name, environment and user, as columns.
    var cells: [TableCell] {
        [
            TableCell(name), TableCell(environment ?? "no environment"),
            TableCell(user.map { "user \($0)" } ?? (environment == nil ? "-" : "guest")),
        ]
    }

    /// Its environment and user in one word, or its own name where it has no environment.
    var word: String { (environment ?? name) + (user.map { "/\($0)" } ?? "") }
}
