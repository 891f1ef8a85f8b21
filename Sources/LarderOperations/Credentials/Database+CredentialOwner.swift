import GRDB

extension Database {
    /// The number of a partition whose credentials, or whose session, are to be written.
    ///
    /// A missing partition was forgotten, and a caller that still works with it must not bring it back. Only the
    /// partition of a program that names no environment is made here, since nothing else makes it.
    ///
    /// - Throws: `.unknownPartition`.
    func credentialOwner(_ name: String) throws -> Int64 {
        if name == CredentialTable.unnamedPartition { return try partition(making: name) }
        guard let known = try partition(name) else { throw OperationsError.forgotten(name) }
        return known
    }

    /// Refuses a caller that works with an environment as it was before its users were signed in by another pool: what
    /// is there is good for others.
    ///
    /// - Parameter identity: The fingerprint of identity that the caller has of the partition's environment.
    /// - Throws: `.parked`.
    func requireIdentity(_ identity: String, of owner: Int64, named name: String) throws {
        let stored = try row(
            "SELECT e.identity FROM partition p JOIN environment e ON e.id = p.environment WHERE p.id = ?", [owner]
        ) { row in try row.text(0) }
        guard let stored, stored != identity else { return }
        throw OperationsError(
            .parked, "The users of partition \(name) are signed in by another pool since; ask the store for it again")
    }
}

extension CredentialTable {
    /// The name of the partition of a program that names no environment.
    static let unnamedPartition = "main"
}

extension OperationsError {
    package static func forgotten(_ partition: String) -> OperationsError {
        OperationsError(
            .unknownPartition, "There is no partition \(partition) any more; switch to its environment and user anew")
    }
}
