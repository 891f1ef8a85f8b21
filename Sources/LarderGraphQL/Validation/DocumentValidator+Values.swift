extension DocumentValidator {
    // MARK: - Arguments

    mutating func check(
        _ arguments: [Argument], against definitions: [InputDefinition], owner: String, at location: Location
    ) {
        if !arguments.isEmpty { checkUniqueness(arguments) }
        for argument in arguments {
            guard let definition = definitions.first(where: { $0.name == argument.name }) else {
                report(.argumentNames, "\(owner) has no argument \(argument.name)", at: argument.location)
                checkUnknown([argument], isUniquenessChecked: true)
                continue
            }
            check(
                argument.value, is: definition.type, placeHasDefault: definition.defaultValue != nil,
                place: "argument \(argument.name) of \(owner)", at: argument.location)
        }
        for definition in definitions where definition.isRequired {
            if !arguments.contains(where: { $0.name == definition.name }) {
                let type = schema.description(of: definition.type)
                report(
                    .requiredArguments, "\(owner) requires argument \(definition.name) of type \(type)", at: location)
            }
        }
    }

    private mutating func checkUniqueness(_ arguments: [Argument]) {
        var names: Set<String> = []
        for argument in arguments where !names.insert(argument.name).inserted {
            report(.argumentUniqueness, "Argument \(argument.name) is given twice", at: argument.location)
        }
    }

    /// Arguments of what does not exist: only their variables are of interest.
    mutating func checkUnknown(_ arguments: [Argument], isUniquenessChecked: Bool = false) {
        if !isUniquenessChecked { checkUniqueness(arguments) }
        for argument in arguments { collectVariables(in: argument.value, at: argument.location) }
    }

    // MARK: - Directives

    mutating func check(_ directives: [Directive], at place: DirectivePlaces) {
        guard !directives.isEmpty else { return }
        var names: Set<String> = []
        for directive in directives {
            let owner = "@\(directive.name)"
            guard let definition = schema.directive(named: directive.name) else {
                report(.directivesAreDefined, "Unknown directive \(owner)", at: directive.location)
                checkUnknown(directive.arguments)
                continue
            }
            if !definition.places.contains(place) {
                let message = "\(owner) cannot stand on \(place.description)"
                report(.directivesAreInValidLocations, message, at: directive.location)
            }
            if !names.insert(directive.name).inserted, !definition.isRepeatable {
                report(.directivesAreUniquePerLocation, "\(owner) stands here twice", at: directive.location)
            }
            check(directive.arguments, against: definition.arguments, owner: owner, at: directive.location)
        }
    }

    // MARK: - Literals

    /// Checks a literal against the type of its place, by the input coercion rules of section 3.
    mutating func check(
        _ literal: Literal, is type: ResolvedType, placeHasDefault: Bool, place: String, at location: Location,
        depth: Int = 0
    ) {
        guard depth <= ParserLimits.deepest else {
            report(.complexity, "The value of \(place) is nested too deep", at: location)
            return
        }
        switch literal {
        case .variable(let name):
            uses.variables.append(
                .init(name: name, expected: type, placeHasDefault: placeHasDefault, location: location))
        case .null:
            if type.isNonNull { reportMismatch(literal, type, place, location) }
        case .list(let elements) where type.isList:
            guard let element = type.nullable.element else { return }
            for item in elements {
                check(item, is: element, placeHasDefault: false, place: place, at: location, depth: depth + 1)
            }
        default:
            // A single value stands for a list of one, at any depth of lists; also inside a list of lists, where the
            // specification of October 2021 refused what servers and later editions accept.
            if type.isList {
                let innermost = ResolvedType(named: type.named)
                check(
                    literal, is: innermost, placeHasDefault: false, place: place, at: location, depth: depth + 1)
            } else {
                check(literal, isNamed: type, place: place, at: location, depth: depth)
            }
        }
    }

    private mutating func check(
        _ literal: Literal, isNamed type: ResolvedType, place: String, at location: Location, depth: Int
    ) {
        let definition = schema.types[type.named]
        let fits: Bool
        switch definition.kind {
        case .scalar:
            guard let isOfBuiltIn = literal.isValue(ofScalar: definition.name) else {
                // What a custom scalar takes is the server's to say.
                collectVariables(in: literal, at: location, depth: depth)
                return
            }
            fits = isOfBuiltIn
        case .enumeration:
            guard case .enumeration(let name) = literal else {
                fits = false
                break
            }
            fits = definition.hasEnumValue(name)
        case .inputObject:
            if case .object(let fields) = literal {
                check(fields, of: definition, place: place, at: location, depth: depth)
                return
            }
            fits = false
        case .object, .interface, .union:
            fits = false
        }
        if !fits {
            reportMismatch(literal, type, place, location)
            collectVariables(in: literal, at: location, depth: depth)
        }
    }

    private mutating func check(
        _ fields: [Literal.ObjectField], of type: SchemaType, place: String, at location: Location, depth: Int
    ) {
        checkNames(of: fields, of: type, place: place, at: location)
        for field in fields {
            guard let definition = type.inputField(named: field.name) else {
                collectVariables(in: field.value, at: location, depth: depth + 1)
                continue
            }
            check(
                field.value, is: definition.type, placeHasDefault: definition.defaultValue != nil,
                place: "\(type.name).\(field.name)", at: location, depth: depth + 1)
        }
    }

    private mutating func checkNames(
        of fields: [Literal.ObjectField], of type: SchemaType, place: String, at location: Location
    ) {
        var names: Set<String> = []
        for field in fields {
            if !names.insert(field.name).inserted {
                report(
                    .inputObjectFieldUniqueness, "Field \(field.name) is given twice in \(place)", at: location)
            } else if type.inputField(named: field.name) == nil {
                report(
                    .inputObjectFieldNames, "\(type.name) has no field \(field.name), in \(place)", at: location)
            }
        }
        for definition in type.inputFields where definition.isRequired && !names.contains(definition.name) {
            let message =
                "\(type.name) requires field \(definition.name) of type "
                + "\(schema.description(of: definition.type)), in \(place)"
            report(.inputObjectRequiredFields, message, at: location)
        }
    }

    private mutating func reportMismatch(
        _ literal: Literal, _ type: ResolvedType, _ place: String, _ location: Location
    ) {
        let message = "\(literal.summary) is no value of type \(schema.description(of: type)), for \(place)"
        report(.valuesOfCorrectType, message, at: location)
    }

    private mutating func collectVariables(in literal: Literal, at location: Location, depth: Int = 0) {
        guard depth <= ParserLimits.deepest else { return }
        switch literal {
        case .variable(let name):
            uses.variables.append(.init(name: name, expected: nil, placeHasDefault: false, location: location))
        case .list(let elements):
            for element in elements { collectVariables(in: element, at: location, depth: depth + 1) }
        case .object(let fields):
            for field in fields { collectVariables(in: field.value, at: location, depth: depth + 1) }
        default:
            break
        }
    }
}

extension Literal {
    /// Whether a literal that is no variable, list or null is a value of a built-in scalar; nil for other scalars.
    fileprivate func isValue(ofScalar name: String) -> Bool? {
        switch name {
        case "Int":
            guard case .int(let text) = self else { return false }
            return Int32(text) != nil
        case "Float":
            switch self {
            case .int(let text), .float(let text): return Double(text)?.isFinite == true
            default: return false
            }
        case "String":
            if case .string = self { return true }
            return false
        case "Boolean":
            if case .boolean = self { return true }
            return false
        case "ID":
            switch self {
            case .string, .int: return true
            default: return false
            }
        default:
            return nil
        }
    }

    /// The literal for a message, without what is inside of it.
    fileprivate var summary: String {
        switch self {
        case .list: "A list"
        case .object: "An object"
        case .string(let text) where text.utf8.count > 64: "A string"
        default: description
        }
    }
}
