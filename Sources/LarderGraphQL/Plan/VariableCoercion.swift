extension OperationDefinition {
    /// Checks the variables against their definitions and fills in the defaults (section 6.1.2 of the specification).
    ///
    /// A value that may stand for a list of one stays as it was given. Numbers are not limited to 32 bits.
    package func coerce(_ given: [String: Value], in schema: SchemaIndex) throws(PlanError) -> [String: Value] {
        // Nearly always it is what was given.
        var coerced = given
        for definition in variables {
            guard let type = schema.resolve(definition.type) else {
                throw PlanError(.variable, "The variable $\(definition.name) has the unknown type \(definition.type)")
            }
            if let value = given[definition.name] {
                if let reason = misfit(value, type, schema, "$\(definition.name)") {
                    throw PlanError(.variable, reason, location: definition.location)
                }
            } else if let standard = definition.defaultValue?.resolved([:]) {
                coerced[definition.name] = standard
            } else if type.isNonNull {
                throw PlanError(
                    .variable, "The variable $\(definition.name) of type \(definition.type) is required",
                    location: definition.location)
            }
        }
        if let unknown = given.keys.filter({ name in !variables.contains { $0.name == name } }).min() {
            throw PlanError(.variable, "The operation has no variable $\(unknown)")
        }
        return coerced
    }
}

/// Why a value is not of a type, or nil. The recursion is as deep as the value.
///
/// - Parameter path: Where it stands, in words for a person; worked out where there is something to say.
private func misfit(
    _ value: Value, _ type: ResolvedType, _ schema: SchemaIndex, _ path: @autoclosure () -> String
) -> String? {
    if case .null = value {
        guard type.isNonNull else { return nil }
        return "\(path()) is null, and its type \(schema.description(of: type)) does not allow it"
    }
    if let element = type.element {
        guard case .list(let elements) = value else { return misfit(value, element, schema, path()) }
        for (index, member) in elements.enumerated() {
            if let reason = misfit(member, element, schema, "\(path())[\(index)]") { return reason }
        }
        return nil
    }
    let named = schema.types[type.named]
    switch (named.kind, value) {
    case (.inputObject, .object(let members)):
        for (name, member) in members.sorted(by: { $0.key < $1.key }) {
            guard let field = named.inputField(named: name) else {
                return "\(path()) has no field \(name) in \(named.name)"
            }
            if let reason = misfit(member, field.type, schema, "\(path()).\(name)") { return reason }
        }
        let missing = named.inputFields.first { $0.isRequired && members[$0.name] == nil }
        return missing.map { "\(path()).\($0.name) is required" }
    case (.enumeration, .string(let name)):
        return named.hasEnumValue(name) ? nil : "\(path()) is \(name), which is no value of \(named.name)"
    case (.scalar, _): return isScalar(value, named.name) ? nil : "\(path()) is not of type \(named.name)"
    default: return "\(path()) is not of type \(named.name)"
    }
}

private func isScalar(_ value: Value, _ name: String) -> Bool {
    switch (name, value) {
    case ("Int", .int), ("Float", .int), ("Float", .float), ("Float", .number), ("String", .string),
        ("ID", .string), ("ID", .int), ("ID", .number), ("Boolean", .boolean):
        true
    case ("Int", _), ("Float", _), ("String", _), ("ID", _), ("Boolean", _): false
    default: true
    }
}
