extension Kitchen {
    mutating func mutate(_ field: String, _ arguments: Arguments) throws(ResolverError) -> Resolved {
        switch field {
        case "rateRecipe":
            let recipe = try existing("recipe", arguments.string("id"), among: recipes.count)
            recipes[recipe].stars.append(try stars(arguments) ?? 0)
            return .node(.recipe(recipe))
        case "renameRecipe":
            let recipe = try existing("recipe", arguments.string("id"), among: recipes.count)
            recipes[recipe].title = try text(arguments, "title")
            return .node(.recipe(recipe))
        case "addComment":
            let recipe = try existing("recipe", arguments.string("recipe"), among: recipes.count)
            let author = try existing("author", arguments.string("author"), among: authors.count)
            let (text, stars) = (try text(arguments, "text"), try stars(arguments))
            latestTime += 60
            return .node(.comment(addComment(text: text, stars: stars, author: author, recipe: recipe)))
        default:
            throw .unknown(field)
        }
    }

    private func existing(_ kind: String, _ id: String?, among count: Int) throws(ResolverError) -> Int {
        guard let id, let index = Self.index(of: id, count: count) else {
            throw ResolverError(message: "There is no \(kind) with the id \(id ?? "null").", code: "NOT_FOUND")
        }
        return index
    }

    private func stars(_ arguments: Arguments) throws(ResolverError) -> Int? {
        guard let stars = arguments.int("stars") else { return nil }
        guard (1...5).contains(stars) else {
            throw ResolverError(message: "stars must be between 1 and 5.", code: "BAD_USER_INPUT")
        }
        return stars
    }

    private func text(_ arguments: Arguments, _ name: String) throws(ResolverError) -> String {
        guard let text = arguments.string(name), !text.allSatisfy(\.isWhitespace) else {
            throw ResolverError(message: "\(name) must not be empty.", code: "BAD_USER_INPUT")
        }
        return text
    }
}
