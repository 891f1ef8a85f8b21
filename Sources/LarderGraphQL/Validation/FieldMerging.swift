/// Whether fields with one response key can be one field of a response (section 5.3.2).
///
/// Fields are not compared pair by pair, which takes quadratic or, through fragments, exponential time. All fields
/// that meet in one place of a response are collected and compared with the first of them; what they select is then
/// collected in turn. A place is known by the selection sets that meet there, and looked at once. There are two
/// passes, since shapes must agree whatever the parent types, and arguments only where one object can have both.
struct FieldMerging {
    struct Conflict {
        var message: String
        var location: Location
    }

    let graph: SelectionGraph
    let fragmentRoots: [Int?]
    let schema: SchemaIndex
    private var conflicts: [Conflict] = []
    private var reported: Set<Int> = []

    init(graph: SelectionGraph, fragmentRoots: [Int?], schema: SchemaIndex) {
        self.graph = graph
        self.fragmentRoots = fragmentRoots
        self.schema = schema
    }

    /// Stops where the budget runs out.
    mutating func conflicts(from starts: [Int], budget: inout WorkBudget) -> [Conflict] {
        visit(starts, budget: &budget) { (merging: inout Self, fields, _) in
            merging.compareShapes(fields)
            return [fields]
        }
        visit(starts, budget: &budget) { (merging: inout Self, fields, budget) in
            let groups = merging.groupsByObject(fields, budget: &budget)
            for group in groups { merging.compareSignatures(group) }
            return groups
        }
        return conflicts
    }

    /// Visits all places of the responses.
    ///
    /// - Parameter compare: Compares the fields that share a response key, and says which of them are merged.
    private mutating func visit(
        _ starts: [Int], budget: inout WorkBudget, compare: (inout Self, [Int], inout WorkBudget) -> [[Int]]
    ) {
        var waiting = starts.map { [$0] }
        var seen = Set(waiting)
        while let place = waiting.popLast() {
            guard let fields = graph.fields(of: place, roots: fragmentRoots, budget: &budget) else { return }
            var byKey: [Int: [Int]] = [:]
            for field in fields { byKey[graph.fields[field].responseKey, default: []].append(field) }
            for sharing in byKey.values {
                for group in compare(&self, sharing, &budget) {
                    guard budget.spend(group.count) else { return }
                    let children = Set(group.compactMap { graph.fields[$0].child }).sorted()
                    if !children.isEmpty, seen.insert(children).inserted { waiting.append(children) }
                }
            }
        }
    }

    /// The fields that one object can have together: those of each object type with those of abstract types.
    /// None where the budget runs out.
    private func groupsByObject(_ fields: [Int], budget: inout WorkBudget) -> [[Int]] {
        guard fields.count > 1 else { return [fields] }
        var shared: [Int] = []
        var byType: [SchemaIndex.TypeID: [Int]] = [:]
        for field in fields {
            let node = graph.fields[field]
            if node.isConcrete { byType[node.parent, default: []].append(field) } else { shared.append(field) }
        }
        guard budget.spend(shared.count * byType.count + fields.count) else { return [] }
        return byType.isEmpty ? [shared] : byType.values.map { shared + $0 }
    }

    // MARK: - Comparing

    private mutating func compareSignatures(_ group: [Int]) {
        guard let first = group.min(by: graph.isBefore) else { return }
        for field in group where graph.fields[field].signature != graph.fields[first].signature {
            let (one, other) = (graph.fields[first], graph.fields[field])
            report(
                field,
                one.name == other.name
                    ? "\(other.name) is also selected at \(one.location) with other arguments and the same response key"
                    : "\(other.name) has the response key of \(one.name), which is selected at \(one.location)")
        }
    }

    private mutating func compareShapes(_ fields: [Int]) {
        guard fields.count > 1, let first = fields.first(where: { graph.fields[$0].type != nil }),
            let type = graph.fields[first].type
        else { return }
        for field in fields {
            guard let other = graph.fields[field].type, !hasSameShape(type, other) else { continue }
            report(
                field,
                "\(graph.fields[field].name) is \(schema.description(of: other)), and the field with its "
                    + "response key at \(graph.fields[first].location) is \(schema.description(of: type))")
        }
    }

    /// `SameResponseShape` without the subselections: the same wrappers around the same leaf, or composites both.
    private func hasSameShape(_ one: ResolvedType, _ other: ResolvedType) -> Bool {
        guard one.listDepth == other.listDepth, one.nonNullLevels == other.nonNullLevels else { return false }
        if schema.types[one.named].kind.isComposite { return schema.types[other.named].kind.isComposite }
        return one.named == other.named
    }

    private mutating func report(_ field: Int, _ message: String) {
        // Several places may find the same fault, and no reader needs thousands.
        guard conflicts.count < DocumentValidator.mostErrors, reported.insert(field).inserted else { return }
        conflicts.append(Conflict(message: message, location: graph.fields[field].location))
    }
}
