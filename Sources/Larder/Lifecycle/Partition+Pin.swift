import LarderGraphQL
import LarderOperations

/// An operation whose answer stays in the cache, under a name.
public struct Pin: Sendable {
    /// Unique in its partition.
    public let name: String
    /// Whose answer is kept.
    public let operation: GraphQLOperation
}

extension Partition {
    /// Keeps the answer to an operation in the cache, until `unpin` with the same name: what the answer is made of, and
    /// what that leads to. It outlives the process.
    ///
    /// What the cache does not know is not fetched; it stays once it comes. The same name with another operation or
    /// other variables pins that instead. What several names pin stays until none does.
    ///
    /// - Throws: `.syntax`, `.operation`, `.variables`; `operations.…` where it cannot be stored.
    public func pin(named name: String, _ operation: GraphQLOperation) async throws(LarderError) {
        try await core.requireAwake()
        _ = try core.operations.bound(query: operation)
        let database = try core.operationsStore.database()
        do {
            try await database.pins.put(
                name, in: core.name, document: operation.document, operationName: operation.name,
                variables: Value.object(operation.variables).json, now: core.now())
        } catch { throw LarderError(error) }
    }

    /// Lets go of what a name pins.
    ///
    /// - Returns: Whether there was a pin of that name.
    /// - Throws: `.parked`; `operations.…` where it cannot be stored.
    @discardableResult
    public func unpin(named name: String) async throws(LarderError) -> Bool {
        try await core.requireAwake()
        do {
            return try await core.operationsStore.database(making: false)?.pins.remove(name, in: core.name) ?? false
        } catch { throw LarderError(translating: error) }
    }

    /// The pins, in ascending order of their names.
    public func pins() throws(LarderError) -> [Pin] {
        do {
            let stored = try core.operationsStore.database(making: false)?.pins.list(in: core.name) ?? []
            return try stored.map { Pin(name: $0.name, operation: try $0.operation) }
        } catch { throw LarderError(translating: error) }
    }
}

extension StoredPin {
    /// - Throws: `.variables`.
    var operation: GraphQLOperation {
        get throws(LarderError) {
            try GraphQLOperation(document, name: operationName, storedVariables: variables, of: "pin \(name)")
        }
    }
}

extension GraphQLOperation {
    /// - Parameter owner: Whose variables these are, for the error.
    init(
        _ document: String, name: String?, storedVariables: [UInt8], of owner: String
    ) throws(LarderError) {
        guard case .object(let variables)? = try? Value(json: storedVariables) else {
            throw LarderError(.variables, "The variables of the \(owner) are no object")
        }
        self.init(document, name: name, variables: variables)
    }
}
