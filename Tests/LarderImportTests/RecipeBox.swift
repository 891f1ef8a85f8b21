import Foundation
import Larder
import LarderImport
import LarderTestSupport
import Testing

/// A small schema with objects, parts, an interface, lists and arguments of all kinds.
let recipeSchema = """
    scalar Note
    enum Course { STARTER MAIN DESSERT }
    interface Contribution { id: ID! author: Cook }
    type Cook { id: ID! name: String! specialty: String }
    type Recipe implements Contribution {
      id: ID! title: String! rating: Float author: Cook steps: [Step!] timing: Timing note: Note tags: [String!]
      comments(first: Int): [Comment]
    }
    type Comment implements Contribution { id: ID! author: Cook text: String! }
    type Step { text: String! minutes: Int }
    type Timing { prepare: Int cook: Int }
    type Book @typePolicy(keyFields: "isbn") { isbn: Int! title: String }
    input Range { from: Int to: Int }
    input Filter { course: Course text: String range: Range only: [Course!] ids: [ID!] }
    type Query {
      recipe(id: ID!): Recipe
      recipes(course: Course, first: Int, text: String): [Recipe]
      search(filter: Filter, filters: [Filter!], ids: [ID!], numbers: [Int!], courses: [Course!], ratio: Float,
        deep: Boolean, note: Note): [Contribution]
      latest: [Contribution]
      book(isbn: Int!): Book
      must(a: String!, b: String): Recipe
      count: Int
    }
    type Mutation { rate(id: ID!, stars: Int!): Recipe }
    """

/// Runs `body` in a folder with a new store, and a folder for another library's files.
func withRecipeBox(_ body: (Partition, URL) async throws -> Void) async throws {
    try await withTemporaryFolder { folder in
        let source = folder.appending(path: "source")
        try FileManager.default.createDirectory(at: source, withIntermediateDirectories: true)
        let store = try Store.open(at: folder.appending(path: "store"), schema: try Schema(parsing: recipeSchema))
        let app = try store.partition()
        try await body(app, source)
        #expect(try app.records.check().isSound)
        try store.close()
    }
}

func source(
    _ path: String, _ format: ImportFormat = .apollo, schema: String = recipeSchema,
    _ change: (inout ImportOptions) -> Void = { _ in }
) throws -> ImportSource {
    var options = ImportOptions()
    change(&options)
    return try ImportSource(format, path: path, schema: try Schema(parsing: schema), options: options)
}

extension Partition {
    /// What the cache answers, as JSON.
    func json(_ document: String, partial: Bool = false) throws -> String {
        String(decoding: try read(GraphQLOperation(document), allowsPartial: partial).json, as: UTF8.self)
    }

    /// The paths that the cache lacks.
    func missing(_ document: String) throws -> [String] {
        try read(GraphQLOperation(document), allowsPartial: true).missing.map(\.description)
    }
}
