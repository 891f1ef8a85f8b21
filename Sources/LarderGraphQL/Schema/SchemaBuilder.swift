/// Joins schema documents to a ``SchemaIndex``: first all definitions and extensions are collected, in any order,
/// then names are resolved, then the whole is checked, and at last policies are applied.
struct SchemaBuilder {
    /// A type's definition, and then its extensions in the order in which they were added.
    struct CollectedType {
        var parts: [Part]

        var name: String { parts[0].type.name }
        var kind: TypeKind { parts[0].type.kind }
    }

    struct Part {
        var type: SchemaDocument.TypeDefinition
        var source: String?
        var isBuiltIn: Bool
    }

    struct CollectedDirective {
        var definition: SchemaDocument.DirectiveDefinition
        var source: String?
        var isBuiltIn: Bool
    }

    private(set) var types: [CollectedType] = []
    private(set) var typeIDs: [String: SchemaIndex.TypeID] = [:]
    private var extensions: [Part] = []
    private var directives: [CollectedDirective] = []
    private var directivePositions: [String: Int] = [:]
    private var schemas: [(definition: SchemaDocument.SchemaDefinition, source: String?)] = []

    init() throws(SchemaError) {
        let builtIn: SchemaDocument
        do { builtIn = try SchemaDocument(parsing: IntrospectionSchema.text) } catch { throw SchemaError(error) }
        try add(builtIn, sourceName: "introspection", isBuiltIn: true)
    }

    /// Collects a document's definitions. What the language itself defines may be defined again, to no effect.
    mutating func add(_ document: SchemaDocument, sourceName: String?, isBuiltIn: Bool = false) throws(SchemaError) {
        for type in document.types {
            let part = Part(type: type, source: sourceName, isBuiltIn: isBuiltIn)
            if type.isExtension {
                extensions.append(part)
            } else if let id = typeIDs[type.name] {
                if types[id].parts[0].isBuiltIn { continue }
                throw error(.duplicate, "Type \(type.name) is defined twice", type.location, sourceName)
            } else {
                typeIDs[type.name] = types.count
                types.append(CollectedType(parts: [part]))
            }
        }
        for directive in document.directives {
            let collected = CollectedDirective(definition: directive, source: sourceName, isBuiltIn: isBuiltIn)
            if let position = directivePositions[directive.name] {
                if directives[position].isBuiltIn { continue }
                let message = "Directive @\(directive.name) is defined twice"
                throw error(.duplicate, message, directive.location, sourceName)
            }
            directivePositions[directive.name] = directives.count
            directives.append(collected)
        }
        for schema in document.schemas { schemas.append((schema, sourceName)) }
    }

    func error(
        _ code: SchemaError.Code, _ message: String, _ location: Location?, _ source: String?
    ) -> SchemaError {
        SchemaError(code, message, location: location, sourceName: source)
    }

    // MARK: - Building

    mutating func build() throws(SchemaError) -> SchemaIndex {
        try applyExtensions()
        try addServerScalars()
        var resolved: [SchemaType] = []
        resolved.reserveCapacity(types.count)
        for id in types.indices { resolved.append(try resolve(id)) }
        collectPossibleTypes(&resolved)
        var directiveDefinitions: [DirectiveDefinition] = []
        for directive in directives { directiveDefinitions.append(try resolve(directive)) }
        let roots = try resolveRoots()
        let schema = SchemaIndex(
            types: resolved, directives: directiveDefinitions, queryType: roots.query,
            mutationType: roots.mutation, subscriptionType: roots.subscription)
        try checkImplementations(in: schema)
        return try applyPolicies(to: schema)
    }

