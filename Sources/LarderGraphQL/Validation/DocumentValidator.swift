/// Walks each definition of a document once, and then checks what lies between definitions: fragment cycles, the
/// variables of what an operation reaches, and the merging of fields.
struct DocumentValidator {
    static let mostErrors = 100

    let document: Document
    let schema: SchemaIndex
    var errors: [ValidationError] = []
    var budget: WorkBudget
    var graph = SelectionGraph()
    /// What each operation, and each fragment, uses itself.
    var operationUses: [DefinitionUses] = []
    var fragmentUses: [DefinitionUses] = []
    /// What the definition uses that is being walked.
    var uses = DefinitionUses()
    /// The first fragment of each name.
    private(set) var fragmentIndices: [String: Int] = [:]
    private var overlaps: [TypePair: Bool] = [:]

    struct TypePair: Hashable {
        var first: SchemaIndex.TypeID
        var second: SchemaIndex.TypeID
    }

    init(_ document: Document, schema: SchemaIndex, budget: Int) {
        self.document = document
        self.schema = schema
        self.budget = WorkBudget(budget)
    }

    mutating func validate() -> [ValidationError] {
        collectFragments()
        checkOperationNames()
        for fragment in document.fragments { walk(fragment) }
        for operation in document.operations { walk(operation) }
        checkFragmentCycles()
        checkVariables()
        checkSubscriptions()
        checkMerging()
        if budget.isExhausted {
            errors.append(
                ValidationError(
                    rule: .complexity, message: "The document is too entangled to be checked",
                    location: document.operations.first?.location ?? .generated))
        }
        return errors.sorted { $0.location < $1.location }
    }

    mutating func report(_ rule: ValidationRule, _ message: @autoclosure () -> String, at location: Location) {
        // One place is kept for what is reported after all else.
        guard errors.count < Self.mostErrors - 1 else { return }
        errors.append(ValidationError(rule: rule, message: message(), location: location))
    }

    func typeName(_ id: SchemaIndex.TypeID) -> String { schema.types[id].name }

    // MARK: - Names

    private mutating func collectFragments() {
        for (index, fragment) in document.fragments.enumerated() {
            if fragmentIndices[fragment.name] == nil {
                fragmentIndices[fragment.name] = index
            } else {
                report(.fragmentNameUniqueness, "Fragment \(fragment.name) is defined twice", at: fragment.location)
            }
        }
    }

    private mutating func checkOperationNames() {
        var names: Set<String> = []
        for operation in document.operations {
            if let name = operation.name {
                if !names.insert(name).inserted {
                    report(.operationNameUniqueness, "Operation \(name) is defined twice", at: operation.location)
                }
            } else if document.operations.count > 1 {
                report(
                    .loneAnonymousOperation, "An anonymous operation stands beside others", at: operation.location)
            }
        }
    }

    // MARK: - Definitions

    private mutating func walk(_ operation: OperationDefinition) {
        uses = DefinitionUses()
        let place: DirectivePlaces
        switch operation.kind {
        case .query: place = .query
        case .mutation: place = .mutation
        case .subscription: place = .subscription
        }
        checkDefinitions(of: operation.variables)
        check(operation.directives, at: place)
        let root = schema.rootType(of: operation.kind)
        if root == nil {
            report(.knownOperationType, "The schema has no \(operation.kind.rawValue) type", at: operation.location)
        }
        uses.set = root == nil ? nil : graph.addSet()
        walk(operation.selections, parent: root, set: uses.set, depth: 1)
        operationUses.append(uses)
    }

    private mutating func walk(_ fragment: FragmentDefinition) {
        uses = DefinitionUses()
        check(fragment.directives, at: .fragmentDefinition)
        let type = compositeType(named: fragment.typeCondition, at: fragment.location)
        uses.set = type == nil ? nil : graph.addSet()
        walk(fragment.selections, parent: type, set: uses.set, depth: 1)
        fragmentUses.append(uses)
    }

    // MARK: - Types

    /// The type of a fragment; reports one that does not exist or has no fields.
    mutating func compositeType(named name: String, at location: Location) -> SchemaIndex.TypeID? {
        guard let type = schema.type(named: name) else {
            report(.fragmentSpreadTypeExistence, "Unknown type \(name)", at: location)
            return nil
        }
        guard schema.types[type].kind.isComposite else {
            let message = "A fragment cannot be on \(name), which is \(schema.types[type].kind.noun)"
            report(.fragmentsOnCompositeTypes, message, at: location)
            return nil
        }
        return type
    }

    /// Whether one object can be of both types.
    mutating func canOverlap(_ first: SchemaIndex.TypeID, _ second: SchemaIndex.TypeID) -> Bool {
        if first == second { return true }
        let pair = TypePair(first: min(first, second), second: max(first, second))
        if let known = overlaps[pair] { return known }
        let left = schema.types[first].possibleTypes
        let right = schema.types[second].possibleTypes
        let (fewer, whole) = left.count < right.count ? (left, second) : (right, first)
        let answer = fewer.contains { schema.isPossible($0, of: whole) }
        overlaps[pair] = answer
        return answer
    }
}

/// Checks an executable document against a schema.
///
/// Fragments that no operation uses are let pass, so that files can be joined before they are checked.
/// - Parameter budget: How many steps the checks may take whose cost can grow faster than the document: following
///   fragments and merging fields. A document that needs more is refused with an error of the rule `complexity`.
/// - Returns: The errors, in the order of their locations; none if the document can be run. No more than
///   ``DocumentValidator/mostErrors``.
package func validate(
    _ document: Document, against schema: SchemaIndex, budget: Int = 10_000_000
) -> [ValidationError] {
    var validator = DocumentValidator(document, schema: schema, budget: budget)
    return validator.validate()
}
