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
