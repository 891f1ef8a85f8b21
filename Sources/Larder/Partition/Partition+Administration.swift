import Foundation
import LarderOperations
package import LarderRecords

/// What became of a response that was handed to a partition as a server had sent it.
package struct TakenResponse: Sendable {
    /// False where the server answered without data, so that nothing was stored.
    package let hasData: Bool
    /// What the server reported beside the data, or instead of it.
    package let errors: [GraphQLError]
    /// The objects in the response; an object that stands in it twice is counted twice.
    package let objectCount: Int
    package let commit: Commit
}

extension Partition {
    /// The cache that the partition works on.
    package var records: RecordCache { core.cache }

    /// Stores a whole response, `data`, `errors` and all, as if a server had just answered the operation with it.
    ///
    /// - Parameter response: The response in JSON. Fields that have an error keep what the cache knew of them.
    package func take(_ response: [UInt8], of operation: GraphQLOperation) async throws(LarderError) -> TakenResponse {
        try await core.requireAwake()
        let bound = try core.operations.bound(operation)
        do throws(RecordError) {
            let parsed = try ParsedResponse.parse(response, along: bound.layout)
            let commit = try await core.cache.write(parsed, of: bound)
            return TakenResponse(
                hasData: parsed.hasData, errors: parsed.errors, objectCount: parsed.objectCount, commit: commit)
        } catch { throw LarderError.parking(error) }
    }

    /// Whether anything is queued that runners could carry out now or after a pause. What waits for a file that no runner
    /// transfers, or for a mutation that waits so, cannot be. O(mutations and transfers).
    ///
    /// - Parameter storages: With which of the storages one of them transfers files; nil in it: the one without a name.
    package func hasWork(storages: Set<String?>) throws(LarderError) -> Bool {
        guard let database = try core.operationsStore.database(making: false) else { return false }
        do throws(OperationsError) {
            let transfers = try database.transfers.list(in: name, states: [.pending, .running, .cancelling])
            let unserved = Set(transfers.filter { !storages.contains($0.storage) }.map(\.id))
            if unserved.count < transfers.count { return true }
            var (waiting, lanes) = (Set<UUID>(), Set<String>())
            for mutation in try database.mutations.list(MutationFilter(partition: name))
            where mutation.state != .deadLetter && !mutation.isStalled {
                let waits =
                    mutation.transfers.contains { storages.isEmpty || unserved.contains($0) }
                    || lanes.contains(mutation.lane)
                    || mutation.dependencies.contains(where: waiting.contains)
                guard mutation.state == .pending, waits else { return true }
                waiting.insert(mutation.id)
                lanes.insert(mutation.lane)
            }
            return false
        } catch { throw LarderError(error) }
    }

    private var name: String { core.name }
}
