/// The one delta query in a plan: where it stands, and which variables choose what it brings.
package struct SyncPlan: Sendable {
    /// `Query.syncTodos`, for messages.
    package let place: String
    /// The response keys of the field, and in it of the objects and of what the server says of its pages.
    package let field: String
    package let items: String
    package let nextToken: String
    package let startedAt: String
    /// The variables.
    package let lastSync: String
    package let token: String
    package let limit: String?
    /// The types that the objects may have.
    package let types: [String]
    private let key: FieldKeyTemplate

    /// The arguments that choose a page.
    private static let paging: Set<String> = ["lastSync", "nextToken", "limit"]

    /// Finds the delta query of a plan: its only field.
    ///
    /// - Throws: ``PlanError`` of code `invalid` where it is none, or lacks a variable or a field that is needed.
    package init(_ plan: Plan) throws(PlanError) {
        let planned = plan.selections[plan.root]
        let fields = planned.types.first.map { plan.fields[plan.cases[$0.caseIndex].fields] } ?? []
        guard let field = fields.first(where: { $0.content != .typename }),
            fields.filter({ $0.content != .typename }).count == 1,
            case .object(let inner) = field.content, field.type.listDepth == 0, let key = field.key
        else { throw PlanError(.invalid, "The operation does not ask for one field with objects that were changed") }
        let template = plan.keys[key]
        place = "\(planned.staticTypeName).\(field.name)"
        self.field = field.responseKey
        self.key = template
        func variable(_ name: String) -> String? {
            guard case .variable(let variable)? = template.arguments.first(where: { $0.name == name })?.value else {
                return nil
            }
            return variable
        }
        guard let lastSync = variable("lastSync"), let token = variable("nextToken") else {
            throw PlanError(.invalid, "The arguments lastSync and nextToken of \(place) must be variables")
        }
        (self.lastSync, self.token, limit) = (lastSync, token, variable("limit"))
        let connection = plan.selections[inner]
        let parts = connection.types.first.map { plan.fields[plan.cases[$0.caseIndex].fields] } ?? []
        func part(_ name: String) -> FieldPlan? { parts.first { $0.name == name && $0.slot != nil } }
        guard let items = part("items"), case .object(let objects) = items.content, let next = part("nextToken"),
            let started = part("startedAt")
        else { throw PlanError(.invalid, "\(place) must be asked for items, nextToken and startedAt") }
        (self.items, nextToken, startedAt) = (items.responseKey, next.responseKey, started.responseKey)
        types = plan.selections[objects].types.map(\.name)
        for type in plan.selections[objects].types where plan.cases[type.caseIndex].version == nil {
            throw PlanError(
                .invalid,
                "\(place) brings \(type.name), which has no versions; say @typePolicy(versioned: true) of it")
        }
    }

    /// The field's key without the arguments that choose a page.
    package func listKey(_ variables: [String: Value], _ schema: SchemaIndex) -> String {
        let rest = key.arguments.filter { !Self.paging.contains($0.name) }
        return FieldKeyTemplate(name: key.name, arguments: rest).key(variables, schema)
    }

    /// Whether the query leaves objects of its types out.
    package func isFiltered(_ variables: [String: Value]) -> Bool {
        key.arguments.contains { argument in
            guard !Self.paging.contains(argument.name) else { return false }
            switch argument.value.resolved(variables) {
            case nil, .null?: return false
            default: return true
            }
        }
    }
}
