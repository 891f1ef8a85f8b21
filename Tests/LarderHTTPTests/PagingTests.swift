import Foundation
import Larder
import LarderHTTP
import LarderTestSupport
import Testing

@Suite(
    "Lists of a GraphQL server that is not ours",
    .enabled(if: ForeignServer.isAvailable, "\(ForeignServer.requirement)"), .timeLimit(.minutes(10)))
struct PagingTests {
    private static let orders = GraphQLOperation(
        """
        query L($filter: OrderFilter, $limit: Int, $nextToken: String) {
          listOrders(filter: $filter, limit: $limit, nextToken: $nextToken) { items { id price } nextToken }
        }
        """)

    private func withServer(
        _ count: Int, _ body: (Partition) async throws -> Void
    ) async throws {
        try await ForeignServer.run("pages.py", "\(count)") { server in
            try await HTTPTransport.withTransport(to: server.url) { transport in
                try await withTemporaryFolder { folder in
                    let text = try String(
                        contentsOf: ServerProcess.folder.appending(path: "pages.graphqls"), encoding: .utf8)
                    let store = try Store.open(at: folder, schema: try Schema(parsing: text))
                    try await body(try store.partition(server: transport))
                    try store.close()
                }
            }
        }
    }

    private func asked(_ app: Partition) async throws -> Int64? {
        try await app.send(GraphQLOperation("mutation { asked }"))["asked"]?.int
    }

    private func ids(_ pages: Pages) async throws -> [Int] {
        var ids: [Int] = []
        for index in 0..<(try await pages.status().pageCount) {
            ids += try pages.page(index)?.objects.compactMap { $0["id"]?.string.flatMap(Int.init) } ?? []
        }
        return ids
    }

    @Test("All of 25,000 rows are loaded with 25 requests, each once and in order")
    func loadsAll() async throws {
        try await withServer(25_000) { app in
            let pages = try app.pages(Self.orders)
            let status = try await pages.all()
            #expect(status == PagesStatus(pageCount: 25, objectCount: 25_000, isComplete: true))
            #expect(try await asked(app) == 25)
            #expect(try await ids(pages) == Array(0..<25_000))
        }
    }

    @Test("A filter that the server applies after the limit is asked on until there are enough matches")
    func loadsMatches() async throws {
        try await withServer(25_000) { app in
            var operation = Self.orders
            operation.variables = ["filter": ["owner": "joebloggs"], "limit": 100]
            let pages = try app.pages(operation)
            // Four of each hundred are his.
            #expect(try await pages.atLeast(30) == PagesStatus(pageCount: 8, objectCount: 32))
            #expect(try await asked(app) == 8)
        }
    }

    @Test("A list whose tokens have expired is loaded anew from the start")
    func startsOver() async throws {
        try await withServer(2_500) { app in
            #expect(try await app.pages(Self.orders).all(upTo: 1_500).objectCount == 2_000)
            _ = try await app.send(GraphQLOperation("mutation { expireTokens }"))
            let pages = try app.pages(Self.orders)
            #expect(try await pages.all() == PagesStatus(pageCount: 3, objectCount: 2_500, isComplete: true))
            #expect(try await ids(pages) == Array(0..<2_500))
        }
    }

    @Test("A connection is read to its end, and from its end to its start")
    func readsConnection() async throws {
        try await withServer(95) { app in
            var operation = GraphQLOperation(
                """
                query C($first: Int, $after: String, $last: Int, $before: String) {
                  orders(first: $first, after: $after, last: $last, before: $before) {
                    nodes { id } pageInfo { hasNextPage hasPreviousPage startCursor endCursor }
                  }
                }
                """)
            operation.variables = ["first": 20]
            let forward = try app.pages(operation)
            #expect(try await forward.all() == PagesStatus(pageCount: 5, objectCount: 95, isComplete: true))
            #expect(try await ids(forward) == Array(0..<95))
            operation.variables = ["last": 20]
            let backward = try app.pages(operation)
            while try await backward.previous() != nil {}
            #expect(try await ids(backward) == Array(0..<95))
        }
    }

    @Test(
        "Lists by offset and by number are read to their end",
        arguments: [
            "query A($offset: Int, $limit: Int = 20) { ordersAt(offset: $offset, limit: $limit) { id } }",
            "query N($page: Int, $size: Int = 20) { ordersOn(page: $page, size: $size) { id } }",
        ])
    func readsNumbered(document: String) async throws {
        try await withServer(95) { app in
            let pages = try app.pages(GraphQLOperation(document))
            #expect(try await pages.all() == PagesStatus(pageCount: 5, objectCount: 95, isComplete: true))
            #expect(try await ids(pages) == Array(0..<95))
        }
    }

    @Test("A list that shrinks while it is read ends where the server's ends")
    func shrinks() async throws {
        try await withServer(95) { app in
            var operation = Self.orders
            operation.variables = ["limit": 20]
            let pages = try app.pages(operation)
            #expect(try await pages.atLeast(60).objectCount == 60)
            _ = try await app.send(GraphQLOperation("mutation { setCount(count: 50) }"))
            #expect(try await pages.all() == PagesStatus(pageCount: 4, objectCount: 60, isComplete: true))
            #expect(
                try await pages.all(startingOver: true) == PagesStatus(pageCount: 3, objectCount: 50, isComplete: true))
        }
    }
}
