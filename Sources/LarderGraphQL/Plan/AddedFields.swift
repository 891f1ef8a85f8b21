/// What a cache asks for beside what the program asks for: the type of every object, what identifies it, and its version
/// where it has one. What is said of key fields here is so of the fields of versions too.
///
/// An added field is selected under its own name, so that what is sent is what a person would write. Where the document
/// uses that name for something else, it has an alias that nothing uses, nor any other added field. Where objects that
/// can stand in one place of a response disagree on the type of a key field, `ID!` and `Int!` say, one name cannot hold
/// both: all added key fields of such a document have aliases made of their name and type.
package struct AddedFields: Sendable {
    /// The response keys that the document uses for something other than the plain field of that name.
    private let taken: Set<String>
    private let areNamedByType: Bool
    /// What aliases begin with: neither a response key of the document does, nor the name of a key field.
    private let prefix: String

    init(_ document: Document, _ schema: SchemaIndex, namedByType: Bool = false) {
        var used: Set<String> = []
        var taken: Set<String> = []
        var rest: [Selection] = document.operations.flatMap(\.selections) + document.fragments.flatMap(\.selections)
        while let selection = rest.popLast() {
            switch selection {
            case .field(let field):
                used.insert(field.responseKey)
                if field.alias != nil && field.alias != field.name || !field.arguments.isEmpty {
                    taken.insert(field.responseKey)
                }
                rest += field.selections
            case .inlineFragment(let fragment): rest += fragment.selections
            case .fragmentSpread: break
            }
        }
        self.taken = taken
        areNamedByType = namedByType
        var prefix = "larder_"
        if namedByType || !taken.isEmpty {
            for type in schema.types { used.formUnion(type.addedFields) }
            while used.contains(where: { $0.hasPrefix(prefix) }) { prefix += "larder_" }
        }
        self.prefix = prefix
    }

    /// Whether the document uses `__typename` for something else, which the specification keeps for itself.
    var isTypenameTaken: Bool { taken.contains("__typename") }

    /// - Parameter type: The field's, in the type of the object that it is asked of.
    func responseKey(of name: String, _ type: ResolvedType, in schema: SchemaIndex) -> String {
        guard areNamedByType || taken.contains(name) else { return name }
        guard areNamedByType else { return prefix + name }
        let typeName = schema.types[type.named].name
        let key = "\(prefix)\(name)_\(typeName)_\(type.isNonNull ? 1 : 0)"
        // `x_Y` of the type `Z` is not `x` of the type `Y_Z`.
        return typeName.contains("_") ? "\(key)_\(name.utf8.count)" : key
    }

    /// Whether a type's key field has another key in a response than another type's of the same name.
    func distinguishes(
        _ name: String, of type: SchemaIndex.TypeID, from other: SchemaIndex.TypeID, _ schema: SchemaIndex
    ) -> Bool {
        areNamedByType
            && schema.field(named: name, of: type)?.type != schema.field(named: name, of: other)?.type
    }
}

extension Document {
    /// The document as it is sent: `__typename` and the key fields are asked of every object below the root. Only the
    /// one operation and the fragments that it uses are kept.
    ///
    /// - Returns: Also how the added fields are named, by which plans find them in answers.
    package func forSending(
        _ operation: OperationDefinition, _ schema: SchemaIndex
    ) -> (document: Document, added: AddedFields) {
        let plain = AddedFields(self, schema)
        var completion = Completion(schema, plain)
        let sent = completion.complete(self, operation)
        // A document that names them plainly stays as it was, byte for byte: servers may know it by its hash.
        guard completion.disagrees,
            validate(sent, against: schema).contains(where: { $0.rule == .fieldSelectionMerging })
        else { return (sent, plain) }
        let byType = AddedFields(self, schema, namedByType: true)
        completion = Completion(schema, byType)
        return (completion.complete(self, operation), byType)
    }
}

/// Adds fields to the selections of a document.
private struct Completion {
    private let schema: SchemaIndex
    private let added: AddedFields
    /// By response key, of leaves under their own name and of what was added: the first type that was met.
    private var types: [String: ResolvedType] = [:]
    /// Response keys that were met with different types.
    private var disagreements: Set<String> = []
    private var addedKeys: Set<String> = []

    init(_ schema: SchemaIndex, _ added: AddedFields) {
        self.schema = schema
        self.added = added
    }

    /// Whether a response key that was added is selected with different types; not necessarily in one place of a
    /// response.
    var disagrees: Bool { !addedKeys.isDisjoint(with: disagreements) }

    mutating func complete(_ document: Document, _ operation: OperationDefinition) -> Document {
        var sent = operation
        if let root = schema.rootType(of: operation.kind) {
            sent.selections = completed(operation.selections, of: root, isRoot: true)
        }
        let kept = document.reachable(from: operation.selections).map { fragment in
            var complete = fragment
            if let type = schema.type(named: fragment.typeCondition) {
                complete.selections = completed(fragment.selections, of: type, isRoot: false)
            }
            return complete
        }
        return Document(operations: [sent], fragments: kept)
    }

