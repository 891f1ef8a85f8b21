import Foundation
import LarderTestSupport
import RecipeServer
import Testing

/// A folder with a schema, documents and responses, and room for a store.
struct CommandFixture {
    let folder: URL

    static let schema = """
        directive @fieldPolicy(forField: String!, keyArgs: [String!]) repeatable on OBJECT
        type Query @fieldPolicy(forField: "recipe", keyArgs: ["id"]) {
          recipe(id: ID!): Recipe
          recipes(first: Int): [Recipe!]!
        }
        type Recipe { id: ID! title: String! minutes: Int author: Author! size: Size }
        type Author { id: ID! name: String! }
        type Size { grams: Int! }
        """

    static let operations = """
        query List($n: Int) {
          recipes(first: $n) { __typename id title minutes size { grams } author { __typename id name } }
        }
        query One($id: ID!) { recipe(id: $id) { __typename id title author { __typename id name } } }
        """

    static let list = #"""
        {"data":{"recipes":[{"__typename":"Recipe","id":"1","title":"Soup","minutes":20,"size":{"grams":400},\#
        "author":{"__typename":"Author","id":"7","name":"Ada"}},{"__typename":"Recipe","id":"2","title":"Bread",\#
        "minutes":null,"size":null,"author":{"__typename":"Author","id":"7","name":"Ada"}}]}}
        """#

    /// Runs `body` with a fixture whose store holds `list`.
    static func withStore(_ body: (CommandFixture) async throws -> Void) async throws {
        try await withFiles { fixture in
            let outcome = try await fixture.ingestList()
            try #require(outcome.status == 0, "\(outcome.errors)")
            try await body(fixture)
        }
    }

    /// Runs `body` with a fixture that has no store yet.
    static func withFiles(_ body: (CommandFixture) async throws -> Void) async throws {
        try await withTemporaryFolder { folder in
            let fixture = CommandFixture(folder: folder)
            try fixture.write(schema, to: "schema.graphqls")
            try fixture.write(operations, to: "operations.graphql")
            try fixture.write(list, to: "list.json")
            try fixture.write(#"{"n":2}"#, to: "two.json")
            try await body(fixture)
        }
    }

    /// Runs `body` with a fixture that has no store yet, and with a server whose schema is in `recipes.graphqls`.
    static func withRecipes(_ body: (CommandFixture, RecipeServer) async throws -> Void) async throws {
        try await withTemporaryFolder { folder in
            let fixture = CommandFixture(folder: folder)
            try fixture.write(RecipeServer.schema, to: "recipes.graphqls")
            let server = try await RecipeServer.start()
            do { try await body(fixture, server) } catch {
                try? await server.stop()
                throw error
            }
            try await server.stop()
        }
    }

    var store: String { path("store") }

    func path(_ name: String) -> String { folder.appending(path: name).path }

    @discardableResult
    func write(_ text: String, to name: String) throws -> String {
        try Data(text.utf8).write(to: folder.appending(path: name))
        return path(name)
    }

    /// The options of verbs that take an operation.
    func operation(_ name: String, variables: String? = nil) throws -> [String] {
        var options = [
            "--schema", path("schema.graphqls"), "--operation", path("operations.graphql"), "--name", name,
        ]
        if let variables { options += ["--variables", try write(variables, to: "variables.json")] }
        return options
    }

    func ingestList(_ more: String...) async throws -> Outcome {
        let options = try operation("List", variables: #"{"n":2}"#)
        return try await larder(["ingest"] + options + ["--response", path("list.json")] + more)
    }

    /// Stores a recipe under another title, as another process would.
    func rename(_ id: String, to title: String) async throws {
        let response = #"""
            {"data":{"recipe":{"__typename":"Recipe","id":"\#(id)","title":"\#(title)",\#
            "author":{"__typename":"Author","id":"7","name":"Ada"}}}}
            """#
        let outcome = try await larder(
            ["ingest"] + operation("One", variables: #"{"id":"\#(id)"}"#)
                + ["--response", write(response, to: "one.json")])
        try #require(outcome.status == 0, "\(outcome.errors)")
    }

    /// Runs the command on the store.
    func larder(_ arguments: [String], input: String = "") async throws -> Outcome {
        try await LarderProcess.run(arguments + ["--store", store], input: input)
    }

    func larder(_ arguments: String...) async throws -> Outcome { try await larder(arguments) }

    /// The store's files, when each was changed, and what is in it.
    ///
    /// Lock files hold who has the store open, `lock.mdb` LMDB's table of readers: whoever reads is written in, and
    /// they are no part of the data.
    func snapshot() throws -> [String: String] {
        var found: [String: String] = [:]
        let manager = FileManager.default
        for name in try manager.subpathsOfDirectory(atPath: folder.path) {
            let path = self.path(name)
            let attributes = try manager.attributesOfItem(atPath: path)
            let time = (attributes[.modificationDate] as? Date)?.timeIntervalSinceReferenceDate ?? 0
            let isFolder = attributes[.type] as? FileAttributeType == .typeDirectory
            let isLock = name.hasSuffix("lock.mdb") || name.hasSuffix(".lock")
            let content = isFolder || isLock ? 0 : try Data(contentsOf: URL(filePath: path)).hashValue
            found[name] = isLock ? "lock" : "\(time) \(content)"
        }
        return found
    }
}