    private mutating func applyExtensions() throws(SchemaError) {
        for part in extensions {
            guard let id = typeIDs[part.type.name] else {
                throw error(
                    .unknownType, "Type \(part.type.name) is extended and nowhere defined", part.type.location,
                    part.source)
            }
            guard types[id].kind == part.type.kind else {
                throw error(
                    .invalidType,
                    "\(part.type.name) is extended as \(part.type.kind.noun) and defined as "
                        + types[id].kind.noun, part.type.location, part.source)
            }
            types[id].parts.append(part)
        }
        extensions = []
    }

    /// The scalars that AppSync declares by itself: schemas are written without them.
    private static let serverScalars: Set<String> = [
        "AWSDate", "AWSDateTime", "AWSEmail", "AWSIPAddress", "AWSJSON", "AWSPhone", "AWSTime", "AWSTimestamp",
        "AWSURL",
    ]

    /// Declares those of them that are used and that no text declares.
    private mutating func addServerScalars() throws(SchemaError) {
        let parts = types.flatMap(\.parts).map(\.type)
        var used = Set(parts.flatMap { $0.inputFields.map(\.type.name) + $0.fields.map(\.type.name) })
        for type in parts {
            for field in type.fields { used.formUnion(field.arguments.map(\.type.name)) }
        }
        for name in used.intersection(Self.serverScalars).sorted() where typeIDs[name] == nil {
            let scalar: SchemaDocument
            do { scalar = try SchemaDocument(parsing: "scalar \(name)") } catch { throw SchemaError(error) }
            try add(scalar, sourceName: nil)
        }
    }

    private mutating func collectPossibleTypes(_ resolved: inout [SchemaType]) {
        for id in resolved.indices where resolved[id].kind == .object {
            resolved[id].possibleTypes = [id]
            // Ids come in ascending order, so that each list grows sorted.
            for interface in resolved[id].interfaces { resolved[interface].possibleTypes.append(id) }
        }
        for id in resolved.indices where resolved[id].kind == .union {
            let members = types[id].parts.flatMap(\.type.members)
            resolved[id].possibleTypes = members.compactMap { typeIDs[$0.name] }.sorted()
        }
    }

    // MARK: - Roots

    private func resolveRoots() throws(SchemaError) -> (
        query: SchemaIndex.TypeID, mutation: SchemaIndex.TypeID?, subscription: SchemaIndex.TypeID?
    ) {
        var roots: [OperationKind: SchemaIndex.TypeID] = [:]
        let definitions = schemas.filter { !$0.definition.isExtension }
        if definitions.count > 1 {
            throw error(
                .duplicate, "The schema is defined twice", definitions[1].definition.location, definitions[1].source)
        }
        if definitions.isEmpty {
            let names: [OperationKind: String] = [
                .query: "Query", .mutation: "Mutation", .subscription: "Subscription",
            ]
            for (kind, name) in names {
                if let id = typeIDs[name], types[id].kind == .object { roots[kind] = id }
            }
        }
        // The definition first, so that an extension that repeats a root is what is reported.
        for (schema, source) in definitions + schemas.filter(\.definition.isExtension) {
            for root in schema.roots {
                let id = try typeID(of: root.type, source: source)
                guard types[id].kind == .object else {
                    let message = "The \(root.kind.rawValue) root \(root.type.name) is no object type"
                    throw error(.root, message, root.type.location, source)
                }
                guard roots[root.kind] == nil || (definitions.isEmpty && roots[root.kind] == id) else {
                    let message = "The \(root.kind.rawValue) root is defined twice"
                    throw error(.duplicate, message, root.type.location, source)
                }
                roots[root.kind] = id
            }
        }
        guard let query = roots[.query] else {
            let place = definitions.first
            throw error(.root, "The schema has no query root", place?.definition.location, place?.source)
        }
        return (query, roots[.mutation], roots[.subscription])
    }

    func typeID(of name: SchemaDocument.TypeName, source: String?) throws(SchemaError) -> SchemaIndex.TypeID {
        guard let id = typeIDs[name.name] else {
            throw error(.unknownType, "Unknown type \(name.name)", name.location, source)
        }
        return id
    }
}
