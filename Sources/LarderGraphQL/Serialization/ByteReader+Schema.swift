extension ByteReader {
    mutating func readSchema() throws(SchemaError) -> SchemaIndex {
        try readStringTable()
        let count = try readCount()
        let query = try readIndex(below: count)
        let mutation = try readOptionalInt()
        let subscription = try readOptionalInt()
        var types: [SchemaType] = []
        types.reserveCapacity(count)
        for _ in 0..<count { types.append(try readType(count: count)) }
        for root in [query, mutation, subscription].compactMap(\.self) {
            guard root < count, types[root].kind == .object else { throw Self.damaged }
        }
        let directiveCount = try readCount()
        var directives: [DirectiveDefinition] = []
        for _ in 0..<directiveCount { directives.append(try readDirective(count: count)) }
        guard isAtEnd else { throw Self.damaged }
        return SchemaIndex(
            types: types, directives: directives, queryType: query, mutationType: mutation,
            subscriptionType: subscription)
    }

    /// - Parameter count: How many types the schema has.
    private mutating func readType(count: Int) throws(SchemaError) -> SchemaType {
        let name = try readString()
        guard let raw = UInt8(exactly: try readUInt64()), let kind = TypeKind(rawValue: raw) else {
            throw Self.damaged
        }
        let fieldCount = try readCount()
        var fields: [FieldDefinition] = []
        fields.reserveCapacity(fieldCount)
        for _ in 0..<fieldCount { fields.append(try readField(count: count)) }
        let interfaces = try readIndices(below: count)
        let possibleTypes = try readIndices(below: count)
        // The search in them relies on the order.
        for index in possibleTypes.indices.dropFirst() where possibleTypes[index - 1] >= possibleTypes[index] {
            throw Self.damaged
        }
        let enumValues = try readStrings()
        let inputFields = try readInputs(count: count)
        // A type has fields of one sort only, so that one table of positions serves them all.
        guard
            (kind == .object || kind == .interface || fields.isEmpty)
                && (kind == .enumeration || enumValues.isEmpty) && (kind == .inputObject || inputFields.isEmpty)
        else { throw Self.damaged }
        return SchemaType(
            name: name, kind: kind, fields: fields, interfaces: interfaces, possibleTypes: possibleTypes,
            enumValues: enumValues, inputFields: inputFields,
            declaredKeyFields: try readBool() ? try readStrings() : nil,
            keyFields: try readBool() ? try readStrings() : nil, declaredParts: try readParts(),
            parts: try readParts(),
            maxAge: try readOptionalInt(), isVersioned: try readBool())
    }

    private mutating func readDirective(count: Int) throws(SchemaError) -> DirectiveDefinition {
        let name = try readString()
        let arguments = try readInputs(count: count)
        let isRepeatable = try readBool()
        guard let places = UInt32(exactly: try readUInt64()) else { throw Self.damaged }
        return DirectiveDefinition(
            name: name, arguments: arguments, isRepeatable: isRepeatable, places: DirectivePlaces(rawValue: places))
    }

    private mutating func readField(count: Int) throws(SchemaError) -> FieldDefinition {
        FieldDefinition(
            name: try readString(), type: try readResolvedType(count: count), arguments: try readInputs(count: count),
            maxAge: try readOptionalInt(), declaredPolicy: try readPolicy(), policy: try readPolicy(),
            declaredParts: try readParts(), parts: try readParts())
    }

    private mutating func readInputs(count: Int) throws(SchemaError) -> [InputDefinition] {
        let inputCount = try readCount()
        var inputs: [InputDefinition] = []
        inputs.reserveCapacity(inputCount)
        for _ in 0..<inputCount {
            inputs.append(
                InputDefinition(
                    name: try readString(), type: try readResolvedType(count: count),
                    defaultValue: try readBool() ? try readLiteral(depth: 0) : nil))
        }
        return inputs
    }

    private mutating func readResolvedType(count: Int) throws(SchemaError) -> ResolvedType {
        let named = try readIndex(below: count)
        let listDepth = try readIndex(below: ResolvedType.deepestList + 1)
        return ResolvedType(named: named, listDepth: listDepth, nonNullLevels: try readUInt64())
    }

    private mutating func readPolicy() throws(SchemaError) -> FieldPolicy? {
        guard try readBool() else { return nil }
        let pathCount = try readCount()
        var policy = FieldPolicy(keyArgs: [])
        for _ in 0..<pathCount {
            var path = ArgumentPath("")
            path.components = try readStrings()
            policy.keyArgs.append(path)
        }
        policy.paginationArgs = try readStrings()
        policy.maxLimit = try readOptionalInt()
        return policy
    }

    private mutating func readParts() throws(SchemaError) -> PartPolicy? {
        switch try readUInt64() {
        case 0: return nil
        case 1: return .merge
        case 2: return .replace
        default: throw Self.damaged
        }
    }

    private mutating func readLiteral(depth: Int) throws(SchemaError) -> Literal {
        guard depth <= ParserLimits.deepest, let raw = UInt8(exactly: try readUInt64()),
            let tag = LiteralTag(rawValue: raw)
        else { throw Self.damaged }
        // What recurses stands apart from what does not, to keep the recursion's stack frames small.
        switch tag {
        case .list: return .list(try readElements(depth: depth + 1))
        case .object: return .object(try readObjectFields(depth: depth + 1))
        default: return try readLeafLiteral(tag)
        }
    }

    private mutating func readElements(depth: Int) throws(SchemaError) -> [Literal] {
        let count = try readCount()
        var elements: [Literal] = []
        for _ in 0..<count { elements.append(try readLiteral(depth: depth)) }
        return elements
    }

    private mutating func readObjectFields(depth: Int) throws(SchemaError) -> [Literal.ObjectField] {
        let count = try readCount()
        var fields: [Literal.ObjectField] = []
        for _ in 0..<count { fields.append(.init(name: try readString(), value: try readLiteral(depth: depth))) }
        return fields
    }

    private mutating func readLeafLiteral(_ tag: LiteralTag) throws(SchemaError) -> Literal {
        switch tag {
        case .variable: return .variable(try readString())
        case .int: return .int(try readString())
        case .float: return .float(try readString())
        case .string: return .string(try readString())
        case .boolean: return .boolean(try readBool())
        case .null: return .null
        case .enumeration: return .enumeration(try readString())
        case .list, .object: throw Self.damaged
        }
    }
}
