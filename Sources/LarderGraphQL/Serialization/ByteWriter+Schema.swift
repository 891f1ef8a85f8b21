extension ByteWriter {
    mutating func write(_ type: SchemaType) {
        write(type.name)
        write(UInt64(type.kind.rawValue))
        write(type.fields.count)
        for field in type.fields { write(field) }
        write(type.interfaces)
        write(type.possibleTypes)
        write(type.enumValues)
        write(type.inputFields)
        write(optional: type.declaredKeyFields)
        write(optional: type.keyFields)
        write(type.declaredParts)
        write(type.parts)
        write(type.maxAge)
        write(type.isVersioned)
    }

    mutating func write(_ directive: DirectiveDefinition) {
        write(directive.name)
        write(directive.arguments)
        write(directive.isRepeatable)
        write(UInt64(directive.places.rawValue))
    }

    private mutating func write(_ field: FieldDefinition) {
        write(field.name)
        write(field.type)
        write(field.arguments)
        write(field.maxAge)
        write(field.declaredPolicy)
        write(field.policy)
        write(field.declaredParts)
        write(field.parts)
    }

    private mutating func write(_ inputs: [InputDefinition]) {
        write(inputs.count)
        for input in inputs {
            write(input.name)
            write(input.type)
            write(input.defaultValue != nil)
            if let value = input.defaultValue { write(value) }
        }
    }

    private mutating func write(_ type: ResolvedType) {
        write(type.named)
        write(type.listDepth)
        write(type.nonNullLevels)
    }

    private mutating func write(optional strings: [String]?) {
        write(strings != nil)
        if let strings { write(strings) }
    }

    private mutating func write(_ policy: FieldPolicy?) {
        write(policy != nil)
        guard let policy else { return }
        write(policy.keyArgs.count)
        for path in policy.keyArgs { write(path.components) }
        write(policy.paginationArgs)
        write(policy.maxLimit)
    }

    private mutating func write(_ policy: PartPolicy?) {
        let number: UInt64 =
            switch policy {
            case nil: 0
            case .merge: 1
            case .replace: 2
            }
        write(number)
    }

    private mutating func write(_ literal: Literal) {
        write(UInt64(LiteralTag(literal).rawValue))
        switch literal {
        case .variable(let text), .int(let text), .float(let text), .string(let text), .enumeration(let text):
            write(text)
        case .boolean(let value):
            write(value)
        case .null:
            break
        case .list(let elements):
            write(elements.count)
            for element in elements { write(element) }
        case .object(let fields):
            write(fields.count)
            for field in fields {
                write(field.name)
                write(field.value)
            }
        }
    }
}

/// The numbers are stored, in compiled schemas.
enum LiteralTag: UInt8 {
    case variable = 0
    case int = 1
    case float = 2
    case string = 3
    case boolean = 4
    case null = 5
    case enumeration = 6
    case list = 7
    case object = 8

    init(_ literal: Literal) {
        switch literal {
        case .variable: self = .variable
        case .int: self = .int
        case .float: self = .float
        case .string: self = .string
        case .boolean: self = .boolean
        case .null: self = .null
        case .enumeration: self = .enumeration
        case .list: self = .list
        case .object: self = .object
        }
    }
}
