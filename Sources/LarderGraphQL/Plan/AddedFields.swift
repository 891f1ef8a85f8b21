/// What a cache asks for beside what the program asks for: the type of every object and what identifies it.
///
/// An added field is selected under its own name, or, where the document uses that name for something else, under a
/// name that nothing uses.
struct AddedFields {
    private let taken: Set<String>

    init(_ document: Document) {
        var taken: Set<String> = []
        var rest: [Selection] = document.operations.flatMap(\.selections) + document.fragments.flatMap(\.selections)
        while let selection = rest.popLast() {
            switch selection {
            case .field(let field):
                if field.alias != nil && field.alias != field.name || !field.arguments.isEmpty {
                    taken.insert(field.responseKey)
                }
                rest += field.selections
            case .inlineFragment(let fragment): rest += fragment.selections
            case .fragmentSpread: break
            }
        }
        self.taken = taken
    }

    func responseKey(of name: String) -> String {
        var key = name
        while taken.contains(key) { key = "larder_\(key)" }
        return key
    }

    /// A field as it is added to a document.
    func field(_ name: String) -> Field {
        let key = responseKey(of: name)
        return Field(alias: key == name ? nil : key, name: name)
    }
}

extension Document {
    /// The document as it is sent: `__typename` and the key fields are asked of every object below the root.
    ///
    /// Only the one operation and the fragments that it uses are kept.
    package func forSending(_ operation: OperationDefinition, _ schema: SchemaIndex) -> Document {
        let added = AddedFields(self)
        var sent = operation
        if let root = schema.rootType(of: operation.kind) {
            sent.selections = completed(operation.selections, of: root, isRoot: true, schema, added)
        }
        let kept = reachable(from: operation.selections).map { fragment in
            var complete = fragment
            if let type = schema.type(named: fragment.typeCondition) {
                complete.selections = completed(fragment.selections, of: type, isRoot: false, schema, added)
            }
            return complete
        }
        return Document(operations: [sent], fragments: kept)
    }
}

// The recursion is as deep as the parser lets documents nest.
private func completed(
    _ selections: [Selection], of type: SchemaIndex.TypeID, isRoot: Bool, _ schema: SchemaIndex, _ added: AddedFields
) -> [Selection] {
    var result: [Selection] = selections.map { selection in
        switch selection {
        case .field(var field):
            guard !field.selections.isEmpty, let definition = schema.field(named: field.name, of: type) else {
                return selection
            }
            field.selections = completed(field.selections, of: definition.type.named, isRoot: false, schema, added)
            return .field(field)
        case .inlineFragment(var fragment):
            let inner = fragment.typeCondition.flatMap(schema.type(named:)) ?? type
            // What surrounds it asks already, unless the fragment's own type brings other key fields.
            fragment.selections = completed(
                fragment.selections, of: inner, isRoot: isRoot || inner == type, schema, added)
            return .inlineFragment(fragment)
        case .fragmentSpread: return selection
        }
    }
    guard !isRoot, schema.types[type].kind.isComposite, !isRootType(type, schema) else { return result }
    func add(_ name: String) {
        let field = added.field(name)
        let isAsked = result.contains { selection in
            if case .field(let other) = selection {
                other.responseKey == field.responseKey && other.name == name && other.directives.isEmpty
            } else { false }
        }
        if !isAsked { result.append(.field(field)) }
    }
    add("__typename")
    let own = schema.types[type].keyFields ?? []
    for name in own { add(name) }
    guard schema.types[type].kind.isAbstract else { return result }
    // Concrete types that are identified by what the abstract one does not have.
    let others = schema.types[type].possibleTypes.filter { id in
        guard let keyFields = schema.types[id].keyFields else { return false }
        return !keyFields.allSatisfy(own.contains)
    }
    for (condition, keyFields) in keyFragments(others, schema) {
        let fields = keyFields.map { Selection.field(added.field($0)) }
        result.append(.inlineFragment(InlineFragment(typeCondition: schema.types[condition].name, selections: fields)))
    }
    return result
}

private func isRootType(_ type: SchemaIndex.TypeID, _ schema: SchemaIndex) -> Bool {
    type == schema.queryType || type == schema.mutationType || type == schema.subscriptionType
}

/// The fragments that ask the types for their key fields: one on an interface that they share where there is such.
private func keyFragments(
    _ types: [SchemaIndex.TypeID], _ schema: SchemaIndex
) -> [(condition: SchemaIndex.TypeID, keyFields: [String])] {
    guard let first = types.first else { return [] }
    let keyFields = schema.types[first].keyFields ?? []
    let shared = schema.types[first].interfaces.first { interface in
        keyFields.allSatisfy { schema.types[interface].field(named: $0) != nil }
            && types.allSatisfy { schema.types[$0].keyFields == keyFields && schema.isPossible($0, of: interface) }
    }
    if let shared { return [(shared, keyFields)] }
    return types.map { ($0, schema.types[$0].keyFields ?? []) }
}
