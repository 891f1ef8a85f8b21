import LarderGraphQL

/// One execution of one operation, and the errors it has met so far.
struct Run {
    typealias Path = [ExecutionError.PathStep]

    /// A null where there must be none: the nearest place around it that may be null becomes so (section 6.4.4).
    struct NullPropagation: Error {}

    let schema: SchemaIndex
    let fragments: [String: FragmentDefinition]
    let variables: [String: Value]
    private(set) var errors: [ExecutionError] = []

    init(schema: SchemaIndex, fragments: [String: FragmentDefinition], variables: [String: Value]) {
        self.schema = schema
        self.fragments = fragments
        self.variables = variables
    }

    /// The fields that the selections select of an object.
    mutating func object(
        _ node: Node, _ type: SchemaIndex.TypeID, _ selections: [[Selection]], path: Path, on kitchen: inout Kitchen
    ) throws(NullPropagation) -> ResponseValue {
        var collected = CollectedFields()
        var visited: Set<String> = []
        for selections in selections { collect(selections, for: type, into: &collected, &visited) }
        var fields: [(String, ResponseValue)] = []
        for (key, sameKey) in collected.groups {
            let value = try field(sameKey, of: node, type, path: path + [.key(key)], on: &kitchen)
            fields.append((key, value))
        }
        return .object(fields)
    }

    private mutating func field(
        _ fields: [Field], of node: Node, _ type: SchemaIndex.TypeID, path: Path, on kitchen: inout Kitchen
    ) throws(NullPropagation) -> ResponseValue {
        guard let field = fields.first, let definition = schema.field(named: field.name, of: type) else { return .null }
        if field.name == "__typename" { return .string(node.typeName) }
        let resolved: Resolved
        do {
            let arguments = try Coercion(schema: schema).arguments(
                field.arguments, definition.arguments, variables, of: "\(schema.types[type].name).\(field.name)"
            )
            resolved = try kitchen.resolve(field.name, of: node, arguments)
        } catch {
            let resolver = error as? ResolverError
            let message = resolver?.message ?? (error as? ExecutionError)?.message ?? "\(error)"
            let code = resolver?.code ?? "BAD_USER_INPUT"
            errors.append(ExecutionError(message, at: field.location, path: path, code: code))
            guard !definition.type.isNonNull else { throw NullPropagation() }
            return .null
        }
        return try complete(resolved, as: definition.type, fields, path: path, on: &kitchen)
    }

    /// Holds a value against its type (section 6.4.3).
    private mutating func complete(
        _ value: Resolved, as type: ResolvedType, _ fields: [Field], path: Path, on kitchen: inout Kitchen
    ) throws(NullPropagation) -> ResponseValue {
        if type.isNonNull {
            let completed = try complete(value, as: type.nullable, fields, path: path, on: &kitchen)
            guard completed.isNull else { return completed }
            if case .null = value { report("There is no value, and there must be one", fields, path) }
            throw NullPropagation()
        }
        if case .null = value { return .null }
        do throws(NullPropagation) {
            if let element = type.element {
                guard case .list(let values) = value else { return refuse(type, fields, path) }
                var completed: [ResponseValue] = []
                for (index, value) in values.enumerated() {
                    let path = path + [.index(index)]
                    completed.append(try complete(value, as: element, fields, path: path, on: &kitchen))
                }
                return .list(completed)
            }
            guard case .node(let node) = value else { return leaf(value, type, fields, path) }
            guard let object = schema.type(named: node.typeName), schema.isPossible(object, of: type.named) else {
                return refuse(type, fields, path)
            }
            return try self.object(node, object, fields.map(\.selections), path: path, on: &kitchen)
        } catch {
            return .null
        }
    }

    private mutating func leaf(
        _ value: Resolved, _ type: ResolvedType, _ fields: [Field], _ path: Path
    ) -> ResponseValue {
        let named = schema.types[type.named]
        switch (named.name, value) {
        case ("Int", .int(let number)) where Int32(exactly: number) != nil: return .int(number)
        case ("Float", .float(let number)): return .float(number)
        case ("Boolean", .boolean(let value)): return .boolean(value)
        case ("Int", _), ("Float", _), ("Boolean", _): break
        case (_, .string(let text)) where named.kind == .scalar || named.hasEnumValue(text): return .string(text)
        default: break
        }
        return refuse(type, fields, path)
    }

    private mutating func refuse(_ type: ResolvedType, _ fields: [Field], _ path: Path) -> ResponseValue {
        report("What was resolved is not of \(schema.description(of: type))", fields, path)
        return .null
    }

    private mutating func report(_ message: String, _ fields: [Field], _ path: Path) {
        errors.append(ExecutionError(message, at: fields.first?.location, path: path, code: "INTERNAL_SERVER_ERROR"))
    }

    // MARK: - Collecting fields (section 6.3.2)

    private func collect(
        _ selections: [Selection], for type: SchemaIndex.TypeID, into fields: inout CollectedFields,
        _ visited: inout Set<String>
    ) {
        for selection in selections {
            switch selection {
            case .field(let field):
                if isIncluded(field.directives) { fields.add(field) }
            case .inlineFragment(let fragment):
                guard isIncluded(fragment.directives), applies(fragment.typeCondition, to: type) else { continue }
                collect(fragment.selections, for: type, into: &fields, &visited)
            case .fragmentSpread(let spread):
                guard isIncluded(spread.directives), visited.insert(spread.name).inserted,
                    let fragment = fragments[spread.name], applies(fragment.typeCondition, to: type)
                else { continue }
                collect(fragment.selections, for: type, into: &fields, &visited)
            }
        }
    }

    private func applies(_ condition: String?, to type: SchemaIndex.TypeID) -> Bool {
        guard let condition else { return true }
        return schema.type(named: condition).map { schema.isPossible(type, of: $0) } ?? false
    }

    private func isIncluded(_ directives: [Directive]) -> Bool {
        directives.allSatisfy { directive in
            guard directive.name == "skip" || directive.name == "include" else { return true }
            let literal = directive.arguments.first { $0.name == "if" }?.value
            let condition: Value? =
                switch literal {
                case .boolean(let value): .boolean(value)
                case .variable(let name): variables[name]
                default: nil
                }
            return condition == .boolean(directive.name == "include")
        }
    }
}

/// The fields of a selection set by their response key, in the order in which the keys first came.
private struct CollectedFields {
    private(set) var groups: [(key: String, fields: [Field])] = []
    private var positions: [String: Int] = [:]

    mutating func add(_ field: Field) {
        if let position = positions[field.responseKey] {
            groups[position].fields.append(field)
        } else {
            positions[field.responseKey] = groups.count
            groups.append((field.responseKey, [field]))
        }
    }
}
