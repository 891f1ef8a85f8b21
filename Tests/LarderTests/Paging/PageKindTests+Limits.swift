import Larder
import LarderTestSupport
import Testing

/// What is a limit, and what is an element.
extension PageKindTests {
    @Test("A document whose limit is below 0 is refused as such, whether it is paged, fetched or read")
    func refusesWrittenNegative() async throws {
        let desk = OrderDesk([:])
        let operation = GraphQLOperation(
            "query L($t: String) { listOrders(limit: -1, nextToken: $t) { items { sku } nextToken } }")
        try await withStoreFixture(desk.transport, schema: orderSchema) { (app) async throws in
            #expect(await larderError { try app.pages(operation) }?.code == .operation)
            #expect(await larderError { try await app.fetch(operation) }?.code == .operation)
            #expect(await larderError { try app.read(operation) }?.code == .operation)
        }
        #expect(desk.requests.isEmpty)
    }

    @Test("A fetch and a read refuse a limit below 0 also where the policy says no largest page")
    func refusesNegativeWithoutLargest() async throws {
        let desk = OrderDesk([:])
        var operation = ordersAt
        operation.variables = ["limit": .int(-1)]
        try await withStoreFixture(desk.transport, schema: orderSchema) { [operation] (app) async throws in
            #expect(await larderError { try await app.fetch(operation) }?.code == .variables)
            #expect(await larderError { try app.read(operation) }?.code == .variables)
        }
        #expect(desk.requests.isEmpty)
    }

