extension Plan {
    /// Compiles an operation of a validated document.
    ///
    /// - Parameters:
    ///   - conditions: The values of `document.conditionVariables`.
    ///   - added: How the fields are named that `forSending` added; nil where data does not come from a server, and all
    ///     added fields have names that a person would write.
    ///   - exposesAdded: Whether what identifies objects is part of the answer, and required of what is stored: for
    ///     data that is read to be changed and written back.
    package static func compile(
        _ operation: OperationDefinition, of document: Document, _ schema: SchemaIndex, conditions: [String: Bool],
        added: AddedFields? = nil, exposesAdded: Bool = false
    ) throws(PlanError) -> Plan {
        guard let root = schema.rootType(of: operation.kind) else {
            throw PlanError(.invalid, "The schema has no \(operation.kind.rawValue) root", location: operation.location)
        }
        var compiler = PlanCompiler(
            document, schema, conditions, added ?? AddedFields(document, schema), exposesAdded: exposesAdded)
        return try compiler.compile(operation.selections, of: root, kind: operation.kind)
    }

    /// Compiles a fragment, to be read from or written to an object of its type.
    package static func compile(
        _ fragment: FragmentDefinition, of document: Document, _ schema: SchemaIndex, conditions: [String: Bool],
        added: AddedFields? = nil, exposesAdded: Bool = false
    ) throws(PlanError) -> Plan {
        guard let type = schema.type(named: fragment.typeCondition), schema.types[type].kind.isComposite else {
            throw PlanError(
                .invalid, "The fragment \(fragment.name) is on \(fragment.typeCondition), which has no fields",
                location: fragment.location)
        }
        var compiler = PlanCompiler(
            document, schema, conditions, added ?? AddedFields(document, schema), exposesAdded: exposesAdded)
        return try compiler.compile(fragment.selections, of: type, kind: .query)
    }
}

/// Merges what an operation selects, type by type: section 6.3.2 of the specification, done once for all responses.
///
/// Each selection set of the document is looked through once for each combination of sets with which it meets in one
/// place of a response and each type there. Fragments can make these combinations exponential in the document; what is
/// too large once it is spread out is refused.
struct PlanCompiler {
    let schema: SchemaIndex
    let added: AddedFields
    let exposesAdded: Bool
    private var graph: NumberedSelections
    private var selections: [SelectionPlan] = []
    private var cases: [CasePlan] = []
    private var fields: [FieldPlan] = []
    private var keys: [FieldKeyTemplate] = []
    private var keyNumbers: [FieldKeyTemplate: Int] = [:]
    private var policies: [PolicyTemplate] = []
    private var pageLimits: [PageLimit] = []
    /// The selections that have a number: the same sets asked of the same type are one.
    private var numbers: [SelectionKey: Int] = [:]
    /// By number.
    private var wanted: [SelectionKey] = []
    /// By selection: its fields of all cases.
    private var fieldRanges: [Range<Int>] = []
    private var budget = WorkBudget(Plan.greatestWork)

    private struct SelectionKey: Hashable {
        let sets: [Int]
        let type: SchemaIndex.TypeID
    }

    /// Concrete types for which the same fragments apply, which are identified alike, and which define what is selected
    /// alike: a type may narrow its interface's fields.
    private struct Signature: Hashable {
        let applies: [Bool]
        let keyFields: [String]?
        let parts: PartPolicy?
        /// The definitions of the selected fields in their order, then of the fields that the cache adds.
        let definitions: [Definition?]
    }

    private struct Definition: Hashable {
        let type: ResolvedType
        let policy: FieldPolicy?
        let parts: PartPolicy?
        let maxAge: Int?
    }

    /// The fields that the sets select where certain fragments apply: response keys in the order of the answer, and the
    /// nodes that select each.
    private struct Collected {
        var order: [String] = []
        var nodes: [String: [Int]] = [:]
    }

    init(
        _ document: Document, _ schema: SchemaIndex, _ conditions: [String: Bool], _ added: AddedFields,
        exposesAdded: Bool
    ) {
        self.schema = schema
        self.added = added
        self.exposesAdded = exposesAdded
        graph = NumberedSelections(document, schema, conditions: conditions)
    }

