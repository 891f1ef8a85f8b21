/// How a field's arguments choose a page of a list, as its `@fieldPolicy(paginationArgs:)` says.
package struct Pagination: Sendable, Hashable {
    /// How a page says where the next one begins.
    package enum Kind: String, Sendable, Hashable, CaseIterable {
        /// By a token in the page, which an argument of the same name takes: `nextToken`.
        case token
        /// By cursors in `pageInfo`: a connection as Relay specifies it.
        case relay
        /// By how many elements come before it.
        case offset
        /// By its number, from 1.
        case page
    }

    /// The arguments of one direction.
    package struct Direction: Sendable, Hashable {
        /// Says where the page begins, or ends.
        package var position: String
        /// Says how many elements are wanted; nil where the server alone decides.
        package var limit: String?
    }

    package var kind: Kind
    package var forward: Direction
    /// Of Relay's connections, where the policy names `before`. Offsets and numbers go back by the forward arguments.
    package var backward: Direction?
    /// The largest page that the server gives; nil where that is not known.
    package var maxLimit: Int?

    /// AppSync gives 1,000 at most, and takes a larger limit for 20.
    package static let maxLimitOfTokens = 1_000
}

extension SchemaIndex {
    /// How a field goes from page to page; nil where its policy names no arguments that say it.
    package func pagination(of field: FieldDefinition) -> Pagination? {
        guard let policy = field.policy, !policy.paginationArgs.isEmpty else { return nil }
        let names = policy.paginationArgs
        func first(_ candidates: String...) -> String? { candidates.first { names.contains($0) } }
        func direction(_ position: String) -> Pagination.Direction {
            .init(position: position, limit: names.first { $0 != position && isInt($0, of: field) })
        }
        if names.contains("after") || names.contains("before"), types[field.type.named].field(named: "pageInfo") != nil
        {
            return Pagination(
                kind: .relay, forward: .init(position: "after", limit: first("first", "limit")),
                backward: first("before").map { .init(position: $0, limit: first("last", "limit")) },
                maxLimit: policy.maxLimit)
        }
        if let token = names.first(where: { types[field.type.named].field(named: $0) != nil }), !field.type.isList {
            return Pagination(
                kind: .token, forward: direction(token), maxLimit: policy.maxLimit ?? Pagination.maxLimitOfTokens)
        }
        if let offset = first("offset", "skip") {
            return Pagination(kind: .offset, forward: direction(offset), maxLimit: policy.maxLimit)
        }
        if let page = first("page", "pageNumber") {
            return Pagination(kind: .page, forward: direction(page), maxLimit: policy.maxLimit)
        }
        return nil
    }

    private func isInt(_ argument: String, of field: FieldDefinition) -> Bool {
        guard let type = field.argument(named: argument)?.type else { return false }
        return !type.isList && types[type.named].name == "Int"
    }
}

/// The size of page that one place of an operation asks for, which must be one that the server gives.
package struct PageLimit: Sendable {
    let value: Literal
    let maximum: Int
    let place: String

    /// - Throws: ``PlanError`` where the document itself asks for what cannot be.
    static func all(
        _ pagination: Pagination, _ field: Field, _ type: String
    ) throws(PlanError) -> [PageLimit] {
        var limits: [PageLimit] = []
        for name in Set([pagination.forward.limit, pagination.backward?.limit].compactMap(\.self)).sorted() {
            guard let value = field.arguments.first(where: { $0.name == name })?.value else { continue }
            let limit = PageLimit(
                value: value, maximum: pagination.maxLimit ?? .max, place: "\(name) of \(type).\(field.name)")
            if case .variable = value {
                limits.append(limit)
            } else if let fault = limit.fault(value.resolved([:])) {
                throw PlanError(.invalid, fault, location: field.location)
            }
        }
        return limits
    }

    /// - Throws: ``PlanError`` of code `variable` where a variable asks for what the server does not give.
    package func check(_ variables: [String: Value]) throws(PlanError) {
        if let fault = fault(value.resolved(variables)) { throw PlanError(.variable, fault) }
    }

    private func fault(_ value: Value?) -> String? {
        guard case .int(let limit)? = value else { return nil }
        if limit < 0 { return "The argument \(place) is \(limit), and no page has fewer than 0 elements" }
        guard limit > maximum else { return nil }
        return "The argument \(place) is \(limit), and the server gives \(maximum) at most; "
            + "ask for less, and for more pages"
    }
}