    @Test("A page has its elements in its only list of objects, whatever the name of that list")
    func onlyList() async throws {
        let schema = """
            type Query @fieldPolicy(forField: "list", paginationArgs: "limit nextToken") {
              list(limit: Int, nextToken: String): List
            }
            type List { rows: [Order] names: [String] nextToken: String }
            type Order { id: ID! sku: String }
            """
        func page(_ ids: ClosedRange<Int>, next: String) -> String {
            #""list":{"__typename":"List","rows":[\#(OrderDesk.objects(ids))],"names":["a"],"nextToken":\#(next)}"#
        }
        let pages = ["": page(1...2, next: #""a""#), "a": page(3...3, next: "null")]
        let operation = GraphQLOperation(
            "query L($limit: Int, $nextToken: String) { list(limit: $limit, nextToken: $nextToken) "
                + "{ rows { sku } names nextToken } }")
        try await withPages(pages, operation, schema: schema) { (pages, _, _) async throws in
            #expect(try await pages.all() == PagesStatus(pageCount: 2, objectCount: 3, isComplete: true))
            #expect(try await pages.skus() == skus(1...3))
        }
    }

    @Test("Elements that are null count for the next offset, and a page that is full with them is not the last")
    func countsNulls() async throws {
        let pages = [
            "": #""ordersAt":[\#(OrderDesk.object(1)),null,\#(OrderDesk.object(2))]"#,
            "3": #""ordersAt":[\#(OrderDesk.objects(3...3))]"#,
        ]
        try await withPages(pages, ordersAt, ["limit": 3], asking: ["/3", "3/3"]) { (pages, _, _) async throws in
            #expect(try await pages.all() == PagesStatus(pageCount: 2, objectCount: 3, isComplete: true))
            #expect(try await pages.skus() == skus(1...3))
        }
    }

    @Test("A fetch and a read take a limit of 0")
    func takesNone() async throws {
        let desk = OrderDesk(["": OrderDesk.tokenPage([], next: nil)])
        var operation = orderList
        operation.variables = ["limit": 0]
        try await withStoreFixture(desk.transport, schema: orderSchema) { [operation] (app) async throws in
            #expect(try await app.fetch(operation)["listOrders"]?["items"]?.count == 0)
            #expect(try app.read(operation)["listOrders"]?["items"]?.count == 0)
        }
        #expect(desk.requests == ["/0"])
    }

    @Test("A list that starts over is loaded until there are as many objects as are asked for, and no further")
    func startsOverUpTo() async throws {
        let pages = [
            "": OrderDesk.tokenPage(1...2, next: "a"), "a": OrderDesk.tokenPage(3...4, next: "b"),
            "b": OrderDesk.tokenPage(5...6, next: nil),
        ]
        try await withPages(pages) { (pages, desk, _) async throws in
            #expect(try await pages.all().pageCount == 3)
            let status = try await pages.all(upTo: 3, startingOver: true)
            #expect(status.pageCount == 2 && status.objectCount == 4)
            #expect(desk.requests.count == 5)
        }
    }

    @Test("A list is loaded under the names that the operation gives to its field, its objects and its token")
    func ownNames() async throws {
        func page(_ ids: ClosedRange<Int>, next: String) -> String {
            #""mine":{"__typename":"OrderList","rows":[\#(OrderDesk.objects(ids))],"more":\#(next)}"#
        }
        let pages = ["": page(1...2, next: #""a""#), "a": page(3...3, next: "null")]
        let operation = GraphQLOperation(
            "query L($limit: Int, $nextToken: String) { mine: listOrders(limit: $limit, nextToken: $nextToken) "
                + "{ rows: items { sku } more: nextToken } }")
        try await withPages(pages, operation) { (pages, _, _) async throws in
            #expect(try await pages.all() == PagesStatus(pageCount: 2, objectCount: 3, isComplete: true))
            #expect(try await pages.skus() == skus(1...3))
        }
    }

    @Test("A connection is loaded under the name that the operation gives to the nodes of its edges")
    func ownNameOfNode() async throws {
        let page = OrderDesk.connectionPage(1...2).replacing(#""node":"#, with: #""order":"#)
        let operation = GraphQLOperation(
            "query C($first: Int, $after: String) { orders(first: $first, after: $after) "
                + "{ edges { order: node { sku } } pageInfo { hasNextPage endCursor } } }")
        try await withPages(["": page], operation) { (pages, _, _) async throws in
            #expect(try await pages.all() == PagesStatus(pageCount: 1, objectCount: 2, isComplete: true))
            #expect(try await pages.skus() == skus(1...2))
        }
    }

    @Test(
        "A list whose elements, or their nodes, are asked for with arguments is not changed as one list",
        arguments: [
            "query L($nextToken: String) { list(nextToken: $nextToken) { items(order: 1) { sku } nextToken } }",
            "query S($after: String) { search(after: $after) { edges { node(order: 1) { sku } } "
                + "pageInfo { hasNextPage endCursor } } }",
        ])
    func elementsWithArguments(document: String) async throws {
        let schema = """
            type Query @fieldPolicy(forField: "list", paginationArgs: "nextToken")
              @fieldPolicy(forField: "search", paginationArgs: "after") {
              list(nextToken: String): List
              search(after: String): Search
            }
            type List { items(order: Int): [Order] nextToken: String }
            type Search { edges: [Edge] pageInfo: Info }
            type Edge { node(order: Int): Order }
            type Info { hasNextPage: Boolean endCursor: String }
            type Order { id: ID! sku: String }
            """
        try await withStoreFixture(schema: schema) { app in
            let pages = try app.pages(GraphQLOperation(document))
            #expect(await larderError { try pages.inserting("Order:1") }?.code == .operation)
            #expect(await larderError { try pages.removing("Order:1") }?.code == .operation)
        }
    }

    @Test("A call that wants no more objects than are loaded asks the server for nothing")
    func enough() async throws {
        let pages = ["": OrderDesk.tokenPage(1...2, next: "a"), "a": OrderDesk.tokenPage(3...4, next: "b")]
        try await withPages(pages, asking: ["/1000"]) { (pages, _, _) async throws in
            #expect(try await pages.atLeast(0) == PagesStatus())
            #expect(try await pages.all(upTo: 0) == PagesStatus())
            for _ in 0..<2 { #expect(try await pages.atLeast(2).objectCount == 2) }
            #expect(try await pages.all(upTo: 1).objectCount == 2)
        }
    }

    @Test("A limit that is null is none: the pages are as large as the policy allows")
    func nullLimit() async throws {
        let pages = ["": OrderDesk.tokenPage(1...2, next: "a"), "a": OrderDesk.tokenPage(3...3, next: nil)]
        try await withPages(pages, orderList, ["limit": .null], asking: ["/1000", "a/1000"]) {
            (pages, _, _) async throws in
            #expect(try await pages.all().objectCount == 3)
        }
    }
}
