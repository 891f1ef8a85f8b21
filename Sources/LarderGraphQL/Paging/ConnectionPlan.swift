/// The one list of pages in a plan: where it stands, and which variables choose the page.
package struct ConnectionPlan: Sendable {
    /// The variables of one direction.
    package struct Direction: Sendable {
        package var position: String
        package var limit: Limit

        /// Where the size of a page stands.
        package enum Limit: Sendable {
            case variable(String)
            case fixed(Int)
            case unsaid
        }
    }

    /// The response keys of what a page says of its neighbours.
    package struct Neighbours: Sendable {
        package var info: [String]
        package var has: String?
        package var position: String
    }

    /// `Query.listOrders`, for messages.
    package let place: String
    package let kind: Pagination.Kind
    package let maxLimit: Int?
    package let forward: Direction?
    package let backward: Direction?
    /// Where a page says what follows; nil for offsets and numbers.
    package let next: Neighbours?
    package let previous: Neighbours?
    /// The response keys from the root to the field.
    package let path: [String]
    /// The response keys from there to its list of elements.
    package let elements: [String]
    /// Under which an element has its object; nil where the element is the object.
    package let node: String?
    /// Of what is asked of the objects, in `Plan.selections`.
    package let objects: Int
    private let key: FieldKeyTemplate
    private let pageKey: FieldKeyTemplate
    private let pagination: Pagination
    /// The field that has the elements, without a key where the list is the page itself.
    private let list: (key: FieldKeyTemplate?, edge: PageChain.Edge?)
    /// Whether that field, or an element's object, has arguments.
    private let listHasArguments: Bool
    /// Of the fields that lead to the one that has the pages.
    private let pathKeys: [FieldKeyTemplate]

    /// The field's key without the arguments that choose a page: equal for all pages of a list.
    package func listKey(_ variables: [String: Value], _ schema: SchemaIndex) -> String {
        key.key(variables, schema)
    }

    /// How the pages follow each other that say nothing of it; nil where each page says it.
    ///
    /// - Parameter size: Of a page; nil where the operation leaves it open.
    package func steps(_ size: Int?) -> PageSteps? {
        switch kind {
        case .token, .relay: nil
        case .offset, .page: PageSteps(countsElements: kind == .offset, size: size)
        }
    }

    /// Whether the pages can be changed as one list, of which a page knows how it stands to the others.
    package func canChange(_ size: Int?) -> Bool {
        guard !listHasArguments else { return false }
        guard let steps = steps(size) else { return true }
        return list.edge == nil && (size != nil || !steps.countsElements)
    }

    /// How a cache goes from page to page.
    ///
    /// - Parameters:
    ///   - first: The variables of the first page.
    ///   - next: Those of a page that another leads to.
    ///   - previous: Those of a page before the first.
    ///   - size: Of a page; nil where the operation leaves it open.
    ///   - origin: The number of the first page, where pages have numbers.
    package func chain(
        first: [String: Value], next: [String: Value], previous: [String: Value], size: Int?, origin: Int64,
        _ schema: SchemaIndex
    ) -> PageChain {
        var chain = PageChain(first: pageKey.key(first, schema), list: list.key?.key(first, schema))
        if !pathKeys.isEmpty { chain.path = pathKeys.map { $0.key(first, schema) } }
        chain.edge = list.edge
        func way(
            _ direction: Pagination.Direction?, _ neighbours: Neighbours?, _ variables: [String: Value],
            _ names: (has: String, position: String)
        ) -> PageChain.Way? {
            guard let direction, neighbours != nil else { return nil }
            let (before, after) = pageKey.parts(around: direction.position, variables, schema)
            return PageChain.Way(
                before: before, after: after, isText: pageKey.isText(direction.position, schema),
                info: kind == .relay ? "pageInfo" : nil, has: kind == .relay ? names.has : nil,
                position: kind == .relay ? names.position : direction.position)
        }
        guard let steps = steps(size) else {
            chain.next = way(pagination.forward, self.next, next, ("hasNextPage", "endCursor"))
            chain.previous = way(pagination.backward, self.previous, previous, ("hasPreviousPage", "startCursor"))
            return chain
        }
        let (before, after) = pageKey.parts(around: pagination.forward.position, next, schema)
        chain.numbers = PageChain.Numbers(steps: steps, first: origin, before: before, after: after)
        return chain
    }

    /// Finds the list of pages in a plan.
    ///
    /// - Throws: ``PlanError`` of code `invalid` where there is none or more than one, or where the operation lacks a
    ///   variable or a field that paging needs.
    package init(_ plan: Plan, _ schema: SchemaIndex) throws(PlanError) {
        var found:
            [(
                path: [String], keys: [FieldKeyTemplate], field: FieldPlan, definition: FieldDefinition,
                pagination: Pagination, type: String
            )]
        found = []
        var open = [(path: [String](), keys: [FieldKeyTemplate](), selection: plan.root)]
        while let (path, keys, selection) = open.popLast() {
            let planned = plan.selections[selection]
            guard let onlyCase = planned.types.first, Set(planned.types.map(\.caseIndex)).count == 1 else { continue }
            for field in plan.fields[plan.cases[onlyCase.caseIndex].fields] {
                guard case .object(let inner) = field.content,
                    let definition = schema.field(named: field.name, of: planned.staticType)
                else { continue }
                let path = path + [field.responseKey]
                if let pagination = schema.pagination(of: definition) {
                    found.append((path, keys, field, definition, pagination, planned.staticTypeName))
                } else if field.type.listDepth == 0 {
                    let key = field.key.map { plan.keys[$0] } ?? FieldKeyTemplate(name: field.name, arguments: [])
                    open.append((path, keys + [key], inner))
                }
            }
        }
        guard let one = found.first, found.count == 1 else {
            throw PlanError(
                .invalid,
                found.isEmpty
                    ? "The operation asks for no list of pages; name its field's arguments with "
                        + "@fieldPolicy(forField:, paginationArgs:)"
                    : "The operation asks for several lists of pages: "
                        + found.map { $0.path.joined(separator: ".") }.sorted().joined(separator: ", ")
                        + "; page through each with an operation of its own")
        }
        let place = "\(one.type).\(one.field.name)"
        guard case .object(let connection) = one.field.content, let number = one.field.key,
            one.field.type.listDepth <= 1
        else { throw PlanError(.invalid, "\(place) is no list of objects") }
        let template = plan.keys[number]
        (pageKey, pagination) = (template, one.pagination)
        key = template.withoutPages(one.definition)
        let selected = SelectedFields(plan, place)
        pathKeys = one.keys
        (path, kind, maxLimit, self.place) = (one.path, one.pagination.kind, one.pagination.maxLimit, place)
        forward = try selected.direction(one.pagination.forward, template)
        backward = try one.pagination.backward.flatMap { (direction) throws(PlanError) in
            try selected.direction(direction, template)
        }
        guard forward != nil || backward != nil else {
            throw PlanError(
                .invalid,
                "The argument \(one.pagination.forward.position) of \(place) must be a variable of the operation, so "
                    + "that each page can be asked for")
        }
        switch kind {
        case .token:
            let token = try selected.required(one.pagination.forward.position, in: connection)
            next = Neighbours(info: [], has: nil, position: token)
            previous = nil
        case .relay:
            let info = try selected.object("pageInfo", in: connection)
            next =
                forward == nil
                ? nil
                : Neighbours(
                    info: [info.key], has: try selected.required("hasNextPage", in: info.selection),
                    position: try selected.required("endCursor", in: info.selection))
            previous =
                backward == nil
                ? nil
                : Neighbours(
                    info: [info.key], has: try selected.required("hasPreviousPage", in: info.selection),
                    position: try selected.required("startCursor", in: info.selection))
        case .offset, .page: (next, previous) = (nil, nil)
        }
        if one.field.type.listDepth == 1 {
            (elements, node, objects, list, listHasArguments) = ([], nil, connection, (nil, nil), false)
        } else {
            let found = try selected.list(in: connection)
            (elements, node, objects) = ([found.field.responseKey], found.node?.responseKey, found.objects)
            listHasArguments = [found.field, found.node].contains { field in
                field?.key.map { plan.keys[$0].hasArguments } ?? false
            }
            let key = found.field.key.map { plan.keys[$0] }
            list = (key ?? FieldKeyTemplate(name: found.field.name, arguments: []), found.edge)
        }
    }
}

