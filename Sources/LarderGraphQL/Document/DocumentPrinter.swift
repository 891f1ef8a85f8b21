struct DocumentPrinter {
    private(set) var text = ""
    private var indentation = 0

    mutating func print(_ document: Document) {
        for operation in document.operations {
            separateDefinitions()
            print(operation)
        }
        for fragment in document.fragments {
            separateDefinitions()
            text += "fragment \(fragment.name) on \(fragment.typeCondition)"
            print(fragment.directives)
            print(fragment.selections)
            text += "\n"
        }
    }

    private mutating func separateDefinitions() {
        if !text.isEmpty { text += "\n" }
    }

    private mutating func print(_ operation: OperationDefinition) {
        let isShorthand =
            operation.kind == .query && operation.name == nil && operation.variables.isEmpty
            && operation.directives.isEmpty
        if !isShorthand {
            text += operation.kind.rawValue
            if let name = operation.name { text += " \(name)" }
            print(operation.variables)
            print(operation.directives)
        }
        print(operation.selections)
        text += "\n"
    }

    private mutating func print(_ variables: [VariableDefinition]) {
        guard !variables.isEmpty else { return }
        text += "("
        for (index, variable) in variables.enumerated() {
            if index > 0 { text += ", " }
            text += "$\(variable.name): \(variable.type)"
            if let value = variable.defaultValue {
                text += " = "
                print(value)
            }
            print(variable.directives)
        }
        text += ")"
    }

    private mutating func print(_ selections: [Selection]) {
        guard !selections.isEmpty else { return }
        if text.last.map({ $0 != "\n" }) ?? false { text += " " }
        text += "{\n"
        indentation += 1
        for selection in selections {
            indent()
            print(selection)
            text += "\n"
        }
        indentation -= 1
        indent()
        text += "}"
    }

    private mutating func indent() {
        for _ in 0..<indentation { text += "  " }
    }

    private mutating func print(_ selection: Selection) {
        switch selection {
        case .field(let field):
            if let alias = field.alias { text += "\(alias): " }
            text += field.name
            print(field.arguments)
            print(field.directives)
            print(field.selections)
        case .fragmentSpread(let spread):
            text += "...\(spread.name)"
            print(spread.directives)
        case .inlineFragment(let fragment):
            text += "..."
            if let type = fragment.typeCondition { text += " on \(type)" }
            print(fragment.directives)
            print(fragment.selections)
        }
    }

    private mutating func print(_ arguments: [Argument]) {
        guard !arguments.isEmpty else { return }
        text += "("
        for (index, argument) in arguments.enumerated() {
            if index > 0 { text += ", " }
            text += "\(argument.name): "
            print(argument.value)
        }
        text += ")"
    }

    private mutating func print(_ directives: [Directive]) {
        for directive in directives {
            text += " @\(directive.name)"
            print(directive.arguments)
        }
    }

    mutating func print(_ literal: Literal) {
        switch literal {
        case .variable(let name): text += "$\(name)"
        case .int(let number), .float(let number): text += number
        case .string(let value): print(quoted: value)
        case .boolean(let value): text += value ? "true" : "false"
        case .null: text += "null"
        case .enumeration(let name): text += name
        case .list(let elements):
            text += "["
            for (index, element) in elements.enumerated() {
                if index > 0 { text += ", " }
                print(element)
            }
            text += "]"
        case .object(let fields):
            text += "{"
            for (index, field) in fields.enumerated() {
                if index > 0 { text += ", " }
                text += "\(field.name): "
                print(field.value)
            }
            text += "}"
        }
    }

    private mutating func print(quoted value: String) {
        text += "\""
        for scalar in value.unicodeScalars {
            switch scalar {
            case "\"": text += "\\\""
            case "\\": text += "\\\\"
            case "\n": text += "\\n"
            case "\r": text += "\\r"
            case "\t": text += "\\t"
            case "\u{8}": text += "\\b"
            case "\u{C}": text += "\\f"
            case _ where scalar.value < 0x20 || scalar.value == 0x7F:
                let digits = String(scalar.value, radix: 16, uppercase: true)
                text += "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
            default: text.unicodeScalars.append(scalar)
            }
        }
        text += "\""
    }
}
