import Larder

struct OneRecipe: TypedOperation {
    struct Data: Codable, Sendable { var recipe: Recipe? }
    struct Recipe: Codable, Sendable {
        var __typename = "Recipe"
        var id: String
        var title: String
        var rating: Double?
    }
    var id: String
    var operation: GraphQLOperation {
        GraphQLOperation(
            "query One($id: ID!) { recipe(id: $id) { __typename id title rating } }", variables: ["id": .string(id)])
    }
}

struct RateRecipe: TypedOperation {
    struct Data: Codable, Sendable { var rate: OneRecipe.Recipe }
    var id: String
    var rating: Double
    var operation: GraphQLOperation {
        GraphQLOperation(
            "mutation Rate($id: ID!, $rating: Float!) { rate(id: $id, rating: $rating) { __typename id title rating } }",
            variables: ["id": .string(id), "rating": .float(rating)])
    }
}

let kitchenSchema = """
    scalar AWSDateTime
    enum Course { STARTER MAIN DESSERT }
    interface Node { id: ID! }
    type Cook implements Node { id: ID! name: String! }
    type Recipe implements Node {
      id: ID! title: String! rating: Float minutes: Int! isVegan: Boolean course: Course createdAt: AWSDateTime
      cook: Cook! steps: [Step!]!
    }
    type Step { text: String! }
    type RecipePage { items: [Recipe!]! nextToken: String }
    input NewRecipe { title: String! minutes: Int! }
    type Query @fieldPolicy(forField: "recipe", keyArgs: ["id"])
      @fieldPolicy(forField: "recipesByID", keyArgs: ["ids"]) {
      recipe(id: ID!): Recipe
      recipesByID(ids: [ID!]!): [Recipe!]!
      recipes(limit: Int, nextToken: String): RecipePage!
      node: Node!
    }
    type Mutation { rate(id: ID!, rating: Float!): Recipe! add(input: NewRecipe!): Recipe! }
    """
