extension DocumentValidator {
    /// - Parameters:
    ///   - parent: The type whose fields are selected; nil where an error made it unknown.
    ///   - set: The selection set of the graph that the fields belong to; nil where the parent is.
    ///   - depth: Documents that programs make may be deeper than any text; these are refused.
    mutating func walk(_ selections: [Selection], parent: SchemaIndex.TypeID?, set: Int?, depth: Int) {
        guard depth <= ParserLimits.deepest || selections.isEmpty else {
            report(.complexity, "Selections are nested too deep", at: location(of: selections))
            return
        }
        for selection in selections {
            switch selection {
            case .field(let field): walk(field, parent: parent, set: set, depth: depth)
            case .fragmentSpread(let spread): walk(spread, parent: parent, set: set)
            case .inlineFragment(let fragment): walk(fragment, parent: parent, set: set, depth: depth)
            }
        }
    }

    private func location(of selections: [Selection]) -> Location {
        switch selections.first {
        case .field(let field): field.location
        case .fragmentSpread(let spread): spread.location
        case .inlineFragment(let fragment): fragment.location
        case nil: .generated
        }
    }

    private mutating func walk(_ field: Field, parent: SchemaIndex.TypeID?, set: Int?, depth: Int) {
        // What recurses stands apart from what does not, to keep the recursion's stack frames small.
        let child = check(field, parent: parent, set: set)
        walk(field.selections, parent: child.type, set: child.set, depth: depth + 1)
    }

    /// Checks a field without its selections; answers the type and the set that these belong to.
    private mutating func check(
        _ field: Field, parent: SchemaIndex.TypeID?, set: Int?
    ) -> (type: SchemaIndex.TypeID?, set: Int?) {
        check(field.directives, at: .field)
        let definition = parent.flatMap { schema.field(named: field.name, of: $0) }
        if let parent, definition == nil {
            let type = schema.types[parent]
            report(
                .fieldSelections, "\(type.kind.noun) \(type.name) has no field \(field.name)", at: field.location)
        }
        if let definition, let parent {
            check(
                field.arguments, against: definition.arguments, owner: "\(typeName(parent)).\(field.name)",
                at: field.location)
            checkLeaf(field, definition, owner: parent)
        } else {
            checkUnknown(field.arguments)
        }
        let type = definition?.type.named
        let childType = type.flatMap { schema.types[$0].kind.isComposite ? $0 : nil }
        let childSet = childType == nil || field.selections.isEmpty ? nil : graph.addSet()
        if let set, let parent {
            let isConcrete = schema.types[parent].kind == .object
            graph.add(field, to: set, parent: parent, isConcrete: isConcrete, type: definition?.type, child: childSet)
        }
        return (childType, childSet)
    }

    private mutating func checkLeaf(_ field: Field, _ definition: FieldDefinition, owner: SchemaIndex.TypeID) {
        let isComposite = schema.types[definition.type.named].kind.isComposite
        guard isComposite == field.selections.isEmpty else { return }
        let place = "\(typeName(owner)).\(field.name)"
        let type = schema.description(of: definition.type)
        let message =
            isComposite
            ? "\(place) is \(type) and needs a selection of fields"
            : "\(place) is \(type) and has no fields to select"
        report(.leafFieldSelections, message, at: field.location)
    }

    private mutating func walk(_ spread: FragmentSpread, parent: SchemaIndex.TypeID?, set: Int?) {
        check(spread.directives, at: .fragmentSpread)
        guard let index = fragmentIndices[spread.name] else {
            report(.fragmentSpreadTargetDefined, "Unknown fragment \(spread.name)", at: spread.location)
            return
        }
        uses.spreads.append(.init(fragment: index, location: spread.location))
        if let set { graph.addFragment(index, to: set) }
        guard let parent, let type = schema.type(named: document.fragments[index].typeCondition),
            schema.types[type].kind.isComposite, !canOverlap(parent, type)
        else { return }
        let message = "Fragment \(spread.name) is on \(typeName(type)), which \(typeName(parent)) can never be"
        report(.fragmentSpreadIsPossible, message, at: spread.location)
    }

    private mutating func walk(_ fragment: InlineFragment, parent: SchemaIndex.TypeID?, set: Int?, depth: Int) {
        check(fragment.directives, at: .inlineFragment)
        let type = self.type(of: fragment, parent: parent)
        // Its fields merge with those around it, each with the fragment's type as its parent.
        walk(fragment.selections, parent: type, set: type == nil ? nil : set, depth: depth + 1)
    }

    private mutating func type(of fragment: InlineFragment, parent: SchemaIndex.TypeID?) -> SchemaIndex.TypeID? {
        guard let condition = fragment.typeCondition else { return parent }
        let type = compositeType(named: condition, at: fragment.location)
        if let parent, let type, !canOverlap(parent, type) {
            let message = "A fragment is on \(condition), which \(typeName(parent)) can never be"
            report(.fragmentSpreadIsPossible, message, at: fragment.location)
        }
        return type
    }
}
