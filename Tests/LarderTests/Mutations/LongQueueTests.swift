import Foundation
import Larder
import LarderOperations
import LarderTestSupport
import Testing

private let schema = """
    type Recipe { id: ID! title: String! stars: Int! }
    type Query { recipes: [Recipe!] }
    type Mutation { rate(recipe: ID!, stars: Int!): Recipe! }
    """
private let stars = GraphQLFragment("fragment F on Recipe { stars }")
private let list = GraphQLOperation("{ recipes { id stars } }")

private func withQueue(_ count: Int, _ body: (URL) async throws -> Void) async throws {
    try await withTemporaryFolder { folder in
        let store = try Store.open(at: folder, schema: try Schema(parsing: schema))
        let app = try store.partition()
        let recipes = (0..<count).map { Value.object(["__typename": "Recipe", "id": .string("r\($0)"), "stars": 0]) }
        try await app.write(list, ["recipes": .list(recipes)])
        for number in 0..<count { try await rate("r\(number)", Int64(100 + number), in: app) }
        try store.close()
        try await body(folder)
    }
}

private func rate(_ recipe: String, _ stars: Int64, in app: Partition) async throws {
    let operation = GraphQLOperation(
        "mutation Rate($recipe: ID!, $stars: Int!) { rate(recipe: $recipe, stars: $stars) { id stars } }",
        variables: ["recipe": .string(recipe), "stars": .int(stars)])
    try await app.enqueue(
        operation,
        options: MutationOptions(
            optimisticResponse: ["rate": ["__typename": "Recipe", "id": .string(recipe), "stars": .int(stars)]]))
}

private func reopened(
    _ folder: URL, _ text: String = schema, _ body: (Partition) async throws -> Void
) async throws {
    let store = try Store.open(at: folder, schema: try Schema(parsing: text))
    try await body(try store.partition())
    try store.close()
}

private func read(_ number: Int, in app: Partition) throws -> Int? {
    try app.read("Recipe:r\(number)", stars)["stars"]?.int.map { Int($0) }
}

/// All of them by a list, which come to what each shows.
private func all(in app: Partition) throws -> [Int?] {
    try app.read(list)["recipes"]?.elements.map { $0["stars"]?.int.map { Int($0) } } ?? []
}

@Suite("A long queue, opened without reading what it shows", .timeLimit(.minutes(10)))
struct LongQueueTests {
    @Test("The store keeps which objects each mutation shows, and opens the queue without the contents")
    func unread() async throws {
        try await withQueue(3) { folder in
            let found = try await OperationsDatabase.using(folder) { database in
                try database.mutations.expectations(in: Store.unnamedPartition)
            }
            #expect(found.count == 3)
            for expectation in found {
                #expect(expectation.touched?.isEmpty == false)
                #expect(expectation.content == nil)
            }
        }
    }

    @Test("Each mutation is seen where it is looked for, and all of them in a list")
    func seen() async throws {
        try await withQueue(40) { folder in
            try await reopened(folder) { (app) throws in
                #expect(try read(7, in: app) == 107)
                #expect(try read(8, in: app) == 108)
                try await rate("r7", 207, in: app)
                #expect(try read(9, in: app) == 109)
                #expect(try read(7, in: app) == 207)
                #expect(try all(in: app) == (0..<40).map { $0 == 7 ? 207 : 100 + $0 })
            }
        }
    }

    @Test("Mutations that an older version queued, which kept nothing of what they touch, are seen with the others")
    func older() async throws {
        try await withQueue(20) { folder in
            try OtherProgram(folder).run("UPDATE mutation SET touched = NULL WHERE sequence % 2 = 0")
            try await reopened(folder) { (app) throws in
                for number in [3, 4, 19, 0] { #expect(try read(number, in: app) == 100 + number) }
                #expect(try all(in: app) == (0..<20).map { 100 + $0 })
            }
        }
    }

    @Test("Under a schema by which objects have other keys, mutations are seen where their objects are now")
    func otherKeys() async throws {
        try await withQueue(5) { folder in
            let text = schema.replacingOccurrences(
                of: "type Recipe {", with: "type Recipe @typePolicy(keyFields: \"stars\") {")
            try await reopened(folder, text) { (app) throws in
                let key = "Recipe:103"
                #expect(try app.read(CacheKey(key), stars)["stars"]?.int == 103)
                #expect(try read(3, in: app) == 0)
            }
            try await reopened(folder) { (app) throws in #expect(try read(3, in: app) == 103) }
        }
    }

    @Test("A mutation that was changed or given up since the store was opened is seen as it is now")
    func changedMeanwhile() async throws {
        try await withQueue(5) { folder in
            try await reopened(folder) { (app) throws in
                try OtherProgram(folder).run(
                    """
                    BEGIN;
                    UPDATE mutation SET touched = NULL WHERE sequence = 2;
                    UPDATE mutation_content SET optimistic_response =
                        CAST(replace(CAST(optimistic_response AS TEXT), '"r1"', '"r4"') AS BLOB) WHERE sequence = 2;
                    UPDATE mutation SET state = 3, queued = 0 WHERE sequence = 3;
                    COMMIT;
                    """)
                #expect(try read(1, in: app) == 0)
                #expect(try read(2, in: app) == 0)
                #expect(try read(4, in: app) == 104)
                #expect(try all(in: app) == [100, 0, 0, 103, 104])
            }
        }
    }
}
