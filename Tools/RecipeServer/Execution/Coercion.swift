import LarderGraphQL

/// Input coercion (sections 3.5 to 3.12 and 6.1.2 of the specification).
struct Coercion {
    let schema: SchemaIndex

    /// The variables of an operation from what the request holds.
    func variables(
        _ definitions: [VariableDefinition], from given: [String: Value]
    ) throws(ExecutionError) -> [String: Value] {
        var variables: [String: Value] = [:]
        for definition in definitions {
            let place = "Variable $\(definition.name)"
            guard let type = schema.resolve(definition.type), schema.types[type.named].kind.isInput else {
                let fault = "\(place) is of \(definition.type), which is no input type"
                throw ExecutionError(fault, at: definition.location)
            }
            do throws(ExecutionError) {
                if let value = given[definition.name] {
                    variables[definition.name] = try coerce(value, to: type, place)
                } else if let literal = definition.defaultValue {
                    variables[definition.name] = try coerce(literal, to: type, [:], place)
                } else if type.isNonNull {
                    throw ExecutionError("\(place) of type \(definition.type) is required")
                }
            } catch {
                throw ExecutionError(error.message, at: definition.location, code: "BAD_USER_INPUT")
            }
        }
        return variables
    }

    /// The arguments of a field, or of a directive. Those left out that have no default are left out.
    func arguments(
        _ given: [Argument], _ definitions: [InputDefinition], _ variables: [String: Value], of owner: String
    ) throws(ExecutionError) -> Arguments {
        var arguments: [String: Value] = [:]
        for definition in definitions {
            let place = "Argument \(definition.name) of \(owner)"
            let literal = given.first { $0.name == definition.name }?.value
            if let value = try field(definition, literal, variables, place) { arguments[definition.name] = value }
        }
        return Arguments(arguments)
    }

    /// An argument or a field of an input object; nil where it is left out and has no default.
    private func field(
        _ definition: InputDefinition, _ literal: Literal?, _ variables: [String: Value], _ place: String
    ) throws(ExecutionError) -> Value? {
        if let literal {
            guard case .variable(let name) = literal else {
                return try coerce(literal, to: definition.type, variables, place)
            }
            // A variable has been coerced to its own type already.
            if let value = variables[name] {
                guard value != .null || !definition.type.isNonNull else {
                    throw ExecutionError("\(place) must not be null")
                }
                return value
            }
        }
        if let literal = definition.defaultValue { return try coerce(literal, to: definition.type, [:], place) }
        guard !definition.type.isNonNull else { throw ExecutionError("\(place) is required") }
        return nil
    }

    // MARK: - Literals

    private func coerce(
        _ literal: Literal, to type: ResolvedType, _ variables: [String: Value], _ place: String
    ) throws(ExecutionError) -> Value {
        if case .variable(let name) = literal {
            let value = variables[name] ?? .null
            guard value != .null || !type.isNonNull else { throw ExecutionError("\(place) must not be null") }
            return value
        }
        if case .null = literal {
            guard !type.isNonNull else { throw ExecutionError("\(place) must not be null") }
            return .null
        }
        if let element = type.element {
            guard case .list(let literals) = literal else {
                return .list([try coerce(literal, to: element, variables, place)])
            }
            var values: [Value] = []
            for literal in literals { values.append(try coerce(literal, to: element, variables, place)) }
            return .list(values)
        }
        let named = schema.types[type.named]
        switch (named.kind, literal) {
        case (.inputObject, .object(let given)):
            return try object(of: named, names: given.map(\.name), place) { definition throws(ExecutionError) in
                let literal = given.first { $0.name == definition.name }?.value
                return try field(definition, literal, variables, "\(place).\(definition.name)")
            }
        case (.enumeration, .enumeration(let name)) where named.hasEnumValue(name): return .string(name)
        case (.enumeration, _), (.inputObject, _): break
        case (_, .int(let text)):
            if let number = Int64(text) { return try scalar(.int(number), named.name, place, isLiteral: true) }
            if let number = Double(text) { return try scalar(.float(number), named.name, place, isLiteral: true) }
        case (_, .float(let text)):
            if let number = Double(text) { return try scalar(.float(number), named.name, place, isLiteral: true) }
        case (_, .string(let text)): return try scalar(.string(text), named.name, place, isLiteral: true)
        case (_, .boolean(let value)): return try scalar(.boolean(value), named.name, place, isLiteral: true)
        default: break
        }
        throw ExecutionError("\(place) is not a \(named.name)")
    }

    // MARK: - Values of variables

    private func coerce(_ value: Value, to type: ResolvedType, _ place: String) throws(ExecutionError) -> Value {
        if value == .null {
            guard !type.isNonNull else { throw ExecutionError("\(place) must not be null") }
            return .null
        }
        if let element = type.element {
            guard case .list(let given) = value else { return .list([try coerce(value, to: element, place)]) }
            var values: [Value] = []
            for value in given { values.append(try coerce(value, to: element, place)) }
            return .list(values)
        }
        let named = schema.types[type.named]
        switch (named.kind, value) {
        case (.inputObject, .object(let given)):
            return try object(of: named, names: Array(given.keys), place) { definition throws(ExecutionError) in
                if let value = given[definition.name] {
                    return try coerce(value, to: definition.type, "\(place).\(definition.name)")
                }
                return try field(definition, nil, [:], "\(place).\(definition.name)")
            }
        case (.enumeration, .string(let name)) where named.hasEnumValue(name): return value
        case (.enumeration, _), (.inputObject, _): throw ExecutionError("\(place) is not a \(named.name)")
        default: return try scalar(value, named.name, place, isLiteral: false)
        }
    }

    private func object(
        of type: SchemaType, names: [String], _ place: String,
        _ field: (InputDefinition) throws(ExecutionError) -> Value?
    ) throws(ExecutionError) -> Value {
        for name in names where type.inputField(named: name) == nil {
            throw ExecutionError("\(place) has no field \(name)")
        }
        var values: [String: Value] = [:]
        for definition in type.inputFields {
            if let value = try field(definition) { values[definition.name] = value }
        }
        return .object(values)
    }

    private func scalar(
        _ value: Value, _ type: String, _ place: String, isLiteral: Bool
    ) throws(ExecutionError) -> Value {
        switch (type, value) {
        case ("Int", .int(let number)) where Int32(exactly: number) != nil: return value
        // JSON does not tell 1.0 from 1; a literal does.
        case ("Int", .float(let number)) where !isLiteral:
            if let whole = Int32(exactly: number) { return .int(Int64(whole)) }
        case ("Float", .float): return value
        case ("Float", .int(let number)): return .float(Double(number))
        case ("String", .string), ("ID", .string), ("Boolean", .boolean): return value
        case ("ID", .int(let number)): return .string(String(number))
        case ("Int", _), ("Float", _), ("String", _), ("ID", _), ("Boolean", _): break
        default: return value
        }
        throw ExecutionError("\(place) is not a value of \(type)")
    }
}