    mutating func compile(
        _ root: [Selection], of type: SchemaIndex.TypeID, kind: OperationKind
    ) throws(PlanError) -> Plan {
        let set = try graph.add(root)
        guard !added.isTypenameTaken else {
            throw PlanError(.invalid, "The alias __typename is the specification's own")
        }
        let number = selectionNumber([set], of: type)
        // One after the other: fragments that lead to each other nest deeper than any text.
        while selections.count < wanted.count { try compileSelection(wanted[selections.count]) }
        return Plan(
            kind: kind, root: number, selections: selections, cases: cases, fields: fields, keys: keys,
            policies: policies, pageLimits: pageLimits, depth: try depth(from: number))
    }

    private mutating func spend(_ steps: Int) throws(PlanError) {
        guard budget.spend(steps) else { throw Self.tooLarge }
    }

    private static var tooLarge: PlanError {
        PlanError(
            .tooComplex,
            "The operation is too large once its fragments are spread out: more than \(Plan.greatestFieldCount) "
                + "fields, or \(Plan.greatestWork) steps to merge them; ask for less at a time")
    }

    // MARK: Selections

    /// The number of a selection, which is compiled when its turn comes.
    private mutating func selectionNumber(_ sets: [Int], of type: SchemaIndex.TypeID) -> Int {
        let key = SelectionKey(sets: sets, type: type)
        if let known = numbers[key] { return known }
        numbers[key] = wanted.count
        wanted.append(key)
        return wanted.count - 1
    }

    private mutating func compileSelection(_ key: SelectionKey) throws(PlanError) {
        let (sets, type) = (key.sets, key.type)
        let conditions = try typeConditions(sets)
        let declared = schema.types[type]
        let firstField = fields.count
        var caseNumbers: [Signature: Int] = [:]
        var collected: [[Bool]: Collected] = [:]
        var types: [SelectionPlan.ConcreteType] = []
        for concrete in declared.possibleTypes {
            try spend(conditions.count + 1)
            let applies = conditions.map { schema.isPossible(concrete, of: $0) }
            types.append(
                SelectionPlan.ConcreteType(
                    name: schema.types[concrete].name,
                    caseIndex: try caseNumber(applies, conditions, sets, concrete, at: type, &collected, &caseNumbers)))
        }
        let unknown = try unknownTypeCase(type, conditions, sets, &collected, &caseNumbers)
        selections.append(
            SelectionPlan(
                staticType: type, staticTypeName: declared.name, isConcrete: declared.kind == .object, types: types,
                unknownTypeCase: unknown))
        fieldRanges.append(firstField..<fields.count)
    }

    /// How many objects and lists enclose the deepest leaf below a selection.
    private func depth(from root: Int) throws(PlanError) -> Int {
        var waitedFor = [Int](repeating: 0, count: selections.count)
        for field in fields { if case .object(let inner) = field.content { waitedFor[inner] += 1 } }
        // Where each stands deepest, which is known once all that lead to it have been looked at.
        var depths = [Int](repeating: 1, count: selections.count)
        var (ready, seen, deepest) = ([root], 0, 1)
        while let selection = ready.popLast() {
            seen += 1
            for field in fields[fieldRanges[selection]] {
                let depth = depths[selection] + field.type.listDepth
                guard case .object(let inner) = field.content else {
                    deepest = max(deepest, depth)
                    continue
                }
                depths[inner] = max(depths[inner], depth + 1)
                deepest = max(deepest, depth + 1)
                waitedFor[inner] -= 1
                if waitedFor[inner] == 0 { ready.append(inner) }
            }
        }
        // What leads back to itself is never ready; validation refuses such fragments.
        guard seen == selections.count, deepest <= Plan.greatestDepth else {
            throw PlanError(
                .tooComplex,
                "The operation nests objects and lists deeper than \(Plan.greatestDepth), fragments included")
        }
        return deepest
    }

