import Larder

/// What a program expects of the server when it gives stars to a recipe.
struct ExpectedRating {
    let id: String
    let mean: Double
    let count: Int64

    /// As it is now, and one more.
    init(of id: String, in app: Partition, with stars: Int64) throws {
        let now = try app.read("Recipe:\(id)", Questions.rating)
        let before = now["ratingCount"]?.int ?? 0
        self.id = id
        count = before + 1
        mean = ((now["rating"]?.double ?? 0) * Double(before) + Double(stars)) / Double(count)
    }

    var response: Value {
        .object(["rateRecipe": .object(["id": .string(id), "rating": .float(mean), "ratingCount": .int(count)])])
    }
}
