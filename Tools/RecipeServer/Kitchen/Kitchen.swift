/// The recipe server's data, in memory. Objects refer to each other by their index; an id is index + 1 as text, so
/// that a recipe and an author may well have the same one.
struct Kitchen: Sendable {
    struct Recipe: Sendable {
        var title: String
        var summary: String?
        var cuisine: String
        var minutes: Int
        var servings: Int
        var stars: [Int]
        /// Seconds since 1970.
        var createdAt: Int
        var author: Int
        var portions: [Portion]
        var steps: [Int]
        var comments: [Int]
    }

    struct Portion: Sendable {
        var amount: Double
        var unit: String
        var ingredient: Int
    }

    struct Step: Sendable {
        var number: Int
        var text: String
        var minutes: Int?
        var recipe: Int
    }

    struct Comment: Sendable {
        var text: String
        var stars: Int?
        var createdAt: Int
        var author: Int
        var recipe: Int
    }

    struct Author: Sendable {
        var name: String
        var bio: String?
        var recipes: [Int] = []
        var comments: [Int] = []
    }

    struct Ingredient: Sendable {
        var name: String
        var isVegan: Bool
        var kilocalories: Int
        var usedIn: [Int] = []
    }

    var recipes: [Recipe] = []
    var steps: [Step] = []
    var comments: [Comment] = []
    var authors: [Author] = []
    var ingredients: [Ingredient] = []
    /// The time of the newest contribution; what is added comes a minute later, so that answers can be foretold.
    var latestTime = 0

    /// How many objects with an id there are.
    var objectCount: Int { recipes.count + steps.count + comments.count + authors.count + ingredients.count }

    /// The index that an id stands for among `count` objects; nil where there is none.
    static func index(of id: String, count: Int) -> Int? {
        guard let number = Int(id), String(number) == id, (1...max(1, count)).contains(number), number <= count
        else { return nil }
        return number - 1
    }

    static func id(of index: Int) -> String { String(index + 1) }
}
