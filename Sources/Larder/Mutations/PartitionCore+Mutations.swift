internal import LarderGraphQL
internal import LarderOperations
internal import LarderRecords

extension PartitionCore {
    /// What a stored mutation says, as it stands now.
    func operation(of mutation: Mutation) throws(LarderError) -> GraphQLOperation {
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
        _ body: [UInt8], of operation: BoundOperation, key: String
    ) async throws(LarderError) -> [UInt8]? {
        do throws(RecordError) {
            let parsed = try ParsedResponse.parse(body, along: operation.layout)
            _ = try await cache.write(parsed, of: operation)
            let data = try parsed.assembled().json
            return data.count <= Self.resultLimit ? data : nil
        } catch { throw LarderError.parking(error) }
    }

    private static let resultLimit = 64 << 10
}
