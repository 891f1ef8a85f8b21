import Foundation
import Larder
import LarderCommandLine
import LarderOperations

extension StoreFolder {
    /// Whether there is a database, or was one: opening it says then what became of it.
    var hasQueue: Bool {
        get throws(Failure) { try Failure.typed { try OperationsDatabase.exists(in: url, files) } }
    }

    /// Runs `body` with what must not be lost, and closes it; nil where there is nothing of that.
    func withOperations<Result>(
        _ access: Access, _ output: Output, _ body: (OperationsDatabase) async throws -> Result
    ) async throws -> Result? {
        if try !hasQueue { try requireStore() }
        output.heading(heading)
        prepare(access, output)
        return try await withOperations(access, body)
    }

    private func withOperations<Result>(
        _ access: Access, _ body: (OperationsDatabase) async throws -> Result
    ) async throws -> Result? {
        guard try hasQueue else { return nil }
        var options = OperationsDatabase.Options()
        options.isReadOnly = access == .reading
        return try await OperationsDatabase.using(url, options: options, body)
    }

    /// Of each partition but this one, how many of something it has; nil without a database.
    func countOthers(
        _ count: (OperationsDatabase, _ partition: String) throws -> Int
    ) async throws -> [String: Int]? {
        try await withOperations(.reading) { database in
            var counts: [String: Int] = [:]
            for other in try database.environments.partitions() where other.name != partition {
                counts[other.name] = try count(database, other.name)
            }
            return counts
        }
    }

    /// Sees to mutations and uploads that the server may not have, before what they belong to is removed.
    ///
    /// - Throws: `.unsentWork`, unless it was said what becomes of them.
    func settle(_ unsent: UnsentWork) async throws {
        _ = try await withOperations(unsent == .discard ? .writing : .reading) { database in
            switch unsent {
            case .refuse: try database.requireSent(in: partition)
            case .keep: break
            case .discard: _ = try await database.discardUnsent(in: partition, now: Date())
            }
        }
    }
}

extension StoreFolder {
    /// Runs `body` with the transfers, and closes what they are in; nil where nothing was ever queued.
    func withTransfers<Result>(
        _ access: Access, _ output: Output, _ body: (TransferTable) async throws -> Result
    ) async throws -> Result? {
        try await withOperations(access, output) { try await body($0.transfers) }
    }
}