    private mutating func caseNumber(
        _ applies: [Bool], _ conditions: [SchemaIndex.TypeID], _ sets: [Int], _ type: SchemaIndex.TypeID,
        at staticType: SchemaIndex.TypeID, _ collected: inout [[Bool]: Collected], _ known: inout [Signature: Int]
    ) throws(PlanError) -> Int {
        let selected: Collected
        if let known = collected[applies] {
            selected = known
        } else {
            selected = try collect(sets, Set(zip(conditions, applies).filter(\.1).map(\.0)))
            collected[applies] = selected
        }
        try spend(selected.order.count)
        let keyFields = schema.types[type].keyFields
        let added = schema.types[type].addedFields
        let names = selected.order.map { key in
            selected.nodes[key]?.first.map { graph.fields[$0].field.name } ?? key
        }
        let signature = Signature(
            applies: applies, keyFields: keyFields, parts: schema.types[type].parts,
            definitions: (names + added).map { name in
                schema.field(named: name, of: type).map {
                    Definition(
                        type: $0.type, policy: $0.policy, parts: $0.parts, maxAge: schema.maxAge(of: $0, of: type))
                }
            })
        if let number = known[signature] { return number }
        let number = try compileCase(selected, type, at: staticType, keyFields: keyFields)
        known[signature] = number
        return number
    }

    /// An object of a type that the schema does not know is none of the object types it does know, and is all that the
    /// static type is. Of other conditions it cannot be decided.
    private mutating func unknownTypeCase(
        _ type: SchemaIndex.TypeID, _ conditions: [SchemaIndex.TypeID], _ sets: [Int],
        _ collected: inout [[Bool]: Collected], _ known: inout [Signature: Int]
    ) throws(PlanError) -> Int? {
        let declared = schema.types[type]
        guard declared.kind.isAbstract else { return nil }
        var applies: [Bool] = []
        for condition in conditions {
            if condition == type || declared.interfaces.contains(condition) {
                applies.append(true)
            } else if schema.types[condition].kind == .object {
                applies.append(false)
            } else {
                return nil
            }
        }
        return try caseNumber(applies, conditions, sets, type, at: type, &collected, &known)
    }

    /// The types on which fragments in the sets depend.
    private mutating func typeConditions(_ sets: [Int]) throws(PlanError) -> [SchemaIndex.TypeID] {
        var found: Set<SchemaIndex.TypeID> = []
        var seen = Set(sets)
        var rest = sets
        while let set = rest.popLast() {
            try spend(graph.sets[set].count + 1)
            for case .fragment(let condition, let inner) in graph.sets[set] {
                if let condition { found.insert(condition) }
                if seen.insert(inner).inserted { rest.append(inner) }
            }
        }
        return found.sorted()
    }

    // MARK: Cases

    private mutating func compileCase(
        _ selected: Collected, _ type: SchemaIndex.TypeID, at staticType: SchemaIndex.TypeID, keyFields: [String]?
    ) throws(PlanError) -> Int {
        var planned: [FieldPlan] = []
        for (slot, responseKey) in selected.order.enumerated() {
            planned.append(try field(selected.nodes[responseKey] ?? [], slot: slot, of: type))
        }
        var order = selected.order
        planned += try addedFields(to: planned, names: &order, type, staticType)
        func index(of name: String) -> Int? {
            let key = addedKey(name, of: type)
            return planned.firstIndex { $0.name == name && $0.responseKey == key }
        }
        let identity = (keyFields ?? []).compactMap(index(of:))
        let isVersioned = schema.types[type].isVersioned
        guard fields.count + planned.count <= Plan.greatestFieldCount else { throw Self.tooLarge }
        let start = fields.count
        fields += planned
        cases.append(
            CasePlan(
                fields: start..<fields.count, names: order,
                keyFields: keyFields == nil || identity.count != keyFields?.count ? nil : identity.map { start + $0 },
                parts: schema.types[type].parts,
                version: isVersioned ? index(of: VersionField.version).map { start + $0 } : nil,
                deleted: isVersioned ? index(of: VersionField.deleted).map { start + $0 } : nil))
        return cases.count - 1
    }

    private mutating func collect(
        _ sets: [Int], _ applies: Set<SchemaIndex.TypeID>
    ) throws(PlanError) -> Collected {
        var collected = Collected()
        // What one of the sets leads to is not collected again for another.
        var seen = Set(sets)
        for set in sets { try collect(set, applies, &seen, &collected) }
        return collected
    }

