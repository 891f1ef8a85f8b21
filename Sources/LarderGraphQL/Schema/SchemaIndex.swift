/// A schema, resolved and ready for look-ups: types, fields, what an interface can be, and what identifies an object.
///
/// The built-in scalars and directives and the types of introspection are in it without being defined.
package struct SchemaIndex: Sendable, Hashable {
    /// An index in ``types``.
    package typealias TypeID = Int

    package internal(set) var types: [SchemaType]
    package let directives: [DirectiveDefinition]
    package let queryType: TypeID
    package let mutationType: TypeID?
    package let subscriptionType: TypeID?

    private let typeIDs: [String: TypeID]

    /// The caller has checked that all type ids lie within `types`, which hold the types of ``IntrospectionSchema``.
    init(
        types: [SchemaType], directives: [DirectiveDefinition], queryType: TypeID, mutationType: TypeID?,
        subscriptionType: TypeID?
    ) {
        self.types = types
        self.directives = directives
        self.queryType = queryType
        self.mutationType = mutationType
        self.subscriptionType = subscriptionType
        var typeIDs: [String: TypeID] = [:]
        typeIDs.reserveCapacity(types.count)
        for (id, type) in types.enumerated() { typeIDs[type.name] = id }
        self.typeIDs = typeIDs
    }

    /// Parses and resolves a schema.
    package init(parsing text: String, sourceName: String? = nil) throws(SchemaError) {
        try self.init(parsing: [text], sourceNames: [sourceName])
    }

    /// Parses several texts and joins them to one schema; any may extend the types of any other.
    ///
    /// - Parameter sourceNames: The texts' names for errors, in their order; may be shorter.
    package init(parsing texts: [String], sourceNames: [String?] = []) throws(SchemaError) {
        var builder = try SchemaBuilder()
        for (index, text) in texts.enumerated() {
            let name = index < sourceNames.count ? sourceNames[index] : nil
            let document: SchemaDocument
            do { document = try SchemaDocument(parsing: text, sourceName: name) } catch { throw SchemaError(error) }
            try builder.add(document, sourceName: name)
        }
        self = try builder.build()
    }
}

// MARK: - Look-ups

extension SchemaIndex {
    package func type(named name: String) -> TypeID? { typeIDs[name] }

    package func directive(named name: String) -> DirectiveDefinition? {
        directives.first { $0.name == name }
    }

    /// Nil where the schema has no operations of the kind.
    package func rootType(of kind: OperationKind) -> TypeID? {
        switch kind {
        case .query: queryType
        case .mutation: mutationType
        case .subscription: subscriptionType
        }
    }

    /// The field of a type, `__typename` of every composite type and `__schema` and `__type` of the query root
    /// included. Time: constant.
    package func field(named name: String, of type: TypeID) -> FieldDefinition? {
        if let field = types[type].field(named: name) { return field }
        guard name.utf8.first == UInt8(ascii: "_"), types[type].kind.isComposite else { return nil }
        switch name {
        case "__typename":
            return typeID("String").map { FieldDefinition(name: name, type: ResolvedType(named: $0).nonNull) }
        case "__schema" where type == queryType:
            return typeID("__Schema").map { FieldDefinition(name: name, type: ResolvedType(named: $0).nonNull) }
        case "__type" where type == queryType:
            guard let result = typeID("__Type"), let string = typeID("String") else { return nil }
            let argument = InputDefinition(name: "name", type: ResolvedType(named: string).nonNull)
            return FieldDefinition(name: name, type: ResolvedType(named: result), arguments: [argument])
        default:
            return nil
        }
    }

    /// Whether a value of an abstract type can be an object of the type; an object type is only itself.
    ///
    /// Time: logarithmic in the number of the abstract type's possible types.
    package func isPossible(_ object: TypeID, of abstract: TypeID) -> Bool {
        guard types.indices.contains(abstract) else { return false }
        let possible = types[abstract].possibleTypes
        var low = 0
        var high = possible.count
        while low < high {
            let middle = (low + high) / 2
            if possible[middle] < object { low = middle + 1 } else { high = middle }
        }
        return low < possible.count && possible[low] == object
    }

    /// A type as it is written: `[Movie!]!`.
    package func description(of type: ResolvedType) -> String {
        let inner = type.element.map { "[\(description(of: $0))]" } ?? types[type.named].name
        return type.isNonNull ? inner + "!" : inner
    }

    /// Nil where the name inside stands for no type, or lists nest deeper than any schema's.
    package func resolve(_ reference: TypeReference) -> ResolvedType? {
        typeIDs[reference.name].flatMap { ResolvedType(reference, named: $0) }
    }

    private func typeID(_ name: String) -> TypeID? { typeIDs[name] }
}
