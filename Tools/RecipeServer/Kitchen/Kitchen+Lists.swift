import LarderGraphQL

extension Kitchen {
    /// The object that the argument `id` names; null where there is none.
    func find(_ arguments: Arguments, in count: Int, _ node: (Int) -> Node) -> Resolved {
        .optional(arguments.string("id").flatMap { Self.index(of: $0, count: count) }) { .node(node($0)) }
    }

    /// The page of `all` that the arguments `first` and `after` ask for. A cursor is the position of its last item.
    func page(of all: [Int], _ arguments: Arguments) throws(ResolverError) -> Page {
        let first = try limit(arguments, "first")
        var start = 0
        if let after = arguments.string("after") {
            guard let position = Self.index(of: after, count: all.count) else {
                throw ResolverError(message: "\"\(after)\" is not a cursor of this list.", code: "BAD_USER_INPUT")
            }
            start = position + 1
        }
        let items = Array(all[start...].prefix(first))
        let end = start + items.count
        return Page(items: items, next: end < all.count && end > 0 ? String(end) : nil, total: all.count)
    }

    func page(_ page: Page, _ field: String, _ node: (Int) -> Node) throws(ResolverError) -> Resolved {
        switch field {
        case "items": .list(page.items.map { .node(node($0)) })
        case "next": .optional(page.next) { .string($0) }
        case "total": .int(page.total)
        default: throw .unknown(field)
        }
    }

    /// The indices of the recipes that the argument `filter` lets through.
    func filtered(_ arguments: Arguments) -> [Int] {
        guard case .object(let filter)? = arguments["filter"] else { return Array(recipes.indices) }
        let wanted = Arguments(filter)
        let ids: [Int?] =
            if case .list(let ids)? = wanted["ingredients"] {
                ids.map { if case .string(let id) = $0 { Self.index(of: id, count: ingredients.count) } else { nil } }
            } else {
                []
            }
        return recipes.indices.filter { index in
            let recipe = recipes[index]
            if let cuisine = wanted.string("cuisine"), recipe.cuisine != cuisine { return false }
            if let minutes = wanted.int("maximumMinutes"), recipe.minutes > minutes { return false }
            return ids.allSatisfy { id in recipe.portions.contains { $0.ingredient == id } }
        }
    }

    /// Recipes, then authors, then ingredients in whose name the text occurs, whatever its case.
    func search(_ text: String, limit: Int) -> Resolved {
        let sought = text.lowercased()
        func matches(_ count: Int, _ name: (Int) -> String, _ node: (Int) -> Node) -> [Node] {
            (0..<count).filter { name($0).lowercased().contains(sought) }.map(node)
        }
        let nodes =
            matches(recipes.count, { recipes[$0].title }, { .recipe($0) })
            + matches(authors.count, { authors[$0].name }, { .author($0) })
            + matches(ingredients.count, { ingredients[$0].name }, { .ingredient($0) })
        return .list(nodes.prefix(limit).map { .node($0) })
    }

    /// A number of items: 0 to 1,000. More is an error and not silently less.
    func limit(_ arguments: Arguments, _ name: String) throws(ResolverError) -> Int {
        // An explicit null asks for as many as there may be.
        let limit = arguments.int(name) ?? 1_000
        guard (0...1_000).contains(limit) else {
            throw ResolverError(message: "\(name) must be between 0 and 1000.", code: "BAD_USER_INPUT")
        }
        return limit
    }
}

extension ResolverError {
    static func unknown(_ field: String) -> ResolverError {
        ResolverError(message: "Nothing resolves the field \(field).", code: "INTERNAL_SERVER_ERROR")
    }
}
