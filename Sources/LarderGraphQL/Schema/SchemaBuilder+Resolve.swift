extension SchemaBuilder {
    /// The type with names resolved and its own rules checked (section 3.6 to 3.10 of the specification).
    func resolve(_ id: SchemaIndex.TypeID) throws(SchemaError) -> SchemaType {
        let collected = types[id]
        var names = DistinctNames()
        var fields: [FieldDefinition] = []
        var interfaces: [SchemaIndex.TypeID] = []
        var enumValues: [String] = []
        var inputFields: [InputDefinition] = []
        var maxAge: Int?
        for part in collected.parts {
            let owner = collected.name
            for interface in part.type.interfaces {
                interfaces.append(try resolve(interface, of: id, after: interfaces, source: part.source))
            }
            for field in part.type.fields {
                try names.insert(field.name, "Field \(owner).\(field.name)", field.location, part.source)
                fields.append(try resolve(field, owner: owner, source: part.source))
            }
            for member in part.type.members {
                let member = (name: member, id: try typeID(of: member, source: part.source))
                try names.insert(
                    member.name.name, "Member \(member.name.name) of \(owner)", member.name.location, part.source)
                guard types[member.id].kind == .object else {
                    throw error(
                        .invalidType, "Member \(member.name.name) of union \(owner) is no object type",
                        member.name.location, part.source)
                }
            }
            for value in part.type.enumValues {
                try names.insert(value.name, "Enum value \(owner).\(value.name)", value.location, part.source)
                enumValues.append(value.name)
            }
            for field in part.type.inputFields {
                try names.insert(field.name, "Field \(owner).\(field.name)", field.location, part.source)
                inputFields.append(try resolve(field, owner: owner, source: part.source))
            }
            let ofType = part.type.directives.filter { !$0.arguments.contains { $0.name == "forField" } }
            maxAge = try self.maxAge(in: ofType, source: part.source) ?? maxAge
        }
        if collected.kind != .scalar, names.isEmpty {
            throw error(
                .invalidType, "\(collected.kind.noun) \(collected.name) has nothing in it",
                collected.parts[0].type.location, collected.parts[0].source)
        }
        return SchemaType(
            name: collected.name, kind: collected.kind, fields: fields, interfaces: interfaces,
            enumValues: enumValues, inputFields: inputFields, maxAge: maxAge)
    }

    func resolve(_ directive: CollectedDirective) throws(SchemaError) -> DirectiveDefinition {
        let definition = directive.definition
        let arguments = try resolve(
            definition.arguments, owner: "@\(definition.name)", source: directive.source)
        return DirectiveDefinition(
            name: definition.name, arguments: arguments, isRepeatable: definition.isRepeatable,
            places: definition.places)
    }

    private func resolve(
        _ interface: SchemaDocument.TypeName, of id: SchemaIndex.TypeID, after others: [SchemaIndex.TypeID],
        source: String?
    ) throws(SchemaError) -> SchemaIndex.TypeID {
        let interfaceID = try typeID(of: interface, source: source)
        let owner = types[id].name
        let message: String
        if types[interfaceID].kind != .interface {
            message = "\(owner) implements \(interface.name), which is no interface"
        } else if interfaceID == id {
            message = "Interface \(owner) implements itself"
        } else if others.contains(interfaceID) {
            throw error(.duplicate, "\(owner) implements \(interface.name) twice", interface.location, source)
        } else {
            return interfaceID
        }
        throw error(.implementation, message, interface.location, source)
    }

    private func resolve(
        _ field: SchemaDocument.FieldDefinition, owner: String, source: String?
    ) throws(SchemaError) -> FieldDefinition {
        let type = try resolve(field.type, of: "\(owner).\(field.name)", at: field.location, source: source)
        guard types[type.named].kind.isOutput else {
            throw error(
                .invalidType, "Field \(owner).\(field.name) is of input type \(types[type.named].name)",
                field.location, source)
        }
        let arguments = try resolve(field.arguments, owner: "\(owner).\(field.name)", source: source)
        return FieldDefinition(
            name: field.name, type: type, arguments: arguments,
            maxAge: try maxAge(in: field.directives, source: source))
    }

    private func resolve(
        _ arguments: [SchemaDocument.InputValueDefinition], owner: String, source: String?
    ) throws(SchemaError) -> [InputDefinition] {
        guard !arguments.isEmpty else { return [] }
        var names = DistinctNames()
        var resolved: [InputDefinition] = []
        for argument in arguments {
            try names.insert(argument.name, "Argument \(argument.name) of \(owner)", argument.location, source)
            resolved.append(try resolve(argument, owner: owner, source: source))
        }
        return resolved
    }

    private func resolve(
        _ input: SchemaDocument.InputValueDefinition, owner: String, source: String?
    ) throws(SchemaError) -> InputDefinition {
        let type = try resolve(input.type, of: "\(owner).\(input.name)", at: input.location, source: source)
        guard types[type.named].kind.isInput else {
            throw error(
                .invalidType, "\(input.name) of \(owner) is of \(types[type.named].name), which is no input type",
                input.location, source)
        }
        return InputDefinition(name: input.name, type: type, defaultValue: input.defaultValue)
    }

    private func resolve(
        _ reference: TypeReference, of place: String, at location: Location, source: String?
    ) throws(SchemaError) -> ResolvedType {
        guard let named = typeIDs[reference.name] else {
            throw error(.unknownType, "Unknown type \(reference.name) of \(place)", location, source)
        }
        guard let type = ResolvedType(reference, named: named) else {
            throw error(
                .invalidType, "\(place) nests more than \(ResolvedType.deepestList) lists", location, source)
        }
        return type
    }

    /// The argument `maxAge` of the last `@cacheControl`; nil where there is none.
    func maxAge(in directives: [Directive], source: String?) throws(SchemaError) -> Int? {
        guard let directive = directives.last(where: { $0.name == "cacheControl" }),
            let value = directive.arguments.first(where: { $0.name == "maxAge" })?.value
        else { return nil }
        switch value {
        case .null: return nil
        // A number that does not fit exceeds every age that matters, so it is capped.
        case .int(let text) where !text.hasPrefix("-"): return min(Int(text) ?? .max, Int(Int32.max))
        default:
            throw error(
                .policy, "maxAge of @cacheControl is no Int of 0 or more, in seconds", directive.location, source)
        }
    }
}

/// Names of one scope, none of which may come twice.
private struct DistinctNames {
    private var names: Set<String> = []

    var isEmpty: Bool { names.isEmpty }

    mutating func insert(
        _ name: String, _ what: @autoclosure () -> String, _ location: Location, _ source: String?
    ) throws(SchemaError) {
        guard names.insert(name).inserted else {
            throw SchemaError(.duplicate, "\(what()) is defined twice", location: location, sourceName: source)
        }
    }
}
