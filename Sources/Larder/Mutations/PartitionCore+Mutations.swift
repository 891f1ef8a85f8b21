internal import Foundation
internal import LarderGraphQL
internal import LarderOperations
internal import LarderRecords

extension PartitionCore {
    /// What a stored mutation says, as it stands now.
    static func operation(of mutation: Mutation) throws(LarderError) -> GraphQLOperation {
        let variables: Value
        do { variables = try Value(json: mutation.content.variables) } catch {
            throw LarderError(.variables, "the variables of mutation \(mutation.id) are no JSON", cause: error)
        }
        guard case .object(let members) = variables else {
            throw LarderError(.variables, "the variables of mutation \(mutation.id) are no object")
        }
        return GraphQLOperation(
            mutation.content.document, name: mutation.content.operationName, variables: members)
    }

    /// Stores the server's answer to a mutation, once for a key.
    ///
    /// - Returns: The data of the answer as JSON; nil where it is too much to be kept.
    func store(
        _ body: [UInt8], of operation: BoundOperation, key: String, _ changes: [ListChange]
    ) async throws(LarderError) -> [UInt8]? {
        do throws(RecordError) {
            let parsed = try ParsedResponse.parse(body, along: operation.layout)
            // On disk before the queue forgets the answer, and never stored a second time, over what came later.
            _ = try await cache.write(parsed, of: operation, applying: AppliedKey(key), edits: changes.map(\.edit), synchronizing: true)
            let data = try parsed.assembled().json
            return data.count <= Self.resultLimit ? data : nil
        } catch { throw LarderError.parking(error) }
    }

    /// Notes that there will be no answer of a mutation in the cache, though it took effect.
    func noteUnstored(_ key: String) async throws(LarderError) {
        guard let key = AppliedKey(key) else { return }
        do { try await cache.noteRejected(key) } catch { throw LarderError.parking(error) }
    }

    /// Forgets the keys of mutations that were settled long ago, in whatever process.
    func pruneApplied(_ queue: MutationQueue) async throws(LarderError) {
        do {
            let limit = Int64((now().timeIntervalSince1970 - Self.appliedLifetime) * 1000)
            let old = try cache.applied().filter { $0.time < limit }
            guard !old.isEmpty else { return }
            let unsettled = Set(try queue.list(MutationFilter(partition: name)).map(\.idempotencyKey))
            // A layer whose key is forgotten while it is there would be seen again.
            try layers.reload(queue)
            _ = try await cache.forgetApplied(
                old.map(\.key).filter { !unsettled.contains($0) }.compactMap(AppliedKey.init))
        } catch { throw LarderError(translating: error) }
    }

    /// For so long another process may still show a mutation that was applied as not applied.
    private static let appliedLifetime: TimeInterval = 86_400

    private static let resultLimit = 64 << 10
}
