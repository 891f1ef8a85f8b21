import Foundation
import LarderGraphQL
import LarderRecords

/// A recorded response, and the operation and schema that it belongs to.
struct BenchInput {
    /// Where it comes from.
    var source: String
    var schema: SchemaIndex
    var operation: BoundOperation
    /// What it was made of.
    var texts: (schema: String, document: String)
    var body: [UInt8]
    /// Whether the response is the one that `GitHubTypes` describes.
    var isGitHub = false

    init(source: String, schema: String, document: String, name: String?, variables: [UInt8]?, body: [UInt8]) throws {
        self.source = source
        self.body = body
        self.schema = try SchemaIndex(parsing: schema)
        texts = (schema, document)
        let compiled = try CompiledOperation(operation: name, in: Document(parsing: document), self.schema)
        var values: [String: Value] = [:]
        if let variables, case .object(let members) = try Value(json: variables) { values = members }
        operation = try compiled.bound(values)
    }

    /// The response among the test data; nil where it is not there.
    static func recorded() throws -> BenchInput? {
        let folder = (ProcessInfo.processInfo.environment["LARDER_TEST_DATA"] ?? "../shared/data") + "/github"
        let name = "IssuesAndCommentsForRepository"
        guard FileManager.default.fileExists(atPath: "\(folder)/\(name).json") else { return nil }
        var input = try BenchInput(
            source: "\(folder)/\(name).json", schema: try text("\(folder)/schema.graphqls"),
            document: try text("\(folder)/\(name).graphql"), name: nil, variables: nil,
            body: try bytes("\(folder)/\(name).json"))
        input.isGitHub = true
        return input
    }

    static func bytes(_ path: String) throws -> [UInt8] { Array(try Data(contentsOf: URL(filePath: path))) }
    static func text(_ path: String) throws -> String { String(decoding: try bytes(path), as: UTF8.self) }
}
