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
        let desk = OrderDesk(["": page(1...2, next: #""a""#), "a": page(3...3, next: "null")])
        let operation = GraphQLOperation(
            "query L($limit: Int, $nextToken: String) { list(limit: $limit, nextToken: $nextToken) "
                + "{ rows { sku } names nextToken } }")
        try await withStoreFixture(desk.transport, schema: schema) { app in
            let pages = try app.pages(operation)
            #expect(try await pages.all() == PagesStatus(pageCount: 2, objectCount: 3, isComplete: true))
            #expect(try await pages.skus() == skus(1...3))
        }
    }

    @Test("Elements that are null count for the next offset, and a page that is full with them is not the last")
    func countsNulls() async throws {
        let desk = OrderDesk([
            "": #""ordersAt":[\#(OrderDesk.object(1)),null,\#(OrderDesk.object(2))]"#,
            "3": #""ordersAt":[\#(OrderDesk.objects(3...3))]"#,
        ])
        var operation = ordersAt
        operation.variables = ["limit": 3]
        try await withStoreFixture(desk.transport, schema: orderSchema) { [operation] (app) async throws in
            let pages = try app.pages(operation)
            #expect(try await pages.all() == PagesStatus(pageCount: 2, objectCount: 3, isComplete: true))
            #expect(try await pages.skus() == skus(1...3))
        }
        #expect(desk.requests == ["/3", "3/3"])
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
}
