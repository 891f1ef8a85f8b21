import Larder
import LarderTestSupport

/// What a `ScriptedServer` carries out.
func giveStars(_ recipe: String, _ stars: Int) -> GraphQLOperation {
    GraphQLOperation(
        """
        mutation Rate($recipe: ID!, $stars: Int!) { rate(input: {recipe: $recipe, stars: $stars}) { id title rating } }
        """,
        variables: ["recipe": .string(recipe), "stars": .int(Int64(stars))])
}

extension Partition {
    /// Queues a rating in the lane of its recipe.
    @discardableResult
    func queueStars(_ recipe: String, _ stars: Int) async throws -> MutationReceipt {
        try await enqueue(giveStars(recipe, stars), options: .init(lane: .entity("Recipe:\(recipe)")))
    }
}

/// Rates two recipes, in the fields `first` and `second`.
func giveStarsToTwo(_ stars: Int = 5) -> GraphQLOperation {
    GraphQLOperation(
        """
        mutation {
          first: rate(input: {recipe: "1", stars: \(stars)}) { id rating }
          second: rate(input: {recipe: "2", stars: \(stars)}) { id rating }
        }
        """)
}

/// The schema of a server where one of two ratings may fail alone.
let schemaOfPartialFailure = fixtureSchema.replacing(
    "rate(input: Rating!): Recipe!", with: "rate(input: Rating!): Recipe")
