import LarderGraphQL

/// The rules of section 5 without which an operation cannot be executed: what it names is there, fields of objects
/// have selections and leaves have none, fragments lead to no circle, variables are defined.
struct RequestValidation {
    let schema: SchemaIndex
    let document: Document
    private let fragments: [String: FragmentDefinition]

    init(schema: SchemaIndex, document: Document) throws(ExecutionError) {
        self.schema = schema
        self.document = document
        var fragments: [String: FragmentDefinition] = [:]
        for fragment in document.fragments where fragments.updateValue(fragment, forKey: fragment.name) != nil {
            throw ExecutionError("There is more than one fragment \(fragment.name)", at: fragment.location)
        }
        self.fragments = fragments
        try checkFragmentsEnd()
    }

    /// Checks an operation and gives the fragments by name.
    func validate(_ operation: OperationDefinition) throws(ExecutionError) -> [String: FragmentDefinition] {
        guard let root = schema.rootType(of: operation.kind) else {
            throw ExecutionError("The schema has no operations of the kind \(operation.kind)", at: operation.location)
        }
        let variables = Set(operation.variables.map(\.name))
        var checked: Set<String> = []
        try check(operation.selections, of: root, variables, &checked)
        return fragments
    }

    // MARK: - Selections

    private func check(
        _ selections: [Selection], of type: SchemaIndex.TypeID, _ variables: Set<String>, _ checked: inout Set<String>
    ) throws(ExecutionError) {
        for selection in selections {
            switch selection {
            case .field(let field):
                try check(field.directives, variables)
                try check(field, of: type, variables, &checked)
            case .inlineFragment(let fragment):
                try check(fragment.directives, variables)
                let condition = try composite(fragment.typeCondition, fragment.location) ?? type
                try check(fragment.selections, of: condition, variables, &checked)
            case .fragmentSpread(let spread):
                try check(spread.directives, variables)
                guard let fragment = fragments[spread.name] else {
                    throw ExecutionError("There is no fragment \(spread.name)", at: spread.location)
                }
                guard checked.insert(fragment.name).inserted,
                    let condition = try composite(fragment.typeCondition, fragment.location)
                else { continue }
                try check(fragment.selections, of: condition, variables, &checked)
            }
        }
    }

    private func check(
        _ field: Field, of type: SchemaIndex.TypeID, _ variables: Set<String>, _ checked: inout Set<String>
    ) throws(ExecutionError) {
        let owner = "\(schema.types[type].name).\(field.name)"
        guard let definition = schema.field(named: field.name, of: type),
            !field.name.hasPrefix("__") || field.name == "__typename"
        else { throw ExecutionError("There is no field \(owner)", at: field.location) }
        try check(field.arguments, definition.arguments, of: owner, at: field.location, variables)
        let isComposite = schema.types[definition.type.named].kind.isComposite
        guard isComposite != field.selections.isEmpty else {
            let fault = isComposite ? "needs a selection of fields" : "has no fields to select"
            throw ExecutionError("\(owner) \(fault)", at: field.location)
        }
        try check(field.selections, of: definition.type.named, variables, &checked)
    }

    private func check(_ directives: [Directive], _ variables: Set<String>) throws(ExecutionError) {
        for directive in directives {
            guard let definition = schema.directive(named: directive.name) else {
                throw ExecutionError("There is no directive @\(directive.name)", at: directive.location)
            }
            try check(
                directive.arguments, definition.arguments, of: "@\(directive.name)", at: directive.location, variables
            )
        }
    }

    private func check(
        _ arguments: [Argument], _ definitions: [InputDefinition], of owner: String, at location: Location,
        _ variables: Set<String>
    ) throws(ExecutionError) {
        for argument in arguments {
            guard definitions.contains(where: { $0.name == argument.name }) else {
                throw ExecutionError("\(owner) has no argument \(argument.name)", at: argument.location)
            }
            if let name = undefinedVariable(in: argument.value, variables) {
                throw ExecutionError("The variable $\(name) is not defined", at: argument.location)
            }
        }
        for definition in definitions where definition.isRequired {
            guard arguments.contains(where: { $0.name == definition.name }) else {
                throw ExecutionError("\(owner) needs the argument \(definition.name)", at: location)
            }
        }
    }

    private func undefinedVariable(in literal: Literal, _ variables: Set<String>) -> String? {
        switch literal {
        case .variable(let name): variables.contains(name) ? nil : name
        case .list(let elements): elements.lazy.compactMap { undefinedVariable(in: $0, variables) }.first
        case .object(let fields): fields.lazy.compactMap { undefinedVariable(in: $0.value, variables) }.first
        default: nil
        }
    }

    private func composite(_ name: String?, _ location: Location) throws(ExecutionError) -> SchemaIndex.TypeID? {
        guard let name else { return nil }
        guard let type = schema.type(named: name), schema.types[type].kind.isComposite else {
            throw ExecutionError("There is no type \(name) that a fragment could be on", at: location)
        }
        return type
    }

    // MARK: - Circles

    /// How deep fragments may lie within fragments: execution recurses as deep.
    private static let deepestFragment = 50

    private func checkFragmentsEnd() throws(ExecutionError) {
        var depths: [String: Int] = [:]
        for fragment in document.fragments { _ = try depth(of: fragment, within: [], &depths) }
    }

    private func depth(
        of fragment: FragmentDefinition, within outer: [String], _ depths: inout [String: Int]
    ) throws(ExecutionError) -> Int {
        if let depth = depths[fragment.name] { return depth }
        guard !outer.contains(fragment.name) else {
            throw ExecutionError("The fragment \(fragment.name) contains itself", at: fragment.location)
        }
        guard outer.count < Self.deepestFragment else {
            throw ExecutionError("Fragments lie too deep within each other", at: fragment.location)
        }
        var deepest = 0
        for name in spreads(in: fragment.selections) {
            guard let inner = fragments[name] else { continue }
            deepest = max(deepest, try depth(of: inner, within: outer + [fragment.name], &depths))
        }
        guard deepest < Self.deepestFragment else {
            throw ExecutionError("Fragments lie too deep within each other", at: fragment.location)
        }
        depths[fragment.name] = deepest + 1
        return deepest + 1
    }

    private func spreads(in selections: [Selection]) -> [String] {
        selections.flatMap { selection in
            switch selection {
            case .field(let field): spreads(in: field.selections)
            case .inlineFragment(let fragment): spreads(in: fragment.selections)
            case .fragmentSpread(let spread): [spread.name]
            }
        }
    }
}
