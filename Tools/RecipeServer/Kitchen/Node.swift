/// An object of the schema, as the executor passes it from field to field.
enum Node: Sendable {
    case query, mutation
    case recipe(Int)
    case step(Int)
    case comment(Int)
    case author(Int)
    case ingredient(Int)
    case portion(Kitchen.Portion)
    case nutrition(kilocalories: Int, protein: Double)
    case recipePage(Page)
    case commentPage(Page)

    /// The name of its object type.
    var typeName: String {
        switch self {
        case .query: "Query"
        case .mutation: "Mutation"
        case .recipe: "Recipe"
        case .step: "Step"
        case .comment: "Comment"
        case .author: "Author"
        case .ingredient: "Ingredient"
        case .portion: "Portion"
        case .nutrition: "Nutrition"
        case .recipePage: "RecipePage"
        case .commentPage: "CommentPage"
        }
    }
}

/// A stretch of a list.
struct Page: Sendable {
    var items: [Int]
    var next: String?
    var total: Int
}

/// What a resolver gives: not yet held against the field's type.
enum Resolved: Sendable {
    case null
    case boolean(Bool)
    case int(Int)
    case float(Double)
    case string(String)
    case node(Node)
    case list([Resolved])

    static func optional<Wrapped>(_ value: Wrapped?, _ make: (Wrapped) -> Resolved) -> Resolved {
        value.map(make) ?? .null
    }
}

/// What a resolver throws, to stand in the response's errors.
struct ResolverError: Error {
    var message: String
    /// Goes into `extensions.code`.
    var code: String
}
