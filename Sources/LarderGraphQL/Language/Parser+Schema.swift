extension Parser {
    mutating func parseSchemaDocument() throws(SyntaxError) -> SchemaDocument {
        var document = SchemaDocument()
        while token.kind != .end {
            let location = token.location
            let description = try parseDescription()
            if description == nil, try skipKeyword("extend") {
                try parseDefinition(into: &document, description: nil, isExtension: true, at: location)
            } else {
                try parseDefinition(into: &document, description: description, isExtension: false, at: token.location)
            }
        }
        return document
    }

    private mutating func parseDescription() throws(SyntaxError) -> String? {
        guard token.kind == .string || token.kind == .blockString else { return nil }
        return try parseStringValue()
    }

    private mutating func parseDefinition(
        into document: inout SchemaDocument, description: String?, isExtension: Bool, at location: Location
    ) throws(SyntaxError) {
        if try skipKeyword("schema") {
            let schema = try parseSchema(description: description, isExtension: isExtension, at: location)
            document.schemas.append(schema)
        } else if !isExtension, try skipKeyword("directive") {
            document.directives.append(try parseDirectiveDefinition(description: description, at: location))
        } else if let kind = try parseTypeKeyword() {
            let type = try parseType(kind, description: description, isExtension: isExtension, at: location)
            document.types.append(type)
        } else {
            throw unexpected("a type system definition")
        }
    }

    private mutating func parseTypeKeyword() throws(SyntaxError) -> TypeKind? {
        if try skipKeyword("type") { return .object }
        if try skipKeyword("interface") { return .interface }
        if try skipKeyword("union") { return .union }
        if try skipKeyword("enum") { return .enumeration }
        if try skipKeyword("input") { return .inputObject }
        if try skipKeyword("scalar") { return .scalar }
        return nil
    }

    private mutating func parseSchema(
        description: String?, isExtension: Bool, at location: Location
    ) throws(SyntaxError) -> SchemaDocument.SchemaDefinition {
        let directives = try parseDirectives(isConstant: true)
        var roots: [SchemaDocument.RootType] = []
        if !isExtension, token.kind != .braceOpen { throw unexpected("'{'") }
        if try skip(.braceOpen) {
            repeat {
                guard token.kind == .name, let kind = OperationKind.allCases.first(where: { isKeyword($0) }) else {
                    throw unexpected("'query', 'mutation' or 'subscription'")
                }
                try advance()
                try expect(.colon)
                roots.append(.init(kind: kind, type: try parseTypeName()))
            } while try !skip(.braceClose)
        }
        if isExtension, roots.isEmpty, directives.isEmpty { throw unexpected("what the extension adds") }
        return .init(
            isExtension: isExtension, description: description, directives: directives, roots: roots,
            location: location)
    }

    private func isKeyword(_ kind: OperationKind) -> Bool {
        switch kind {
        case .query: isKeyword("query")
        case .mutation: isKeyword("mutation")
        case .subscription: isKeyword("subscription")
        }
    }

    private mutating func parseTypeName() throws(SyntaxError) -> SchemaDocument.TypeName {
        let location = token.location
        return .init(name: try parseName(), location: location)
    }

    // MARK: - Types

    private mutating func parseType(
        _ kind: TypeKind, description: String?, isExtension: Bool, at location: Location
    ) throws(SyntaxError) -> SchemaDocument.TypeDefinition {
        var type = SchemaDocument.TypeDefinition(
            kind: kind, isExtension: isExtension, name: try parseName(), description: description, location: location)
        if kind == .object || kind == .interface { type.interfaces = try parseInterfaces() }
        type.directives = try parseDirectives(isConstant: true)
        switch kind {
        case .scalar: break
        case .object, .interface: type.fields = try parseFieldDefinitions()
        case .union: type.members = try parseMembers()
        case .enumeration: type.enumValues = try parseEnumValues()
        case .inputObject:
            if try skip(.braceOpen) { type.inputFields = try parseInputValues(until: .braceClose) }
        }
        let addsNothing =
            type.interfaces.isEmpty && type.directives.isEmpty && type.fields.isEmpty
            && type.members.isEmpty && type.enumValues.isEmpty && type.inputFields.isEmpty
        if isExtension, addsNothing { throw unexpected("what the extension adds") }
        return type
    }

    private mutating func parseInterfaces() throws(SyntaxError) -> [SchemaDocument.TypeName] {
        guard try skipKeyword("implements") else { return [] }
        _ = try skip(.ampersand)
        var interfaces: [SchemaDocument.TypeName] = []
        repeat { interfaces.append(try parseTypeName()) } while try skip(.ampersand)
        return interfaces
    }

    private mutating func parseMembers() throws(SyntaxError) -> [SchemaDocument.TypeName] {
        guard try skip(.equals) else { return [] }
        _ = try skip(.pipe)
        var members: [SchemaDocument.TypeName] = []
        repeat { members.append(try parseTypeName()) } while try skip(.pipe)
        return members
    }

    private mutating func parseFieldDefinitions() throws(SyntaxError) -> [SchemaDocument.FieldDefinition] {
        guard try skip(.braceOpen) else { return [] }
        var fields: [SchemaDocument.FieldDefinition] = []
        repeat {
            let description = try parseDescription()
            let location = token.location
            let name = try parseName()
            let arguments = try skip(.parenthesisOpen) ? try parseInputValues(until: .parenthesisClose) : []
            try expect(.colon)
            let type = try parseType()
            fields.append(
                .init(
                    name: name, description: description, arguments: arguments, type: type,
                    directives: try parseDirectives(isConstant: true), location: location))
        } while try !skip(.braceClose)
        return fields
    }

    private mutating func parseInputValues(
        until end: Token.Kind
    ) throws(SyntaxError) -> [SchemaDocument.InputValueDefinition] {
        var values: [SchemaDocument.InputValueDefinition] = []
        repeat {
            let description = try parseDescription()
            let location = token.location
            let name = try parseName()
            try expect(.colon)
            let type = try parseType()
            let defaultValue = try skip(.equals) ? try parseLiteral(isConstant: true) : nil
            values.append(
                .init(
                    name: name, description: description, type: type, defaultValue: defaultValue,
                    directives: try parseDirectives(isConstant: true), location: location))
        } while try !skip(end)
        return values
    }

    private mutating func parseEnumValues() throws(SyntaxError) -> [SchemaDocument.EnumValueDefinition] {
        guard try skip(.braceOpen) else { return [] }
        var values: [SchemaDocument.EnumValueDefinition] = []
        repeat {
            let description = try parseDescription()
            let location = token.location
            if isKeyword("true") || isKeyword("false") || isKeyword("null") { throw unexpected("an enum value") }
            let name = try parseName()
            values.append(
                .init(
                    name: name, description: description, directives: try parseDirectives(isConstant: true),
                    location: location))
        } while try !skip(.braceClose)
        return values
    }

    // MARK: - Directives

    private mutating func parseDirectiveDefinition(
        description: String?, at location: Location
    ) throws(SyntaxError) -> SchemaDocument.DirectiveDefinition {
        try expect(.at)
        let name = try parseName()
        let arguments = try skip(.parenthesisOpen) ? try parseInputValues(until: .parenthesisClose) : []
        let isRepeatable = try skipKeyword("repeatable")
        try expectKeyword("on")
        _ = try skip(.pipe)
        var places: DirectivePlaces = []
        repeat {
            let location = token.location
            let name = try parseName()
            guard let place = DirectivePlaces(named: name) else {
                throw error("Expected a directive location, found '\(name)'", at: location)
            }
            places.insert(place)
        } while try skip(.pipe)
        return .init(
            name: name, description: description, arguments: arguments, isRepeatable: isRepeatable, places: places,
            location: location)
    }
}
