import LarderFiles
import LarderGraphQL
import LarderRecords

/// The operations that a partition has compiled, and the operations with variables that it has used lately.
final class OperationCache: Sendable {
    /// A document and the name of the operation or fragment in it.
    ///
    /// It is hashed when it is made, before the lock is taken: a document has hundreds of bytes.
    private struct DocumentKey: Hashable {
        let document: ExactText
        let name: ExactText?
        let isFragment: Bool
        private let hash: Int

        init(_ operation: GraphQLOperation) { self.init(operation.document, operation.name, isFragment: false) }

        init(_ fragment: GraphQLFragment) { self.init(fragment.document, fragment.name, isFragment: true) }

        private init(_ document: String, _ name: String?, isFragment: Bool) {
            self.document = ExactText(document)
            self.name = name.map(ExactText.init)
            self.isFragment = isFragment
            var hasher = Hasher()
            hasher.combine(self.document)
            hasher.combine(self.name)
            hasher.combine(isFragment)
            hash = hasher.finalize()
        }

        func hash(into hasher: inout Hasher) { hasher.combine(hash) }
    }

    private struct BoundKey: Hashable {
        let document: DocumentKey
        /// The variables as JSON, keys ascending.
        let variables: [UInt8]
        let exposesAdded: Bool
    }

    private struct Known {
        var compiled = RecentlyUsed<DocumentKey, CompiledOperation>(limit: OperationCache.compiledLimit)
        var bound = RecentlyUsed<BoundKey, BoundOperation>(limit: OperationCache.boundLimit)
        /// The keys of `bound`, by their documents.
        var boundKeys: [DocumentKey: Set<BoundKey>] = [:]

        /// Its document counts as used as well: it would take this along when it went.
        mutating func use(_ key: BoundKey) -> BoundOperation? {
            guard let operation = bound.value(for: key) else { return nil }
            _ = compiled.value(for: key.document)
            return operation
        }

        /// Keeps an operation, or takes its new size where plans have been made of it since.
        ///
        /// - Returns: What went.
        mutating func keep(
            _ operation: CompiledOperation, for key: DocumentKey
        ) -> [(key: DocumentKey, value: CompiledOperation)] {
            let size = operation.size + key.document.text.utf8.count + 256
            let gone = compiled.keep(operation, for: key, size: size)
            // Their plans would stay with them.
            for (document, _) in gone {
                for key in boundKeys.removeValue(forKey: document) ?? [] { bound.remove(key) }
            }
            return gone
        }

        /// Keeps an operation with variables.
        ///
        /// - Returns: What went.
        mutating func keep(_ operation: BoundOperation, for key: BoundKey) -> [(key: BoundKey, value: BoundOperation)] {
            let gone = bound.keep(operation, for: key, size: operation.size + key.variables.count * 8 + 512)
            boundKeys[key.document, default: []].insert(key)
            for (key, _) in gone {
                boundKeys[key.document]?.remove(key)
                if boundKeys[key.document]?.isEmpty == true { boundKeys[key.document] = nil }
            }
            return gone
        }
    }

    /// In bytes. The operation that has not been used for longest goes first, and is compiled again when it is used
    /// again: a program has fewer documents, and variables without number.
    static let compiledLimit = 64 << 20
    static let boundLimit = 16 << 20

    let schema: SchemaIndex
    /// By the names that mutations say.
    let updaters: [String: ListUpdater]
    private let known = Locked(Known())
    private let schemaNumber = Locked<UInt64?>(nil)

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

    /// The size of all kept operations, in bytes.
    var size: Int { known.withLock { $0.compiled.size + $0.bound.size } }

    func compiled(_ operation: GraphQLOperation) throws(LarderError) -> CompiledOperation {
        try compiled(DocumentKey(operation))
    }

    func bound(_ operation: GraphQLOperation, exposesAdded: Bool = false) throws(LarderError) -> BoundOperation {
        try bound(DocumentKey(operation), operation.variables, exposesAdded)
    }

    /// As `bound`, for what is read from the root of all queries.
    ///
    /// - Throws: Also `.operation` where it is a mutation or a subscription, whose root the cache does not keep.
    func bound(query operation: GraphQLOperation, exposesAdded: Bool = false) throws(LarderError) -> BoundOperation {
        let bound = try bound(operation, exposesAdded: exposesAdded)
        let kind = bound.layout.plan.kind
        guard kind == .query else {
            throw LarderError(
                .operation,
                "Only queries are read from the cache, and this is a \(kind.rawValue); send a mutation with "
                    + "send, and read what it changed with a query")
        }
        return bound
    }

    func bound(_ fragment: GraphQLFragment, exposesAdded: Bool = false) throws(LarderError) -> BoundOperation {
        try bound(DocumentKey(fragment), fragment.variables, exposesAdded)
    }

    /// As `bound`, for an operation that is asked once: one of many, each with variables of its own.
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
        throw LarderError(.variables, "A variable cannot be used: \(fault)")
    }

    private func bound(
        _ document: DocumentKey, _ variables: [String: Value], _ exposesAdded: Bool
    ) throws(LarderError) -> BoundOperation {
        // Variables that are no JSON have no key either.
        try requireSound(variables)
        let key = BoundKey(
            document: document, variables: variables.isEmpty ? [] : Value.object(variables).json,
            exposesAdded: exposesAdded)
        if let bound = known.withLock({ $0.use(key) }) { return bound }
        let compiled = try compiled(document)
        let bound = try bind(compiled, variables, exposesAdded)
        // What went is freed once the lock is given back.
        _ = known.withLock { known in (known.keep(bound, for: key), known.keep(compiled, for: document)) }
        return bound
    }

    private func compiled(_ key: DocumentKey) throws(LarderError) -> CompiledOperation {
        if let compiled = known.withLock({ $0.compiled.value(for: key) }) { return compiled }
        let document: Document
        do { document = try Document(parsing: key.document.text) } catch { throw LarderError(error) }
        let compiled: CompiledOperation
        do {
            compiled =
                key.isFragment
                ? try CompiledOperation(fragment: key.name?.text, in: document, schema)
                : try CompiledOperation(operation: key.name?.text, in: document, schema)
        } catch { throw LarderError(error) }
        _ = known.withLock { $0.keep(compiled, for: key) }
        return compiled
    }
}
