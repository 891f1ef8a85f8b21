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
