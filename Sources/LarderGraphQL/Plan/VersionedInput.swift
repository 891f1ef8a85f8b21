/// An input object of a mutation that changes an object with versions, and does not say which version it changes.
package struct VersionedInput: Sendable {
    /// The variable whose value the input object is.
    package let variable: String
    /// Of the object.
    package let key: String

    /// Those among the arguments of a mutation's fields. A variable is filled in only where it is the whole argument,
    /// and its input object has the field `_version`.
    package static func all(_ plan: Plan, _ variables: [String: Value], _ schema: SchemaIndex) -> [VersionedInput] {
        guard plan.kind == .mutation else { return [] }
        let root = plan.selections[plan.root]
        let fields = root.types.first.map { plan.fields[plan.cases[$0.caseIndex].fields] } ?? []
        return fields.flatMap { field -> [VersionedInput] in
            guard case .object(let inner) = field.content, let key = field.key,
                let type = plan.selections[inner].types.first, plan.cases[type.caseIndex].version != nil,
                plan.selections[inner].types.count == 1,
                let keyFields = schema.type(named: type.name).flatMap({ schema.types[$0].keyFields })
            else { return [] }
            return plan.keys[key].arguments.compactMap { argument in
                guard case .variable(let name) = argument.value, let input = argument.type, !input.isList,
                    schema.types[input.named].inputField(named: VersionField.version) != nil,
                    case .object(let members)? = variables[name], members[VersionField.version] == nil
                else { return nil }
                let texts = keyFields.compactMap { members[$0]?.keyText }
                guard texts.count == keyFields.count else { return nil }
                let fields = zip(keyFields, texts).map { (name: $0, value: $1) }
                return VersionedInput(variable: name, key: CacheKey.text(type: type.name, fields: fields))
            }
        }
    }
}

extension Plan {
    /// The cache keys of the objects that a mutation's arguments name: of the type that the field answers, by arguments
    /// or by an input object's fields that are called as the type's key fields.
    package func namedObjects(_ variables: [String: Value], _ schema: SchemaIndex) -> [String] {
        guard kind == .mutation else { return [] }
        let fields = selections[root].types.first.map { self.fields[cases[$0.caseIndex].fields] } ?? []
        return fields.flatMap { field -> [String] in
            guard case .object(let inner) = field.content, let key = field.key else { return [] }
            var arguments: [String: Value] = [:]
            for argument in keys[key].arguments { arguments[argument.name] = argument.value.resolved(variables) }
            let inputs =
                [arguments] + arguments.values.compactMap { if case .object(let input) = $0 { input } else { nil } }
            return selections[inner].types.flatMap { type -> [String] in
                guard let keyFields = schema.type(named: type.name).flatMap({ schema.types[$0].keyFields }) else {
                    return []
                }
                return inputs.compactMap { input in
                    let texts = keyFields.compactMap { input[$0]?.keyText }
                    guard !keyFields.isEmpty, texts.count == keyFields.count else { return nil }
                    return CacheKey.text(type: type.name, fields: zip(keyFields, texts).map { (name: $0, value: $1) })
                }
            }
        }
    }
}