/// Finds fields that an operation selects, by their names.
private struct SelectedFields {
    let plan: Plan
    let place: String

    init(_ plan: Plan, _ place: String) { (self.plan, self.place) = (plan, place) }

    private func fields(of selection: Int) -> ArraySlice<FieldPlan> {
        guard let type = plan.selections[selection].types.first else { return [] }
        return plan.fields[plan.cases[type.caseIndex].fields]
    }

    func required(_ name: String, in selection: Int) throws(PlanError) -> String {
        guard let field = fields(of: selection).first(where: { $0.name == name }) else {
            throw PlanError(
                .invalid, "The pages of \(place) need the field \(name), which the operation does not ask for")
        }
        return field.responseKey
    }

    func object(_ name: String, in selection: Int) throws(PlanError) -> (key: String, selection: Int) {
        let key = try required(name, in: selection)
        guard let field = fields(of: selection).first(where: { $0.responseKey == key }),
            case .object(let inner) = field.content
        else { throw PlanError(.invalid, "\(name) of \(place) is no object") }
        return (key, inner)
    }

    /// The list of the elements: of the objects themselves, or of Relay's `edges`. Beside it there may be lists of other
    /// things, such as what a server counts.
    func list(
        in selection: Int
    ) throws(PlanError) -> (field: FieldPlan, node: FieldPlan?, edge: PageChain.Edge?, objects: Int) {
        var lists: [(field: FieldPlan, selection: Int)] = []
        for field in fields(of: selection) where field.type.listDepth == 1 {
            if case .object(let inner) = field.content { lists.append((field, inner)) }
        }
        let named = ["nodes", "items", "edges"].compactMap { name in lists.first { $0.field.name == name } }.first
        guard named != nil || lists.count < 2 else {
            throw PlanError(
                .invalid,
                "The pages of \(place) have several lists of objects, none of which is named items, nodes or edges: "
                    + lists.map(\.field.name).joined(separator: ", ") + "; ask for one of them")
        }
        guard let list = named ?? lists.first else {
            throw PlanError(
                .invalid, "The pages of \(place) need a list of objects, which the operation does not ask for")
        }
        guard list.field.name == "edges" else { return (list.field, nil, nil, list.selection) }
        let (key, objects) = try object("node", in: list.selection)
        let parts = fields(of: list.selection)
        let type = plan.selections[list.selection]
        let isBare = type.isConcrete && parts.allSatisfy { $0.responseKey == key || $0.content == .typename }
        return (
            list.field, parts.first { $0.responseKey == key },
            PageChain.Edge(node: "node", type: isBare ? type.staticTypeName : nil), objects
        )
    }

