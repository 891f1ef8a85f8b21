/// The selections of one operation or fragment as numbered nodes, with `@include` and `@skip` decided.
///
/// Each selection set and field of the document becomes one node however often it is reached, so that work on them
/// can be remembered by number.
struct NumberedSelections {
    enum Item {
        /// An index into `fields`.
        case field(Int)
        /// The set with this number, for objects of the type; of any type where it is nil.
        case fragment(SchemaIndex.TypeID?, set: Int)
    }

    struct FieldNode {
        let field: Field
        /// The set of the field's own selections; nil for a leaf.
        let selections: Int?
    }

    private(set) var sets: [[Item]] = []
    private(set) var fields: [FieldNode] = []
    private let schema: SchemaIndex
    private let conditions: [String: Bool]
    private let fragments: [String: FragmentDefinition]
    private var fragmentSets: [String: Int] = [:]
    /// Sets that have their number and are not numbered inside yet.
    private var waiting: [(set: Int, selections: [Selection])] = []

    /// - Parameter conditions: The values of the variables that `@include` and `@skip` name.
    init(_ document: Document, _ schema: SchemaIndex, conditions: [String: Bool]) {
        self.schema = schema
        self.conditions = conditions
        fragments = document.fragmentsByName
    }

    /// Numbers a selection set and all that it leads to; answers its number.
    mutating func add(_ selections: [Selection]) throws(PlanError) -> Int {
        let number = numbered(selections)
        // One after the other: chains of fragments are as long as the document.
        while let next = waiting.popLast() { try fill(next.set, next.selections) }
        return number
    }

    private mutating func numbered(_ selections: [Selection]) -> Int {
        let number = sets.count
        sets.append([])
        waiting.append((number, selections))
        return number
    }

    private mutating func fill(_ number: Int, _ selections: [Selection]) throws(PlanError) {
        var items: [Item] = []
        for selection in selections {
            switch selection {
            case .field(let field):
                guard isIncluded(field.directives) else { continue }
                let inner = field.selections.isEmpty ? nil : numbered(field.selections)
                items.append(.field(fields.count))
                fields.append(FieldNode(field: field, selections: inner))
            case .inlineFragment(let fragment):
                guard isIncluded(fragment.directives) else { continue }
                let condition = try type(fragment.typeCondition, fragment.location)
                items.append(.fragment(condition, set: numbered(fragment.selections)))
            case .fragmentSpread(let spread):
                guard isIncluded(spread.directives) else { continue }
                guard let fragment = fragments[spread.name] else {
                    throw PlanError(.invalid, "There is no fragment \(spread.name)", location: spread.location)
                }
                let condition = try type(fragment.typeCondition, fragment.location)
                items.append(.fragment(condition, set: set(of: fragment)))
            }
        }
        sets[number] = items
    }

    private mutating func set(of fragment: FragmentDefinition) -> Int {
        if let known = fragmentSets[fragment.name] { return known }
        let number = numbered(fragment.selections)
        fragmentSets[fragment.name] = number
        return number
    }

    private func type(_ name: String?, _ location: Location) throws(PlanError) -> SchemaIndex.TypeID? {
        guard let name else { return nil }
        guard let type = schema.type(named: name) else {
            throw PlanError(.invalid, "The schema has no type \(name) for a fragment", location: location)
        }
        return type
    }

    private func isIncluded(_ directives: [Directive]) -> Bool {
        directives.allSatisfy { directive in
            guard let wanted = directive.condition else { return true }
            let value: Bool? =
                switch wanted {
                case .boolean(let value): value
                case .variable(let name): conditions[name]
                default: nil
                }
            return directive.name == "include" ? value ?? true : !(value ?? false)
        }
    }
}

extension Directive {
    /// The `if` of `@include` or `@skip`; nil for other directives.
    var condition: Literal? {
        guard name == "include" || name == "skip" else { return nil }
        return arguments.first { $0.name == "if" }?.value
    }
}

extension Document {
    /// The variables that decide about `@include` and `@skip` anywhere in the document.
    package var conditionVariables: Set<String> {
        var names: Set<String> = []
        var rest: [Selection] = operations.flatMap(\.selections) + fragments.flatMap(\.selections)
        while let selection = rest.popLast() {
            let directives: [Directive]
            switch selection {
            case .field(let field):
                directives = field.directives
                rest += field.selections
            case .inlineFragment(let fragment):
                directives = fragment.directives
                rest += fragment.selections
            case .fragmentSpread(let spread): directives = spread.directives
            }
            for directive in directives {
                if case .variable(let name)? = directive.condition { names.insert(name) }
            }
        }
        return names
    }
}

extension Document {
    /// The fragments that the selections spread, directly or through others, in the order of the document.
    package func reachable(from selections: [Selection]) -> [FragmentDefinition] {
        var used: Set<String> = []
        let known = fragmentsByName
        var rest = selections
        while let selection = rest.popLast() {
            switch selection {
            case .field(let field): rest += field.selections
            case .inlineFragment(let fragment): rest += fragment.selections
            case .fragmentSpread(let spread):
                guard used.insert(spread.name).inserted else { continue }
                if let fragment = known[spread.name] { rest += fragment.selections }
            }
        }
        return fragments.filter { used.contains($0.name) }
    }

    /// The fragments by their names; of several with one name the first.
    fileprivate var fragmentsByName: [String: FragmentDefinition] {
        Dictionary(fragments.map { ($0.name, $0) }, uniquingKeysWith: { first, _ in first })
    }
}
