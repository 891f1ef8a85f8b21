import Foundation
import Larder
import LarderHTTP
import LarderTestSupport
import LarderURLSession
import Testing

@Suite("The name of a server", .timeLimit(.minutes(10)))
struct ServerNameTests {
    private static let url = "https://ada:hush@h.example:8443/a%2Fb/graphql?key=hush#hush"

    @Test("It has no user, password, query or fragment")
    func parts() throws {
        let url = try #require(URL(string: Self.url))
        let name = "https://h.example:8443/a%2Fb/graphql"
        #expect(HTTPTransport(endpoint: url).server == name)
        #expect(URLSessionTransport(endpoint: url).server == name)
        let plain = try #require(URL(string: name))
        #expect(HTTPTransport(endpoint: plain).server == name)
    }

    @Test("A synchronization keeps it without the query, and a query that changes makes it no other server")
    func kept() async throws {
        let schema = """
            type Query { syncTodos(limit: Int, nextToken: String, lastSync: Float): TodoConnection }
            type TodoConnection { items: [Todo]! nextToken: String startedAt: Float }
            type Todo @typePolicy(versioned: true) { id: ID! _version: Int! _deleted: Boolean _lastChangedAt: Float! }
            """
        let sync = Synchronization(
            GraphQLOperation(
                """
                query Sync($limit: Int, $nextToken: String, $lastSync: Float) {
                  syncTodos(limit: $limit, nextToken: $nextToken, lastSync: $lastSync) {
                    items { id } nextToken startedAt
                  }
                }
                """))
        let item = #"{"__typename":"Todo","id":"a","_version":1,"_deleted":null,"_lastChangedAt":1}"#
        let page = #"{"items":[\#(item)],"nextToken":null,"startedAt":1700000000000}"#
        try await ScriptedServer.run { _ in
            .json(#"{"data":{"syncTodos":\#(page)}}"#)
        } _: { server in
            try await withTemporaryFolder { folder in
                let store = try Store.open(at: folder, schema: try Schema(parsing: schema))
                for (key, isBase) in [("hush-1", true), ("hush-2", false)] {
                    let url = server.url.appending(queryItems: [URLQueryItem(name: "key", value: key)])
                    let app = try store.partition(server: .http(url))
                    #expect(try await app.sync(sync).isBase == isBase)
                }
                #expect(server.requests.map { $0.parameters["key"] } == ["hush-1", "hush-2"])
                try store.close()
                let kept = try bytes(below: folder)
                #expect(kept.contains { $0.range(of: Data(server.url.absoluteString.utf8)) != nil })
                #expect(!kept.contains { $0.range(of: Data("hush".utf8)) != nil })
            }
        }
    }

    private func bytes(below folder: URL) throws -> [Data] {
        try FileManager.default.subpathsOfDirectory(atPath: folder.path).compactMap { name in
            let file = folder.appending(path: name)
            var isFolder: ObjCBool = false
            guard FileManager.default.fileExists(atPath: file.path, isDirectory: &isFolder), !isFolder.boolValue else {
                return nil
            }
            return try Data(contentsOf: file)
        }
    }
}
