import LarderGraphQL
import LarderOperations
import LarderRecords

// Temporary ids in operations that are sent at once, and wait for no other mutation.

extension PartitionCore {
    /// The operation with the real ids that are known in the places of temporary ones.
    func withRealIDs(_ operation: GraphQLOperation) throws(LarderError) -> GraphQLOperation {
        let ids = operation.temporaryIDs
        guard !ids.isEmpty, let database = try operationsStore.database(making: false) else { return operation }
        let real: [TemporaryID: String]
        do { real = try database.mutations.realIDs(of: ids, in: name) } catch { throw LarderError(error) }
        guard !real.isEmpty else { return operation }
        var operation = operation
        operation.variables = operation.variables.mapValues { $0.replacingTemporaryIDs { real[$0] } }
        return operation
    }

    /// - Throws: `operations.unknownTemporaryID`, `.operation` where the operation to send has a temporary id: the
    ///   server would not know it.
    func requireRealIDs(in operation: GraphQLOperation) throws(LarderError) {
        try requireNoTemporaryID(inTextOf: operation, operations.compiled(operation))
        guard let id = operation.temporaryIDs.first else { return }
        throw LarderError(
            OperationsError(
                .unknownTemporaryID,
                "The variables hold \(id.text), whose real id is not known yet. Queue the mutation, "
                    + "or wait for the one that creates the object."))
    }

    /// A document is sent as it is, so that no real id could take the place of one in its text.
    func requireNoTemporaryID(
        inTextOf operation: GraphQLOperation, _ compiled: CompiledOperation
    ) throws(LarderError) {
        guard TemporaryID.mayStand(inDocument: operation.document),
            let id = compiled.strings.lazy.compactMap(TemporaryID.found).first
        else { return }
        throw LarderError(
            .operation,
            "The document has the temporary id \(id.text) in its text, where no real id can take its "
                + "place; put it into a variable")
    }
}

extension GraphQLOperation {
    fileprivate var temporaryIDs: Set<TemporaryID> {
        var found: Set<TemporaryID> = []
        for value in variables.values {
            _ = value.replacingTemporaryIDs { id in
                found.insert(id)
                return nil
            }
        }
        return found
    }
}

extension Value {
    fileprivate func replacingTemporaryIDs(_ replacement: (TemporaryID) -> String?) -> Value {
        switch self {
        case .string(let text): .string(TemporaryID.replaced(in: text, by: replacement))
        case .list(let values): .list(values.map { $0.replacingTemporaryIDs(replacement) })
        case .object(let members): .object(members.mapValues { $0.replacingTemporaryIDs(replacement) })
        default: self
        }
    }
}
