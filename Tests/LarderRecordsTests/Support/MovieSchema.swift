/// What most tests of the cache are about: entities, parts, lists, an interface and a union.
let movieSchema = """
    type Query {
      movie(id: ID): Movie
      movies(first: Int = 10, filter: Filter, genres: [Genre]): [Movie!]
      top: [Movie]
      node(id: ID): Node
      search(text: String, ratio: Float, tags: [[String]], raw: JSON): [Found]
      viewer: User
      box: Box
      shelf: Shelf
      animal: Animal
      animals: [Animal]
      number: Float
      count: Int
      note(text: String): String
      raw: JSON
      matrix: [[Point]]
      strict: [Movie!]!
    }
    type Mutation { rate(id: ID!, stars: Int!): Rating }
    type Subscription { rated: Rating }
    type Rating { stars: Int, movie: Movie, point: Point }
    interface Node { id: ID! }
    type Movie implements Node {
      id: ID! title: String year: Int director: User required: User! cast: [User!] place: Point points: [Point]
      spot: Spot spots: [Spot] related(first: Int, after: String): [Movie] score: Float done: Boolean raw: JSON
      matrix: [[Point]]
    }
    type User implements Node { id: ID! name: String login: String! friends: [User] best: User }
    type Point { x: Int y: Int next: Point inner: [Point] movie: Movie }
    type Place { id: ID! name: String }
    union Spot = Point | Place
    union Found = Movie | User | Point
    type Box { x: Int y: Int z: Int }
    type Shelf @typePolicy(keyFields: ["row", "column"]) { row: String! column: Int! label: String }
    interface Animal { name: String owner: Node home: Point }
    type Dog implements Animal { name: String! owner: User home: Point! bark: Int }
    type Cat implements Animal { name: String owner: Movie home: Point purr: Int }
    input Filter { genre: Genre, years: [Int!], rating: Float, text: String, nested: Filter, id: ID }
    enum Genre { DRAMA COMEDY }
    scalar JSON
    """

/// So many fields that a record with all of them is split: `f0` to `f69`, each of which has its number as its value.
enum ManyFields {
    static let names = (0..<70).map { "f\($0)" }
    /// As a schema declares them.
    static let declared = names.map { "\($0): Int" }.joined(separator: " ")
    static let selected = names.joined(separator: " ")
    /// As members of a JSON object.
    static let values = (0..<70).map { "\"f\($0)\":\($0)" }.joined(separator: ",")
}
