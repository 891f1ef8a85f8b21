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
}
