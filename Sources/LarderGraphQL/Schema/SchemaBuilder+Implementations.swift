extension SchemaBuilder {
    /// Checks that each type has what its interfaces promise (section 3.6, `IsValidImplementation`).
    func checkImplementations(in schema: SchemaIndex) throws(SchemaError) {
        for (id, type) in schema.types.enumerated() where !type.interfaces.isEmpty {
            for interfaceID in type.interfaces {
                if let fault = Implementation(of: interfaceID, by: id, in: schema).fault {
                    let part = types[id].parts[0]
                    throw error(.implementation, fault, part.type.location, part.source)
                }
            }
        }
    }
}

private struct Implementation {
    let schema: SchemaIndex
    let type: SchemaType
    let interface: SchemaType
    /// What is wrong; nil where nothing is.
    private(set) var fault: String?

    init(of interfaceID: SchemaIndex.TypeID, by id: SchemaIndex.TypeID, in schema: SchemaIndex) {
        self.schema = schema
        type = schema.types[id]
        interface = schema.types[interfaceID]
        fault = findFault()
    }

    private func findFault() -> String? {
        for inherited in interface.interfaces where !type.interfaces.contains(inherited) {
            let name = schema.types[inherited].name
            return "\(type.name) implements \(interface.name) and not \(name), which \(interface.name) implements"
        }
        for promised in interface.fields {
            let place = "\(interface.name).\(promised.name)"
            guard let field = type.field(named: promised.name) else {
                return "\(type.name) implements \(interface.name) and has no field \(promised.name)"
            }
            guard isSubtype(field.type, of: promised.type) else {
                return "\(type.name).\(field.name) is \(schema.description(of: field.type)), and \(place) is "
                    + schema.description(of: promised.type)
            }
            if let fault = faultInArguments(of: field, promised: promised, place: place) { return fault }
        }
        return nil
    }

    private func faultInArguments(of field: FieldDefinition, promised: FieldDefinition, place: String) -> String? {
        for argument in promised.arguments {
            guard let own = field.argument(named: argument.name) else {
                return "\(type.name).\(field.name) has no argument \(argument.name), which \(place) has"
            }
            guard own.type == argument.type else {
                return "Argument \(argument.name) of \(type.name).\(field.name) is "
                    + "\(schema.description(of: own.type)), and that of \(place) is "
                    + schema.description(of: argument.type)
            }
        }
        for argument in field.arguments where argument.isRequired && promised.argument(named: argument.name) == nil {
            return "\(type.name).\(field.name) requires argument \(argument.name), which \(place) does not have"
        }
        return nil
    }

    private func isSubtype(_ type: ResolvedType, of other: ResolvedType) -> Bool {
        if other.isNonNull {
            return type.isNonNull && isSubtype(type.nullable, of: other.nullable)
        }
        if let element = other.element {
            guard let own = type.nullable.element else { return false }
            return isSubtype(own, of: element)
        }
        guard !type.isList else { return false }
        if type.named == other.named { return true }
        return schema.types[type.named].interfaces.contains(other.named)
            || (schema.types[other.named].kind == .union && schema.isPossible(type.named, of: other.named))
    }
}
