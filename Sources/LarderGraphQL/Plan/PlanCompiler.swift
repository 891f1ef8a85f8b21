extension Plan {
    /// Compiles an operation of a validated document.
    ///
    /// - Parameters:
    ///   - conditions: The values of `document.conditionVariables`.
    ///   - exposesAdded: Whether what identifies objects is part of the answer, and required of what is stored: for
    ///     data that is read to be changed and written back.
    package static func compile(
        _ operation: OperationDefinition, of document: Document, _ schema: SchemaIndex, conditions: [String: Bool],
        exposesAdded: Bool = false
    ) throws(PlanError) -> Plan {
        guard let root = schema.rootType(of: operation.kind) else {
            throw PlanError(.invalid, "The schema has no \(operation.kind.rawValue) root", location: operation.location)
        }
        var compiler = PlanCompiler(document, schema, conditions, exposesAdded: exposesAdded)
        return try compiler.compile(operation.selections, of: root, kind: operation.kind)
    }

    /// Compiles a fragment, to be read from or written to an object of its type.
    package static func compile(
        _ fragment: FragmentDefinition, of document: Document, _ schema: SchemaIndex, conditions: [String: Bool],
        exposesAdded: Bool = false
    ) throws(PlanError) -> Plan {
        guard let type = schema.type(named: fragment.typeCondition), schema.types[type].kind.isComposite else {
            throw PlanError(
                .invalid, "The fragment \(fragment.name) is on \(fragment.typeCondition), which has no fields",
                location: fragment.location)
        }
        var compiler = PlanCompiler(document, schema, conditions, exposesAdded: exposesAdded)
        return try compiler.compile(fragment.selections, of: type, kind: .query)
    }
}

/// Merges what an operation selects, type by type: section 6.3.2 of the specification, done once for all responses.
struct PlanCompiler {
    private static let fieldLimit = 100_000

    private let schema: SchemaIndex
    private let added: AddedFields
    private let exposesAdded: Bool
    private var graph: NumberedSelections
    private var selections: [SelectionPlan?] = []
    private var cases: [CasePlan] = []
    private var fields: [FieldPlan] = []
    private var keys: [FieldKeyTemplate] = []
    private var keyNumbers: [FieldKeyTemplate: Int] = [:]
    private var policies: [PolicyTemplate] = []
    /// Selections that were compiled: the same sets asked of the same type.
    private var compiled: [SelectionKey: Int] = [:]
    /// By selection: how many objects and lists the deepest leaf below it is away.
    private var heights: [Int] = []
    /// The depth of the deepest leaf so far below the selection that is being compiled.
    private var levels = 0

    private struct SelectionKey: Hashable {
        let sets: [Int]
        let type: SchemaIndex.TypeID
    }

    /// Concrete types for which the same fragments apply, which are identified alike, and which define what is selected
    /// alike: a type may narrow its interface's fields.
    private struct Signature: Hashable {
        let applies: [Bool]
        let keyFields: [String]?
        /// Of the selected fields in their order, then of the key fields.
        let definitions: [Definition?]
    }

    private struct Definition: Hashable {
        let type: ResolvedType
        let policy: FieldPolicy?
    }

    /// The fields that the sets select where certain fragments apply: response keys in the order of the answer, and the
    /// nodes that select each.
    private struct Collected {
        var order: [String] = []
        var nodes: [String: [Int]] = [:]
    }

    init(_ document: Document, _ schema: SchemaIndex, _ conditions: [String: Bool], exposesAdded: Bool) {
        self.schema = schema
        self.exposesAdded = exposesAdded
        added = AddedFields(document)
        graph = NumberedSelections(document, schema, conditions: conditions)
    }

    mutating func compile(
        _ root: [Selection], of type: SchemaIndex.TypeID, kind: OperationKind
    ) throws(PlanError) -> Plan {
        let set = try graph.add(root)
        guard added.responseKey(of: "__typename") == "__typename" else {
            throw PlanError(.invalid, "The alias __typename is the specification's own")
        }
        let number = try selection([set], of: type, depth: 1)
        return Plan(
            kind: kind, root: number, selections: selections.compactMap { $0 }, cases: cases, fields: fields,
            keys: keys, policies: policies, depth: levels)
    }

    // MARK: Selections

