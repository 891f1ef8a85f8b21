import Foundation
import Larder
import LarderTestSupport
import Synchronization
import Testing

@Suite("Updaters of lists, by their names", .timeLimit(.minutes(10)))
struct ListUpdaterTests {
    private static let schema = """
        type Recipe { id: ID! title: String! }
        type Query { recipes: [Recipe!] }
        type Mutation { add(title: String!): Recipe! }
        """
    private static let list = GraphQLOperation("{ recipes { id title } }")
    private static let add = GraphQLOperation(
        "mutation Add($title: String!) { add(title: $title) { id title } }", variables: ["title": "Cake"])

    /// Puts what was added where the title begins to be greater.
    private static let shelve: ListUpdater = { mutation in
        guard let id = mutation.response["add"]?["id"]?.string else { return [] }
        return [.insert("Recipe:\(id)", into: "recipes", at: .ascending(field: "title"))]
    }

    private static let adding = ScriptedServer { _ in
        #"{"data":{"add":{"__typename":"Recipe","id":"r7","title":"Cake"}}}"#
    }

    private func open(_ folder: URL, _ updaters: [String: ListUpdater]) throws -> (Store, Partition) {
        var options = Store.Options()
        options.updaters = updaters
        let store = try Store.open(at: folder, schema: try Schema(parsing: Self.schema), options: options)
        return (store, try store.partition(server: Self.adding))
    }

    private func write(_ app: Partition) async throws {
        try await app.write(
            Self.list,
            [
                "recipes": [
                    ["__typename": "Recipe", "id": "r1", "title": "Bread"],
                    ["__typename": "Recipe", "id": "r2", "title": "Soup"],
                ]
            ])
    }

    private func ids(_ app: Partition) throws -> [String] {
        try app.read(Self.list)["recipes"]?.elements.compactMap { $0["id"]?.string } ?? []
    }

    private func queued(_ temporary: TemporaryObjectID, _ updater: String) -> MutationOptions {
        MutationOptions(
            optimisticResponse: ["add": ["__typename": "Recipe", "id": .string(temporary.text), "title": "Cake"]],
            updater: updater, temporaryIDs: [temporary])
    }

    @Test("An updater works on the expected answer, after a restart too, and then on the server's")
    func both() async throws {
        try await withTemporaryFolder { (folder) throws in
            let temporary = TemporaryObjectID()
            let first = try open(folder, ["shelve": Self.shelve])
            try await write(first.1)
            try await first.1.enqueue(Self.add, options: queued(temporary, "shelve"))
            #expect(try ids(first.1) == ["r1", temporary.text, "r2"])
            try first.0.close()
            let (store, app) = try open(folder, ["shelve": Self.shelve])
            #expect(try ids(app) == ["r1", temporary.text, "r2"])
            try await MutationRunner(app).drain()
            #expect(try ids(app) == ["r1", "r7", "r2"])
            #expect(try app.records.check().isSound)
            try store.close()
        }
    }

    @Test("A name that is not registered is refused before anything is queued")
    func unknown() async throws {
        try await withTemporaryFolder { (folder) throws in
            let (store, app) = try open(folder, [:])
            let error = await #expect(throws: LarderError.self) {
                try await app.enqueue(Self.add, options: queued(TemporaryObjectID(), "shelve"))
            }
            #expect(error?.code == .unknownUpdater)
            #expect(try app.mutations().isEmpty)
            try store.close()
        }
    }

    @Test("Where an updater fails, or the program has it no more, the answer is stored without it")
    func failing() async throws {
        for updaters in [[:], ["shelve": { (_) throws in throw Silence() } as ListUpdater]] {
            try await withTemporaryFolder { (folder) throws in
                let first = try open(folder, ["shelve": Self.shelve])
                try await write(first.1)
                let receipt = try await first.1.enqueue(Self.add, options: queued(TemporaryObjectID(), "shelve"))
                try first.0.close()
                let (store, app) = try open(folder, updaters)
                #expect(try ids(app) == ["r1", "r2"])
                try await MutationRunner(app).drain()
                #expect(try app.mutation(receipt.id).status()?.state == .applied)
                #expect(try ids(app) == ["r1", "r2"])
                let card = GraphQLFragment("fragment F on Recipe { title }")
                #expect(try app.read("Recipe:r7", card)["title"]?.string == "Cake")
                try store.close()
            }
        }
    }

    @Test("An updater is told the operation as it was queued")
    func told() async throws {
        let told = Mutex<[GraphQLOperation]>([])
        let look: ListUpdater = { mutation in
            told.withLock { $0.append(mutation.operation) }
            return []
        }
        try await withTemporaryFolder { (folder) throws in
            let (store, app) = try open(folder, ["look": look])
            try await write(app)
            try await app.enqueue(Self.add, options: queued(TemporaryObjectID(), "look"))
            _ = try ids(app)
            try await MutationRunner(app).drain()
            let operations = told.withLock(\.self)
            #expect(!operations.isEmpty && operations.allSatisfy { $0.variables == Self.add.variables })
            #expect(operations.allSatisfy { $0.document == Self.add.document })
            try store.close()
        }
    }

    @Test("An updater of a mutation that says no expected answer works on the server's answer")
    func withoutExpectedAnswer() async throws {
        try await withTemporaryFolder { (folder) throws in
            let (store, app) = try open(folder, ["shelve": Self.shelve])
            try await write(app)
            try await app.enqueue(Self.add, options: MutationOptions(updater: "shelve"))
            #expect(try ids(app) == ["r1", "r2"])
            try await MutationRunner(app).drain()
            #expect(try ids(app) == ["r1", "r7", "r2"])
            try store.close()
        }
    }
}
