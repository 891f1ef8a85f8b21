extension Document {
    /// The strings that stand in the document itself: in arguments, in directives, and as defaults of variables.
    package var strings: [String] {
        var literals: [Literal] = []
        func add(_ directives: [Directive]) { literals += directives.flatMap(\.arguments).map(\.value) }
        var rest: [Selection] = []
        for operation in operations {
            literals += operation.variables.compactMap(\.defaultValue)
            for variable in operation.variables { add(variable.directives) }
            add(operation.directives)
            rest += operation.selections
        }
        for fragment in fragments {
            add(fragment.directives)
            rest += fragment.selections
        }
        while let selection = rest.popLast() {
            switch selection {
            case .field(let field):
                literals += field.arguments.map(\.value)
                add(field.directives)
                rest += field.selections
            case .inlineFragment(let fragment):
                add(fragment.directives)
                rest += fragment.selections
            case .fragmentSpread(let spread): add(spread.directives)
            }
        }
        var strings: [String] = []
        while let literal = literals.popLast() {
            switch literal {
            case .string(let text): strings.append(text)
            case .list(let elements): literals += elements
            case .object(let fields): literals += fields.map(\.value)
            default: continue
            }
        }
        return strings
    }
}