    // The recursion ends at `greatestDepth`: fragments that lead to each other nest deeper than any text.
    private mutating func selection(
        _ sets: [Int], of type: SchemaIndex.TypeID, depth: Int
    ) throws(PlanError) -> Int {
        let key = SelectionKey(sets: sets, type: type)
        if let known = compiled[key] {
            // It may stand deeper here than where it was compiled, and so does all that is below it.
            levels = max(levels, try allowed(depth + heights[known]))
            return known
        }
        let above = levels
        levels = try allowed(depth)
        let number = selections.count
        selections.append(nil)
        heights.append(0)
        compiled[key] = number

        let conditions = typeConditions(sets)
        let declared = schema.types[type]
        var caseNumbers: [Signature: Int] = [:]
        var collected: [[Bool]: Collected] = [:]
        var types: [SelectionPlan.ConcreteType] = []
        for concrete in declared.possibleTypes {
            let applies = conditions.map { schema.isPossible(concrete, of: $0) }
            types.append(SelectionPlan.ConcreteType(
                name: schema.types[concrete].name,
                caseIndex: try caseNumber(
                    applies, conditions, sets, concrete, at: type, &collected, &caseNumbers, depth)))
        }
        selections[number] = SelectionPlan(
            staticType: type, staticTypeName: declared.name, isConcrete: declared.kind == .object, types: types,
            unknownTypeCase: try unknownTypeCase(type, conditions, sets, &collected, &caseNumbers, depth))
        heights[number] = levels - depth
        levels = max(levels, above)
        return number
    }

    private func allowed(_ depth: Int) throws(PlanError) -> Int {
        guard depth <= Plan.greatestDepth else {
            throw PlanError(
                .tooComplex,
                "The operation nests objects and lists deeper than \(Plan.greatestDepth), fragments included")
        }
        return depth
    }

    private mutating func caseNumber(
        _ applies: [Bool], _ conditions: [SchemaIndex.TypeID], _ sets: [Int], _ type: SchemaIndex.TypeID,
        at staticType: SchemaIndex.TypeID, _ collected: inout [[Bool]: Collected], _ known: inout [Signature: Int],
        _ depth: Int
    ) throws(PlanError) -> Int {
        let selected = collected[applies] ?? collect(sets, Set(zip(conditions, applies).filter(\.1).map(\.0)))
        collected[applies] = selected
        let keyFields = schema.types[type].keyFields
        let names = selected.order.map { key in
            selected.nodes[key]?.first.map { graph.fields[$0].field.name } ?? key
        }
        let signature = Signature(
            applies: applies, keyFields: keyFields,
            definitions: (names + (keyFields ?? [])).map { name in
                schema.field(named: name, of: type).map { Definition(type: $0.type, policy: $0.policy) }
            })
        if let number = known[signature] { return number }
        let number = try compileCase(selected, type, at: staticType, keyFields: keyFields, depth)
        known[signature] = number
        return number
    }

    /// An object of a type that the schema does not know is none of the object types it does know, and is all that the
    /// static type is. Of other conditions it cannot be decided.
    private mutating func unknownTypeCase(
        _ type: SchemaIndex.TypeID, _ conditions: [SchemaIndex.TypeID], _ sets: [Int],
        _ collected: inout [[Bool]: Collected], _ known: inout [Signature: Int], _ depth: Int
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
        return try caseNumber(applies, conditions, sets, type, at: type, &collected, &known, depth)
    }

    /// The types on which fragments in the sets depend.
    private func typeConditions(_ sets: [Int]) -> [SchemaIndex.TypeID] {
        var found: Set<SchemaIndex.TypeID> = []
        var seen = Set(sets)
        var rest = sets
        while let set = rest.popLast() {
            for case .fragment(let condition, let inner) in graph.sets[set] {
                if let condition { found.insert(condition) }
                if seen.insert(inner).inserted { rest.append(inner) }
            }
        }
        return found.sorted()
    }

    // MARK: Cases

    private mutating func compileCase(
        _ selected: Collected, _ type: SchemaIndex.TypeID, at staticType: SchemaIndex.TypeID, keyFields: [String]?,
        _ depth: Int
    ) throws(PlanError) -> Int {
        // Fields are appended in one piece after those below them.
        var planned: [FieldPlan] = []
        for (slot, responseKey) in selected.order.enumerated() {
            planned.append(try field(selected.nodes[responseKey] ?? [], slot: slot, of: type, depth))
        }
        var order = selected.order
        planned += try addedFields(to: planned, names: &order, type, staticType, keyFields ?? [])
        let identity = (keyFields ?? []).compactMap { name in
            planned.firstIndex { $0.name == name && $0.responseKey == added.responseKey(of: name) }
        }
        guard fields.count + planned.count <= Self.fieldLimit else {
            throw PlanError(
                .tooComplex, "The operation selects more than \(Self.fieldLimit) fields once it is spread out")
        }
        let start = fields.count
        fields += planned
        cases.append(CasePlan(
            fields: start..<fields.count, names: order,
            keyFields: keyFields == nil || identity.count != keyFields?.count ? nil : identity.map { start + $0 }))
        return cases.count - 1
    }

