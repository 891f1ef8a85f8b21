import Larder

/// The first page of recipes, with nearly everything that belongs to them.
struct Cookbook: TypedOperation {
    struct Data: Decodable, Sendable { var recipes: Page }

    struct Page: Decodable, Sendable {
        var total: Int
        var items: [Recipe]
    }

    struct Recipe: Decodable, Sendable {
        var id: String
        var title: String
        var ratingCount: Int
        var author: Author
        var ingredients: [Portion]
        var steps: [Step]
        var comments: Comments
    }

    struct Author: Decodable, Sendable { var id: String }
    struct Ingredient: Decodable, Sendable { var id: String }
    struct Portion: Decodable, Sendable { var ingredient: Ingredient }
    struct Step: Decodable, Sendable { var id: String }
    struct Comments: Decodable, Sendable { var items: [Comment] }

    struct Comment: Decodable, Sendable {
        var id: String
        var author: Author
    }

    static let size = 500

    var operation: GraphQLOperation { GraphQLOperation(Self.document, variables: ["first": .int(Int64(Self.size))]) }

    private static let document = """
        query Cookbook($first: Int!) {
          recipes(first: $first) {
            total
            items {
              id title summary cuisine minutes servings rating ratingCount createdAt
              author { id name bio }
              ingredients { amount unit ingredient { id name isVegan } }
              steps { id number text minutes }
              comments(first: 10) { items { id text stars createdAt author { id name bio } } }
            }
          }
        }
        """
}

extension Cookbook.Data {
    /// The cache keys of all objects that have one, each once however often it occurs.
    var keys: Set<String> {
        var keys: Set<String> = []
        for recipe in recipes.items {
            keys.insert("Recipe:\(recipe.id)")
            keys.insert("Author:\(recipe.author.id)")
            for portion in recipe.ingredients { keys.insert("Ingredient:\(portion.ingredient.id)") }
            for step in recipe.steps { keys.insert("Step:\(step.id)") }
            for comment in recipe.comments.items {
                keys.insert("Comment:\(comment.id)")
                keys.insert("Author:\(comment.author.id)")
            }
        }
        return keys
    }
}

enum Questions {
    /// One recipe, with fields that the cookbook has too.
    static func recipe(_ id: String) -> GraphQLOperation {
        GraphQLOperation(
            "query Recipe($id: ID!) { recipe(id: $id) { id title author { name } steps { number text } } }",
            variables: ["id": .string(id)])
    }

    static func ratings(_ id: String) -> GraphQLOperation {
        GraphQLOperation(
            "query Ratings($id: ID!) { recipe(id: $id) { id ratingCount } }", variables: ["id": .string(id)])
    }

    /// One recipe with a field that no other question has, and a recipe that no other question brought.
    static func unknown(known: String, never: String) -> GraphQLOperation {
        GraphQLOperation(
            """
            query Unknown($known: ID!, $never: ID!) {
              known: recipe(id: $known) { title nutrition { kilocalories } }
              never: recipe(id: $never) { title }
            }
            """, variables: ["known": .string(known), "never": .string(never)])
    }

    static func author(_ id: String) -> GraphQLOperation {
        GraphQLOperation("query Author($id: ID!) { author(id: $id) { name bio } }", variables: ["id": .string(id)])
    }

    /// The newest contributions, recipes and comments: an interface.
    static let latest = GraphQLOperation(
        """
        query Latest {
          latest(limit: 50) {
            __typename id createdAt author { name }
            ... on Recipe { title minutes }
            ... on Comment { text stars recipe { id title } }
          }
        }
        """)

    static func rename(_ id: String, to title: String) -> GraphQLOperation {
        GraphQLOperation(
            "mutation Rename($id: ID!, $title: String!) { renameRecipe(id: $id, title: $title) { id title } }",
            variables: ["id": .string(id), "title": .string(title)])
    }

    static func rate(_ id: String, stars: Int64) -> GraphQLOperation {
        GraphQLOperation(
            "mutation Rate($id: ID!, $stars: Int!) { rateRecipe(id: $id, stars: $stars) { id rating ratingCount } }",
            variables: ["id": .string(id), "stars": .int(stars)])
    }

    static func identity(of type: String) -> GraphQLFragment {
        GraphQLFragment("fragment Identity on \(type) { id }")
    }

    static let rating = GraphQLFragment("fragment Rating on Recipe { rating ratingCount }")
    static let card = GraphQLFragment("fragment Card on Recipe { title ratingCount }")
    static let title = GraphQLFragment("fragment Title on Recipe { title }")
    static let biography = GraphQLFragment("fragment Biography on Author { bio }")
}