    // The recursion is as deep as the parser lets documents nest. What recurses stands apart from what does not, to
    // keep its stack frames small.
    private mutating func completed(
        _ selections: [Selection], of type: SchemaIndex.TypeID, isRoot: Bool
    ) -> [Selection] {
        var result: [Selection] = []
        result.reserveCapacity(selections.count + 2)
        for selection in selections {
            guard let inner = inside(selection, of: type, isRoot: isRoot) else {
                result.append(selection)
                continue
            }
            let completed = completed(inner.selections, of: inner.type, isRoot: inner.isRoot)
            result.append(replacingSelections(of: selection, with: completed))
        }
        addFields(to: &result, of: type, isRoot: isRoot)
        return result
    }

    private struct Inside {
        let selections: [Selection]
        let type: SchemaIndex.TypeID
        let isRoot: Bool
    }

    /// The selections inside of one; nil for a leaf or a spread, and for what the schema does not have.
    private mutating func inside(_ selection: Selection, of type: SchemaIndex.TypeID, isRoot: Bool) -> Inside? {
        switch selection {
        case .field(let field):
            guard let definition = schema.field(named: field.name, of: type) else { return nil }
            guard !field.selections.isEmpty else {
                if field.responseKey == field.name { note(field.name, definition.type) }
                return nil
            }
            return Inside(selections: field.selections, type: definition.type.named, isRoot: false)
        case .inlineFragment(let fragment):
            let inner = fragment.typeCondition.flatMap(schema.type(named:)) ?? type
            // What surrounds it asks already, unless the fragment's own type brings other key fields.
            return Inside(selections: fragment.selections, type: inner, isRoot: isRoot || inner == type)
        case .fragmentSpread: return nil
        }
    }

    private func replacingSelections(of selection: Selection, with selections: [Selection]) -> Selection {
        switch selection {
        case .field(var field):
            field.selections = selections
            return .field(field)
        case .inlineFragment(var fragment):
            fragment.selections = selections
            return .inlineFragment(fragment)
        case .fragmentSpread: return selection
        }
    }

    private mutating func note(_ name: String, _ type: ResolvedType) {
        if types[name, default: type] != type { disagreements.insert(name) } else { types[name] = type }
    }

    // MARK: Adding

    private mutating func addFields(to result: inout [Selection], of type: SchemaIndex.TypeID, isRoot: Bool) {
        guard !isRoot, schema.types[type].kind.isComposite, !schema.isRootType(type) else { return }
        let plain = Set(
            result.compactMap { selection -> String? in
                guard case .field(let field) = selection, field.directives.isEmpty, field.responseKey == field.name
                else {
                    return nil
                }
                return field.name
            })
        if !plain.contains("__typename") {
            result.append(.field(Field(name: "__typename")))
        }
        let own = schema.types[type].addedFields
        for name in own {
            guard let field = keyField(name, of: type), field.alias != nil || !plain.contains(name) else { continue }
            result.append(.field(field))
        }
        guard schema.types[type].kind.isAbstract else { return }
        // Concrete types that are identified by what the abstract one does not have.
        let others = schema.types[type].possibleTypes.filter { id in
            return !schema.types[id].addedFields.allSatisfy {
                own.contains($0) && !added.distinguishes($0, of: id, from: type, schema)
            }
        }
        for (condition, keyFields) in keyFragments(others) {
            let fields = keyFields.compactMap { keyField($0, of: condition).map(Selection.field) }
            result.append(
                .inlineFragment(
                    InlineFragment(typeCondition: schema.types[condition].name, selections: fields)))
        }
    }

    /// A key field as it is added to the selections of a type.
    private mutating func keyField(_ name: String, of type: SchemaIndex.TypeID) -> Field? {
        guard let definition = schema.field(named: name, of: type) else { return nil }
        let key = added.responseKey(of: name, definition.type, in: schema)
        addedKeys.insert(key)
        note(key, definition.type)
        return Field(alias: key == name ? nil : key, name: name)
    }

    /// The fragments that ask the types for their key fields: one on an interface that they share where there is such.
    private func keyFragments(
        _ types: [SchemaIndex.TypeID]
    ) -> [(condition: SchemaIndex.TypeID, keyFields: [String])] {
        guard let first = types.first else { return [] }
        let keyFields = schema.types[first].addedFields
        let shared = schema.types[first].interfaces.first { interface in
            keyFields.allSatisfy { schema.types[interface].field(named: $0) != nil }
                && types.allSatisfy { type in
                    schema.types[type].addedFields == keyFields && schema.isPossible(type, of: interface)
                        && !keyFields.contains { added.distinguishes($0, of: type, from: interface, schema) }
                }
        }
        if let shared { return [(shared, keyFields)] }
        return types.map { ($0, schema.types[$0].addedFields) }
    }
}

extension SchemaIndex {
    fileprivate func isRootType(_ type: TypeID) -> Bool {
        type == queryType || type == mutationType || type == subscriptionType
    }
}
