internal import GRDB

extension Database {
    /// The number of a partition whose credentials, or whose session, are to be written.
    ///
    /// One that is not there was forgotten, and whoever works with it still must not bring it back. Only the one of a
    /// program that names no environment is made here, since nothing else makes it.
    ///
    /// - Throws: `.unknownPartition`.
    func credentialOwner(_ name: String) throws -> Int64 {
        if name == CredentialTable.unnamedPartition { return try partition(making: name) }
        guard let known = try partition(name) else { throw OperationsError.forgotten(name) }
        return known
    }
}

extension CredentialTable {
    /// The name of the partition of a program that names no environment.
    static let unnamedPartition = "main"
}

extension OperationsError {
    package static func forgotten(_ partition: String) -> OperationsError {
        OperationsError(
            .unknownPartition, "there is no partition \(partition) any more; switch to its environment and user anew")
    }
}