    private mutating func collect(
        _ set: Int, _ applies: Set<SchemaIndex.TypeID>, _ seen: inout Set<Int>, _ collected: inout Collected
    ) throws(PlanError) {
        // A stack of its own: chains of fragments are as long as the document.
        var path = [(set: set, next: 0)]
        while let (set, next) = path.last {
            try spend(1)
            guard next < graph.sets[set].count else {
                path.removeLast()
                continue
            }
            path[path.count - 1].next += 1
            switch graph.sets[set][next] {
            case .field(let node):
                let key = graph.fields[node].field.responseKey
                if collected.nodes[key] == nil { collected.order.append(key) }
                collected.nodes[key, default: []].append(node)
            case .fragment(let condition, let inner):
                if condition.map(applies.contains) ?? true, seen.insert(inner).inserted { path.append((inner, 0)) }
            }
        }
    }

    // MARK: Fields

    /// The field that all these nodes select under one response key.
    private mutating func field(
        _ nodes: [Int], slot: Int, of type: SchemaIndex.TypeID
    ) throws(PlanError) -> FieldPlan {
        guard let first = nodes.first else { throw PlanError(.invalid, "A selection set is empty") }
        let field = graph.fields[first].field
        guard let definition = schema.field(named: field.name, of: type) else {
            throw PlanError(
                .invalid, "The type \(schema.types[type].name) has no field \(field.name)", location: field.location)
        }
        if let other = nodes.first(where: { graph.fields[$0].field.name != field.name }) {
            throw PlanError(
                .invalid,
                "Under \(field.responseKey) both \(field.name) and \(graph.fields[other].field.name) are selected",
                location: graph.fields[other].field.location)
        }
        let shape = try shape(definition.type, field.location)
        if field.name == "__typename" {
            return FieldPlan(
                name: field.name, responseKey: field.responseKey, slot: slot, type: shape, content: .typename, key: nil,
                policy: nil, parts: nil, maxAge: nil)
        }
        let content: FieldPlan.Content
        var policy: Int?
        if schema.types[definition.type.named].kind.isComposite {
            let sets = nodes.compactMap { graph.fields[$0].selections }
            guard !sets.isEmpty else {
                throw PlanError(.invalid, "\(field.name) needs a selection of fields", location: field.location)
            }
            content = .object(selection: selectionNumber(sets, of: definition.type.named))
            if let template = definition.policy.flatMap({ PolicyTemplate($0, field, definition, schema) }) {
                policy = policies.count
                policies.append(template)
            }
            if let pagination = schema.pagination(of: definition) {
                pageLimits += try PageLimit.all(pagination, field, schema.types[type].name)
            }
        } else {
            guard nodes.allSatisfy({ graph.fields[$0].selections == nil }) else {
                throw PlanError(.invalid, "\(field.name) has no fields to select", location: field.location)
            }
            content = .leaf(leaf(definition.type))
        }
        return FieldPlan(
            name: field.name, responseKey: field.responseKey, slot: slot, type: shape, content: content,
            key: keyNumber(FieldKeyTemplate(field, definition)), policy: policy, parts: definition.parts,
            maxAge: schema.maxAge(of: definition, of: type))
    }

    mutating func keyNumber(_ template: FieldKeyTemplate) -> Int {
        if let known = keyNumbers[template] { return known }
        keyNumbers[template] = keys.count
        keys.append(template)
        return keys.count - 1
    }

    func shape(_ type: ResolvedType, _ location: Location?) throws(PlanError) -> FieldTypeShape {
        guard type.listDepth <= FieldTypeShape.maximumListDepth else {
            throw PlanError(
                .tooComplex, "Lists are nested deeper than \(FieldTypeShape.maximumListDepth)", location: location)
        }
        return FieldTypeShape(listDepth: type.listDepth, nonNull: UInt32(truncatingIfNeeded: type.nonNullLevels))
    }

    func leaf(_ type: ResolvedType) -> FieldPlan.Leaf {
        let named = schema.types[type.named]
        guard named.kind == .scalar else { return .enumeration }
        return switch named.name {
        case "Int": .int
        case "Float": .float
        case "String": .string
        case "Boolean": .boolean
        case "ID": .id
        default: .custom
        }
    }
}
