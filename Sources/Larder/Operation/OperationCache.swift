internal import LarderGraphQL
internal import LarderRecords
internal import Synchronization

/// The operations that a partition has compiled, and those with variables that it has used lately.
final class OperationCache: Sendable {
    /// A document and the name of what is asked of it.
    private struct DocumentKey: Hashable {
        let document: ExactText
        let name: ExactText?
        let isFragment: Bool

        init(_ operation: GraphQLOperation) {
            document = ExactText(operation.document)
            name = operation.name.map(ExactText.init)
            isFragment = false
        }

        init(_ fragment: GraphQLFragment) {
            document = ExactText(fragment.document)
            name = fragment.name.map(ExactText.init)
            isFragment = true
        }
    }

    private struct BoundKey: Hashable {
        let document: DocumentKey
        /// The variables as JSON, keys ascending.
        let variables: [UInt8]
        let exposesAdded: Bool
    }

    private struct Known {
        var compiled: [DocumentKey: CompiledOperation] = [:]
        var bound: [BoundKey: BoundOperation] = [:]
    }

    /// Beyond these numbers everything is forgotten and compiled again when it is used again: a program has fewer
    /// documents, and variables without number.
    private static let compiledLimit = 1_000
    private static let boundLimit = 4_000

    let schema: SchemaIndex
    /// By the names that mutations say.
    let updaters: [String: ListUpdater]
    private let known = Mutex(Known())
    private let schemaNumber = Mutex<UInt64?>(nil)

    init(_ schema: SchemaIndex, updaters: [String: ListUpdater] = [:]) {
        self.schema = schema
        self.updaters = updaters
    }

    /// The schema's, worked out when it is needed first.
    var numberOfSchema: UInt64 {
        schemaNumber.withLock { number in
            if let number { return number }
            let new = schema.number
            number = new
            return new
        }
    }

    func compiled(_ operation: GraphQLOperation) throws(LarderError) -> CompiledOperation {
        try compiled(DocumentKey(operation))
    }

    func bound(_ operation: GraphQLOperation, exposesAdded: Bool = false) throws(LarderError) -> BoundOperation {
        try bound(DocumentKey(operation), operation.variables, exposesAdded)
    }

    func bound(_ fragment: GraphQLFragment, exposesAdded: Bool = false) throws(LarderError) -> BoundOperation {
        try bound(DocumentKey(fragment), fragment.variables, exposesAdded)
    }

    /// As `bound`, for what is asked once: one of many, each with variables of its own.
    func boundOnce(_ operation: GraphQLOperation, exposesAdded: Bool = false) throws(LarderError) -> BoundOperation {
        try boundOnce(try compiled(operation), operation.variables, exposesAdded: exposesAdded)
    }

    func boundOnce(
        _ compiled: CompiledOperation, _ variables: [String: Value], exposesAdded: Bool = false
    ) throws(LarderError) -> BoundOperation {
        try bind(compiled, variables, exposesAdded)
    }

    private func bind(
        _ compiled: CompiledOperation, _ variables: [String: Value], _ exposesAdded: Bool
    ) throws(LarderError) -> BoundOperation {
        try requireSound(variables)
        do { return try compiled.bound(variables, exposesAdded: exposesAdded) } catch { throw LarderError(error) }
    }

    private func requireSound(_ variables: [String: Value]) throws(LarderError) {
        guard !variables.isEmpty, let fault = Value.object(variables).fault else { return }
        throw LarderError(.variables, "a variable cannot be used: \(fault)")
    }

    private func bound(
        _ document: DocumentKey, _ variables: [String: Value], _ exposesAdded: Bool
    ) throws(LarderError) -> BoundOperation {
        // What is no JSON has no key either.
        try requireSound(variables)
        let key = BoundKey(
            document: document, variables: variables.isEmpty ? [] : Value.object(variables).json,
            exposesAdded: exposesAdded)
        if let bound = known.withLock({ $0.bound[key] }) { return bound }
        let bound = try bind(try compiled(document), variables, exposesAdded)
        known.withLock { known in
            if known.bound.count >= Self.boundLimit { known.bound = [:] }
            known.bound[key] = bound
        }
        return bound
    }

    private func compiled(_ key: DocumentKey) throws(LarderError) -> CompiledOperation {
        if let compiled = known.withLock({ $0.compiled[key] }) { return compiled }
        let document: Document
        do { document = try Document(parsing: key.document.text) } catch { throw LarderError(error) }
        let compiled: CompiledOperation
        do {
            compiled = key.isFragment
                ? try CompiledOperation(fragment: key.name?.text, in: document, schema)
                : try CompiledOperation(operation: key.name?.text, in: document, schema)
        } catch { throw LarderError(error) }
        known.withLock { known in
            if known.compiled.count >= Self.compiledLimit { known.compiled = [:] }
            known.compiled[key] = compiled
        }
        return compiled
    }
}
