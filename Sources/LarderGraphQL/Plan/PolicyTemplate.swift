/// How a field's arguments say which object, or which list of objects, it would return: a `FieldPolicy` at one place
/// of an operation. It leads to keys once the operation's variables are known.
package struct PolicyTemplate: Sendable {
    /// The concrete types that the field may return, with their key fields.
    let types: [(name: String, keyFields: [String])]
    /// One for each key field.
    let arguments: [ArgumentSource]
    let isList: Bool

    /// Where the value of a key argument comes from.
    struct ArgumentSource: Sendable {
        let value: Literal?
        /// What the schema puts in its place where it is a variable that was left out.
        let standard: Literal?
        /// The fields to go through inside the value, an input object.
        let path: [String]
        /// Whether its type is a list, of which a single value is one of one element.
        let isList: Bool

        func resolved(_ variables: [String: Value]) -> Value? {
            var value = value?.resolved(variables) ?? standard?.resolved([:])
            for name in path {
                guard case .object(let members) = value else { return nil }
                value = members[name]
            }
            return value
        }

        /// The elements where it is a list.
        func elements(_ value: Value) -> [Value]? {
            if case .list(let elements) = value { return elements }
            return isList && value != .null ? [value] : nil
        }
    }

    /// Nil where the policy cannot lead to a key: pages of a list, other counts of arguments and key fields, no
    /// identity.
    init?(_ policy: FieldPolicy, _ field: Field, _ definition: FieldDefinition, _ schema: SchemaIndex) {
        guard !policy.keyArgs.isEmpty, policy.paginationArgs.isEmpty, definition.type.listDepth <= 1 else { return nil }
        types = schema.types[definition.type.named].possibleTypes.compactMap { id in
            let type = schema.types[id]
            guard let keyFields = type.keyFields, keyFields.count == policy.keyArgs.count else { return nil }
            return (type.name, keyFields)
        }
        guard !types.isEmpty else { return nil }
        isList = definition.type.isList
        arguments = policy.keyArgs.map { path in
            let name = path.components.first ?? ""
            return ArgumentSource(
                value: field.arguments.first { $0.name == name }?.value,
                standard: definition.argument(named: name)?.defaultValue, path: Array(path.components.dropFirst()),
                isList: schema.type(of: path, in: definition)?.isList ?? false)
        }
    }

    func target(_ variables: [String: Value]) -> PolicyTarget {
        var values: [Value] = []
        for argument in arguments {
            guard let value = argument.resolved(variables) else { return .none }
            values.append(value)
        }
        guard isList else {
            let texts = values.compactMap(\.keyText)
            return texts.count == values.count ? .object(candidates(texts)) : .none
        }
        // One of the arguments lists what the field returns; the others are the same for every element.
        let lists = zip(arguments, values).map { argument, value in argument.elements(value) }
        guard let position = lists.firstIndex(where: { $0 != nil }), let elements = lists[position] else {
            return .none
        }
        var keys: [[String]] = []
        for element in elements {
            values[position] = element
            let texts = values.compactMap(\.keyText)
            guard texts.count == values.count else { return .none }
            keys.append(candidates(texts))
        }
        return .list(keys)
    }

    private func candidates(_ texts: [String]) -> [String] {
        types.map { type in
            CacheKey.text(type: type.name, fields: zip(type.keyFields, texts).map { (name: $0, value: $1) })
        }
    }
}

extension SchemaIndex {
    /// The type of an argument, or of a field inside it; nil where the schema has none of that name.
    fileprivate func type(of path: ArgumentPath, in definition: FieldDefinition) -> ResolvedType? {
        var type = path.components.first.flatMap { definition.argument(named: $0)?.type }
        for name in path.components.dropFirst() {
            type = type.flatMap { types[$0.named].inputField(named: name)?.type }
        }
        return type
    }
}

/// The cache keys to which a field policy leads.
package enum PolicyTarget: Sendable {
    /// The arguments do not tell.
    case none
    /// The object has one of these keys, one for each type that it could be of.
    case object([String])
    /// As `object`, for each element.
    case list([[String]])
}

extension PolicyTarget: Hashable {
    /// Keys are compared by their bytes.
    package static func == (left: PolicyTarget, right: PolicyTarget) -> Bool {
        switch (left, right) {
        case (.none, .none): true
        case (.object(let left), .object(let right)): left.map(ExactText.init) == right.map(ExactText.init)
        case (.list(let left), .list(let right)):
            left.map { $0.map(ExactText.init) } == right.map { $0.map(ExactText.init) }
        default: false
        }
    }

    package func hash(into hasher: inout Hasher) {
        switch self {
        case .none: hasher.combine(0 as UInt8)
        case .object(let keys): hasher.combine(keys.map(ExactText.init))
        case .list(let keys): hasher.combine(keys.map { $0.map(ExactText.init) })
        }
    }
}