    private func collect(_ sets: [Int], _ applies: Set<SchemaIndex.TypeID>) -> Collected {
        var collected = Collected()
        for set in sets { collect(set, applies, &collected) }
        return collected
    }

    private func collect(_ set: Int, _ applies: Set<SchemaIndex.TypeID>, _ collected: inout Collected) {
        var seen: Set<Int> = [set]
        // A stack of its own: chains of fragments are as long as the document.
        var path = [(set: set, next: 0)]
        while let (set, next) = path.last {
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

    /// What the cache needs beside what is planned, those that are part of the answer first.
    private mutating func addedFields(
        to planned: [FieldPlan], names: inout [String], _ type: SchemaIndex.TypeID, _ staticType: SchemaIndex.TypeID,
        _ keyFields: [String]
    ) throws(PlanError) -> [FieldPlan] {
        func isPlanned(_ name: String) -> Bool {
            planned.contains { $0.name == name && $0.responseKey == added.responseKey(of: name) }
        }
        var shown: [FieldPlan] = []
        var hidden: [FieldPlan] = []
        func add(_ field: FieldPlan) {
            if field.slot == nil { hidden.append(field) } else { shown.append(field) }
        }
        if !isPlanned("__typename") {
            // An object of a concrete type need not say which.
            let isShown = exposesAdded && schema.types[staticType].kind.isAbstract
            add(addedField(
                "__typename", .typename, FieldTypeShape(listDepth: 0, nonNull: 1), key: nil,
                slot: isShown ? names.count : nil))
            if isShown { names.append("__typename") }
        }
        for name in keyFields where !isPlanned(name) {
            guard let definition = schema.field(named: name, of: type) else { continue }
            add(addedField(
                name, .leaf(leaf(definition.type)), try shape(definition.type, nil),
                key: keyNumber(FieldKeyTemplate(Field(name: name), definition)),
                slot: exposesAdded ? names.count : nil))
            if exposesAdded { names.append(added.responseKey(of: name)) }
        }
        return shown + hidden
    }

    private func addedField(
        _ name: String, _ content: FieldPlan.Content, _ type: FieldTypeShape, key: Int?, slot: Int?
    ) -> FieldPlan {
        FieldPlan(
            name: name, responseKey: added.responseKey(of: name), slot: slot, type: type, content: content, key: key,
            policy: nil)
    }

    // MARK: Fields

    /// The field that all these nodes select under one response key.
    private mutating func field(
        _ nodes: [Int], slot: Int, of type: SchemaIndex.TypeID, _ depth: Int
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
                policy: nil)
        }
        let content: FieldPlan.Content
        var policy: Int?
        if schema.types[definition.type.named].kind.isComposite {
            let sets = nodes.compactMap { graph.fields[$0].selections }
            guard !sets.isEmpty else {
                throw PlanError(.invalid, "\(field.name) needs a selection of fields", location: field.location)
            }
            content = .object(selection: try selection(
                sets, of: definition.type.named, depth: depth + 1 + shape.listDepth))
            if let template = definition.policy.flatMap({ PolicyTemplate($0, field, definition, schema) }) {
                policy = policies.count
                policies.append(template)
            }
        } else {
            guard nodes.allSatisfy({ graph.fields[$0].selections == nil }) else {
                throw PlanError(.invalid, "\(field.name) has no fields to select", location: field.location)
            }
            content = .leaf(leaf(definition.type))
            levels = max(levels, depth + shape.listDepth)
        }
        return FieldPlan(
            name: field.name, responseKey: field.responseKey, slot: slot, type: shape, content: content,
            key: keyNumber(FieldKeyTemplate(field, definition)), policy: policy)
    }

    private mutating func keyNumber(_ template: FieldKeyTemplate) -> Int {
        if let known = keyNumbers[template] { return known }
        keyNumbers[template] = keys.count
        keys.append(template)
        return keys.count - 1
    }

    private func shape(_ type: ResolvedType, _ location: Location?) throws(PlanError) -> FieldTypeShape {
        guard type.listDepth <= FieldTypeShape.maximumListDepth else {
            throw PlanError(
                .tooComplex, "Lists are nested deeper than \(FieldTypeShape.maximumListDepth)", location: location)
        }
        return FieldTypeShape(listDepth: type.listDepth, nonNull: UInt32(truncatingIfNeeded: type.nonNullLevels))
    }

    private func leaf(_ type: ResolvedType) -> FieldPlan.Leaf {
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
