/// The schema of the recipe server, in the schema definition language.
package let recipeSchema = """
    directive @typePolicy(keyFields: [String!]!) on OBJECT | INTERFACE
    directive @fieldPolicy(
      forField: String!, keyArgs: [String!], paginationArgs: [String!]
    ) repeatable on OBJECT | INTERFACE

    "An instant in ISO 8601, in UTC."
    scalar DateTime

    enum Cuisine { CHINESE ETHIOPIAN FRENCH INDIAN ITALIAN JAPANESE LEBANESE MEXICAN NORDIC PERUVIAN }
    enum Unit { GRAM MILLILITRE PIECE SPOON }

    "What somebody wrote, and when."
    interface Contribution @typePolicy(keyFields: ["id"]) {
      id: ID!
      author: Author!
      createdAt: DateTime!
    }

    type Recipe implements Contribution @typePolicy(keyFields: ["id"]) {
      id: ID!
      title: String!
      summary: String
      cuisine: Cuisine!
      minutes: Int!
      servings: Int!
      "The mean of all stars given; null while there are none."
      rating: Float
      ratingCount: Int!
      createdAt: DateTime!
      author: Author!
      ingredients: [Portion!]!
      steps: [Step!]!
      comments(first: Int = 10, after: String): CommentPage!
      similar(limit: Int = 3): [Recipe!]!
      "Cannot be computed for some recipes, which is an error beside the data."
      nutrition: Nutrition
    }

    "An amount of an ingredient; has no identity of its own."
    type Portion {
      amount: Float!
      unit: Unit!
      ingredient: Ingredient!
    }

    type Nutrition {
      kilocalories: Int!
      protein: Float!
    }

    type Ingredient @typePolicy(keyFields: ["id"]) {
      id: ID!
      name: String!
      isVegan: Boolean!
      usedIn(first: Int = 10, after: String): RecipePage!
    }

    type Step @typePolicy(keyFields: ["id"]) {
      id: ID!
      number: Int!
      text: String!
      minutes: Int
      recipe: Recipe!
    }

    type Comment implements Contribution @typePolicy(keyFields: ["id"]) {
      id: ID!
      text: String!
      stars: Int
      createdAt: DateTime!
      author: Author!
      recipe: Recipe!
    }

    type Author @typePolicy(keyFields: ["id"]) {
      id: ID!
      name: String!
      bio: String
      recipes(first: Int = 10, after: String): RecipePage!
      comments(first: Int = 10, after: String): CommentPage!
    }

    type RecipePage {
      items: [Recipe!]!
      "What to pass as `after` for the next page; null on the last one."
      next: String
      total: Int!
    }

    type CommentPage {
      items: [Comment!]!
      next: String
      total: Int!
    }

    union SearchResult = Recipe | Author | Ingredient

    input RecipeFilter {
      cuisine: Cuisine
      maximumMinutes: Int
      ingredients: [ID!]
    }

    type Query
      @fieldPolicy(forField: "recipe", keyArgs: ["id"])
      @fieldPolicy(forField: "author", keyArgs: ["id"])
      @fieldPolicy(forField: "ingredient", keyArgs: ["id"])
      @fieldPolicy(forField: "comment", keyArgs: ["id"])
      @fieldPolicy(forField: "recipes", paginationArgs: ["first", "after"])
    {
      recipe(id: ID!): Recipe
      recipes(first: Int = 20, after: String, filter: RecipeFilter): RecipePage!
      author(id: ID!): Author
      ingredient(id: ID!): Ingredient
      comment(id: ID!): Comment
      search(text: String!, limit: Int = 10): [SearchResult!]!
      "The newest contributions of all kinds."
      latest(limit: Int = 10): [Contribution!]!
    }

    type Mutation {
      rateRecipe(id: ID!, stars: Int!): Recipe
      renameRecipe(id: ID!, title: String!): Recipe
      addComment(recipe: ID!, author: ID!, text: String!, stars: Int): Comment
    }
    """