    /// Nil where the position is no variable: the operation does not go this way.
    func direction(
        _ direction: Pagination.Direction, _ template: FieldKeyTemplate
    ) throws(PlanError) -> ConnectionPlan.Direction? {
        guard case .variable(let position)? = template.value(of: direction.position) else { return nil }
        let limit: ConnectionPlan.Direction.Limit
        switch direction.limit.flatMap({ template.value(of: $0) }) {
        case .variable(let name): limit = .variable(name)
        case .int(let text): limit = Int(text).map { .fixed($0) } ?? .unsaid
        default: limit = .unsaid
        }
        return .init(position: position, limit: limit)
    }
}

extension FieldKeyTemplate {
    fileprivate func value(of argument: String) -> Literal? { arguments.first { $0.name == argument }?.value }

    /// The key of the whole list of which a field gives a page; this one where the field gives no pages.
    fileprivate func withoutPages(_ field: FieldDefinition) -> FieldKeyTemplate {
        guard let policy = field.policy, !policy.paginationArgs.isEmpty else { return self }
        let keyNames = Set(policy.keyArgs.compactMap(\.components.first))
        return FieldKeyTemplate(
            name: name,
            arguments: arguments.filter { argument in
                keyNames.isEmpty ? !policy.paginationArgs.contains(argument.name) : keyNames.contains(argument.name)
            })
    }
}

extension SchemaIndex {
    /// The key under which a cache has a field that was asked with these arguments.
    ///
    /// - Throws: `.policy` where there is no such type, field or argument.
    package func fieldKey(
        _ name: String, of typeName: String, _ arguments: [String: Value]
    ) throws(SchemaError) -> FieldKey {
        guard let type = type(named: typeName), let field = field(named: name, of: type) else {
            throw SchemaError(.policy, "The schema has no field \(typeName).\(name)")
        }
        if let unknown = arguments.keys.sorted().first(where: { field.argument(named: $0) == nil }) {
            throw SchemaError(.policy, "The field \(typeName).\(name) has no argument \(unknown)")
        }
        let template = FieldKeyTemplate(
            name: name,
            arguments: arguments.keys.sorted().map { argument in
                .init(name: argument, value: .variable(argument), type: field.argument(named: argument)?.type)
            })
        return FieldKey(template.withoutPages(field).key(arguments, self))
    }
}
