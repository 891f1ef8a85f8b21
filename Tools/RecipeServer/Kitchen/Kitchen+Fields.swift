extension Kitchen {
    /// The value of one field of one object, its arguments coerced and their defaults taken.
    mutating func resolve(_ field: String, of node: Node, _ arguments: Arguments) throws(ResolverError) -> Resolved {
        switch node {
        case .query: try query(field, arguments)
        case .mutation: try mutate(field, arguments)
        case .recipe(let index): try recipe(index, field, arguments)
        case .step(let index): try step(index, field)
        case .comment(let index): try comment(index, field)
        case .author(let index): try author(index, field, arguments)
        case .ingredient(let index): try ingredient(index, field, arguments)
        case .portion(let portion): try self.portion(portion, field)
        case .nutrition(let kilocalories, let protein):
            switch field {
            case "kilocalories": .int(kilocalories)
            case "protein": .float(protein)
            default: throw .unknown(field)
            }
        case .recipePage(let page): try self.page(page, field) { .recipe($0) }
        case .commentPage(let page): try self.page(page, field) { .comment($0) }
        }
    }

    private func query(_ field: String, _ arguments: Arguments) throws(ResolverError) -> Resolved {
        switch field {
        case "recipe": return find(arguments, in: recipes.count) { .recipe($0) }
        case "author": return find(arguments, in: authors.count) { .author($0) }
        case "ingredient": return find(arguments, in: ingredients.count) { .ingredient($0) }
        case "comment": return find(arguments, in: comments.count) { .comment($0) }
        case "recipes":
            return .node(.recipePage(try page(of: filtered(arguments), arguments)))
        case "search":
            return search(arguments.string("text") ?? "", limit: try limit(arguments, "limit"))
        case "latest":
            let newest =
                recipes.indices.map { (recipes[$0].createdAt, 0, Node.recipe($0)) }
                + comments.indices.map { (comments[$0].createdAt, 1, Node.comment($0)) }
            let sorted = newest.sorted { ($1.0, $1.1) < ($0.0, $0.1) }.prefix(try limit(arguments, "limit"))
            return .list(sorted.map { .node($0.2) })
        default: throw .unknown(field)
        }
    }

    private func recipe(_ index: Int, _ field: String, _ arguments: Arguments) throws(ResolverError) -> Resolved {
        let recipe = recipes[index]
        switch field {
        case "id": return .string(Self.id(of: index))
        case "title": return .string(recipe.title)
        case "summary": return .optional(recipe.summary) { .string($0) }
        case "cuisine": return .string(recipe.cuisine)
        case "minutes": return .int(recipe.minutes)
        case "servings": return .int(recipe.servings)
        case "rating":
            guard !recipe.stars.isEmpty else { return .null }
            return .float(Double(recipe.stars.reduce(0, +)) / Double(recipe.stars.count))
        case "ratingCount": return .int(recipe.stars.count)
        case "createdAt": return .string(DateTime.text(recipe.createdAt))
        case "author": return .node(.author(recipe.author))
        case "ingredients": return .list(recipe.portions.map { .node(.portion($0)) })
        case "steps": return .list(recipe.steps.map { .node(.step($0)) })
        case "comments": return .node(.commentPage(try page(of: recipe.comments, arguments)))
        case "similar":
            let others = recipes.indices.lazy.filter { $0 != index && recipes[$0].cuisine == recipe.cuisine }
            return .list(others.prefix(try limit(arguments, "limit")).map { .node(.recipe($0)) })
        case "nutrition": return try nutrition(index)
        default: throw .unknown(field)
        }
    }

    private func nutrition(_ index: Int) throws(ResolverError) -> Resolved {
        guard (index + 1) % 25 != 0 else {
            throw ResolverError(message: "The nutrition of this recipe cannot be computed.", code: "NOT_COMPUTED")
        }
        let recipe = recipes[index]
        let total = recipe.portions.reduce(0) { $0 + $1.amount * Double(ingredients[$1.ingredient].kilocalories) / 100 }
        let each = (total / Double(max(1, recipe.servings))).rounded()
        return .node(.nutrition(kilocalories: Int(each), protein: (each / 8).rounded() / 10))
    }

    private func step(_ index: Int, _ field: String) throws(ResolverError) -> Resolved {
        let step = steps[index]
        return switch field {
        case "id": .string(Self.id(of: index))
        case "number": .int(step.number)
        case "text": .string(step.text)
        case "minutes": .optional(step.minutes) { .int($0) }
        case "recipe": .node(.recipe(step.recipe))
        default: throw .unknown(field)
        }
    }

    private func comment(_ index: Int, _ field: String) throws(ResolverError) -> Resolved {
        let comment = comments[index]
        return switch field {
        case "id": .string(Self.id(of: index))
        case "text": .string(comment.text)
        case "stars": .optional(comment.stars) { .int($0) }
        case "createdAt": .string(DateTime.text(comment.createdAt))
        case "author": .node(.author(comment.author))
        case "recipe": .node(.recipe(comment.recipe))
        default: throw .unknown(field)
        }
    }

    private func author(_ index: Int, _ field: String, _ arguments: Arguments) throws(ResolverError) -> Resolved {
        let author = authors[index]
        return switch field {
        case "id": .string(Self.id(of: index))
        case "name": .string(author.name)
        case "bio": .optional(author.bio) { .string($0) }
        case "recipes": .node(.recipePage(try page(of: author.recipes, arguments)))
        case "comments": .node(.commentPage(try page(of: author.comments, arguments)))
        default: throw .unknown(field)
        }
    }

    private func ingredient(_ index: Int, _ field: String, _ arguments: Arguments) throws(ResolverError) -> Resolved {
        let ingredient = ingredients[index]
        return switch field {
        case "id": .string(Self.id(of: index))
        case "name": .string(ingredient.name)
        case "isVegan": .boolean(ingredient.isVegan)
        case "usedIn": .node(.recipePage(try page(of: ingredient.usedIn, arguments)))
        default: throw .unknown(field)
        }
    }

    private func portion(_ portion: Portion, _ field: String) throws(ResolverError) -> Resolved {
        switch field {
        case "amount": .float(portion.amount)
        case "unit": .string(portion.unit)
        case "ingredient": .node(.ingredient(portion.ingredient))
        default: throw .unknown(field)
        }
    }
}
