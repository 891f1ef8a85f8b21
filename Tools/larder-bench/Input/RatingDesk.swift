import Foundation
import Larder
import LarderGraphQL
import LarderOperations

/// A program that rates items, a server of its own process that answers at once, and a queue as full as one likes.
struct RatingDesk {
    static let schemaText = """
        type Query { item(id: ID!): Item }
        type Mutation { rename(id: ID!, title: String!): Item! }
        type Item { id: ID! title: String! }
        """
    static let document =
        "mutation Rename($id: ID!, $title: String!) { rename(id: $id, title: $title) { id title } }"

    private static let title = "A soup of lentils and a good deal of cumin"

    /// The same mutations as a program queues them.
    static func mutation(_ number: Int) -> (operation: GraphQLOperation, options: MutationOptions) {
        let fields: [String: Value] = ["id": .string("\(number)"), "title": .string(title)]
        let item = fields.merging(["__typename": .string("Item")]) { $1 }
        return (
            GraphQLOperation(document, name: "Rename", variables: fields),
            MutationOptions(optimisticResponse: .object(["rename": .object(item)]))
        )
    }

    /// Mutations that were never queued.
    static func draft(_ number: Int) -> MutationDraft {
        MutationDraft(
            partition: Store.unnamedPartition,
            content: MutationContent(
                document: document, operationName: "Rename",
                variables: Array(#"{"id":"\#(number)","title":"\#(title)"}"#.utf8),
                optimisticResponse: Array(
                    #"{"rename":{"__typename":"Item","id":"\#(number)","title":"\#(title)"}}"#.utf8)),
            created: Date())
    }

    /// Opens a store in whose queue there are so many.
    static func open(at path: String, pending count: Int) async throws -> (Store, Partition) {
        let folder = URL(filePath: path)
        let database = try OperationsDatabase(folder: folder)
        try await withThrowingTaskGroup(of: Void.self) { group in
            // As many side by side as make the commits few.
            for task in 0..<64 {
                group.addTask {
                    for number in stride(from: task, to: count, by: 64) {
                        _ = try await database.mutations.enqueue(draft(number))
                    }
                }
            }
            try await group.waitForAll()
        }
        try database.close()
        return try reopen(at: path)
    }

    static func reopen(at path: String) throws -> (Store, Partition) {
        let store = try Store.open(at: URL(filePath: path), schema: Schema(parsing: schemaText))
        return (store, try store.partition(server: AgreeingServer()))
    }
}

/// Answers that it has renamed what it was asked to rename.
private struct AgreeingServer: GraphQLTransport {
    var idempotency: Idempotency? { .header(name: "Idempotency-Key") }

    func send(
        _ request: GraphQLRequest, within time: Duration
    ) async throws(TransportError) -> GraphQLAnswer {
        // The variables are the object's fields.
        let fields = request.variables.dropFirst()
        return GraphQLAnswer(body: Array(#"{"data":{"rename":{"__typename":"Item","#.utf8) + fields + Array("}}".utf8))
    }
}
