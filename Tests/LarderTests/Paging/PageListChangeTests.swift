import Larder
import LarderTestSupport
import Testing

/// What queued mutations do to lists of several pages.
@Suite("Changes of whole lists", .timeLimit(.minutes(10)))
struct PageListChangeTests {
    private static let three = [
        "": OrderDesk.tokenPage([1, 3], next: "a"), "a": OrderDesk.tokenPage([5, 7], next: "b"),
        "b": OrderDesk.tokenPage([8, 9], next: nil),
    ]
    private static let nodes = GraphQLOperation(
        "query N($first: Int, $after: String, $last: Int, $before: String) { orders(first: $first, after: $after, "
            + "last: $last, before: $before) { nodes { sku } "
            + "pageInfo { hasNextPage hasPreviousPage startCursor endCursor } } }")

    /// Queues a mutation that makes an order, or has to do with one, and changes a list.
    private func queue(_ app: Partition, _ id: Int, _ change: ListChange) async throws {
        let response: Value = ["rename": ["__typename": "Order", "id": .string("\(id)"), "sku": .string("s\(id)")]]
        try await app.enqueue(
            GraphQLOperation("mutation R($id: ID!) { rename(id: $id) { sku } }", variables: ["id": .int(Int64(id))]),
            options: MutationOptions(optimisticResponse: response, listChanges: [change]))
    }

    private func answer(_ app: Partition, _ desk: OrderDesk, _ id: Int) async throws {
        desk.set(#""rename":\#(OrderDesk.object(id))"#, at: "\(id)")
        try await MutationRunner(app).drain()
    }

    @Test(
        "An object is shown on the page on which its place is, and stays there when the server has answered",
        arguments: [
            (2, [1, 2, 3, 5, 7, 8, 9]), (4, [1, 3, 4, 5, 7, 8, 9]), (6, [1, 3, 5, 6, 7, 8, 9]),
            (0, [0, 1, 3, 5, 7, 8, 9]),
        ])
    func ascending(id: Int, expected: [Int]) async throws {
        try await withPages(Self.three) { (pages, desk, app) async throws in
            try await pages.all()
            try await queue(app, id, pages.inserting("Order:\(id)", at: .ascending(field: "sku")))
            #expect(try await pages.skus() == skus(expected))
            try await answer(app, desk, id)
            #expect(try app.mutations(in: [.pending]).isEmpty)
            #expect(try await pages.skus() == skus(expected))
            #expect(try await app.pages(orderList).status().objectCount == 7)
            #expect(try app.records.check().problems == [])
        }
    }

    @Test("The pages of a list whose size is a default of the operation are changed as one list")
    func defaultSize() async throws {
        let operation = GraphQLOperation(
            "query L($limit: Int = 2, $nextToken: String) { listOrders(limit: $limit, nextToken: $nextToken) "
                + "{ items { sku } nextToken } }")
        try await withPages(Self.three, operation) { (pages, _, app) async throws in
            try await pages.all()
            try await queue(app, 4, pages.inserting("Order:4", at: .ascending(field: "sku")))
            #expect(try await pages.skus() == skus([1, 3, 4, 5, 7, 8, 9]))
        }
    }

    @Test("An object goes before the first page, and after the last of a list that is whole")
    func ends() async throws {
        try await withPages(Self.three) { (pages, _, app) async throws in
            try await pages.all()
            try await queue(app, 20, pages.inserting("Order:20", at: .start))
            try await queue(app, 21, pages.inserting("Order:21"))
            try await queue(app, 22, pages.inserting("Order:22", at: .descending(field: "nothing")))
            #expect(try await pages.skus() == skus([20, 1, 3, 5, 7, 8, 9, 21, 22]))
        }
    }

    @Test("A list whose last page says by an empty token that none follows is whole, and an object goes to its end")
    func emptyToken() async throws {
        try await withPages(["": OrderDesk.tokenPage([1, 3], next: "")]) { (pages, _, app) async throws in
            #expect(try await pages.all().isComplete)
            try await queue(app, 20, pages.inserting("Order:20"))
            #expect(try await pages.skus() == skus([1, 3, 20]))
        }
    }

    @Test("An object whose place is beyond what is loaded comes with its page")
    func beyond() async throws {
        try await withPages(Self.three) { (pages, _, app) async throws in
            try await pages.all(upTo: 4)
            try await queue(app, 20, pages.inserting("Order:20"))
            try await queue(app, 6, pages.inserting("Order:9", at: .ascending(field: "sku")))
            #expect(try await pages.skus() == skus([1, 3, 5, 7]))
        }
    }

    @Test("An object goes from the page that has it, and is not put into a list twice")
    func removes() async throws {
        try await withPages(Self.three) { (pages, desk, app) async throws in
            try await pages.all()
            try await queue(app, 8, pages.removing("Order:8"))
            try await queue(app, 5, pages.inserting("Order:5", at: .start))
            #expect(try await pages.skus() == skus([1, 3, 5, 7, 9]))
            try await answer(app, desk, 8)
            #expect(try await pages.skus() == skus([1, 3, 5, 7, 9]))
        }
    }

    @Test("A change of a mutation that the server refuses is gone without a trace")
    func refused() async throws {
        try await withPages(Self.three) { (pages, desk, app) async throws in
            try await pages.all()
            try await queue(app, 4, pages.inserting("Order:4", at: .ascending(field: "sku")))
            try await MutationRunner(app).drain()
            #expect(try await pages.skus() == skus([1, 3, 5, 7, 8, 9]))
        }
    }

    @Test("A change is there after a restart, and pages that come meanwhile are changed")
    func restarts() async throws {
        let desk = OrderDesk(Self.three)
        try await withTemporaryFolder { folder in
            let schema = try Schema(parsing: orderSchema)
            var store = try Store.open(at: folder, schema: schema)
            var app = try store.partition(server: desk.transport)
            var pages = try app.pages(orderList)
            try await pages.all(upTo: 2)
            try await queue(app, 6, pages.inserting("Order:6", at: .ascending(field: "sku")))
            try await queue(app, 9, pages.removing("Order:9"))
            try store.close()
            store = try Store.open(at: folder, schema: schema)
            app = try store.partition(server: desk.transport)
            pages = try app.pages(orderList)
            #expect(try await pages.skus() == skus([1, 3]))
            try await pages.all()
            #expect(try await pages.skus() == skus([1, 3, 5, 6, 7, 8]))
            try store.close()
        }
    }

    @Test("A watcher of the list sees the change at its place")
    func watches() async throws {
        try await withPages(Self.three) { (pages, _, app) async throws in
            try await pages.all()
            var states = try pages.watch().makeAsyncIterator()
            _ = await states.next()
            try await queue(app, 6, pages.inserting("Order:6", at: .ascending(field: "sku")))
            while let state = await states.next() {
                guard state.isOptimistic else { continue }
                #expect(state.objects.compactMap { $0["sku"]?.string } == skus([1, 3, 5, 6, 7, 8, 9]))
                break
            }
        }
    }

    @Test("Pages of a connection that were loaded backward belong to the list, in its order")
    func backward() async throws {
        func page(_ ids: [Int], previous: String?) -> String {
            #""orders":{"__typename":"OrderConnection","nodes":[\#(OrderDesk.objects(ids))],"pageInfo":"#
                + #"{"__typename":"PageInfo","hasNextPage":false,"hasPreviousPage":\#(previous != nil),"#
                + #""startCursor":\#(previous.map { "\"\($0)\"" } ?? "null"),"endCursor":null}}"#
        }
        let loaded = [
            "": page([7, 9], previous: "x"), "x": page([3, 5], previous: "y"), "y": page([1], previous: nil),
        ]
        try await withPages(loaded, Self.nodes, ["last": 2]) { (pages, _, app) async throws in
            _ = try await pages.previous()
            _ = try await pages.previous()
            // What belongs before the first page is not shown until that is loaded.
            try await queue(app, 0, pages.inserting("Order:0", at: .ascending(field: "sku")))
            try await queue(app, 4, pages.inserting("Order:4", at: .ascending(field: "sku")))
            #expect(try await pages.skus() == skus([3, 4, 5, 7, 9]))
            _ = try await pages.previous()
            #expect(try await pages.skus() == skus([0, 1, 3, 4, 5, 7, 9]))
        }
    }

    @Test("An object inserted at the start of a list appears once the first page is loaded")
    func frontBeyond() async throws {
        let loaded = [
            "": OrderDesk.connectionPage([7, 9], previous: "x"), "x": OrderDesk.connectionPage([3, 5]),
        ]
        try await withPages(loaded, orderConnection, ["last": 2]) { (pages, _, app) async throws in
            _ = try await pages.previous()
            try await queue(app, 1, pages.inserting("Order:1", at: .start))
            #expect(try await pages.skus() == skus([7, 9]))
            _ = try await pages.previous()
            #expect(try await pages.skus() == skus([1, 3, 5, 7, 9]))
        }
    }

    @Test("An object inserted in descending order is shown on the page that has its place")
    func descending() async throws {
        let loaded = [
            "": OrderDesk.tokenPage([9, 8], next: "a"), "a": OrderDesk.tokenPage([7, 5], next: "b"),
            "b": OrderDesk.tokenPage([3], next: nil),
        ]
        try await withPages(loaded) { (pages, _, app) async throws in
            try await pages.all()
            for id in [6, 2] { try await queue(app, id, pages.inserting("Order:\(id)", at: .descending(field: "sku"))) }
            #expect(try await pages.skus() == skus([9, 8, 7, 6, 5, 3, 2]))
            #expect(try pages.page(1)?.skus == skus([7, 6, 5]))
        }
    }

    @Test("A connection with a single page takes in objects at both ends, though that page has cursors")
    func cursorsAtEnds() async throws {
        let page = OrderDesk.connectionPage([1, 3]).replacing(#"Cursor":null"#, with: #"Cursor":"c""#)
        try await withPages(["": page], orderConnection) { (pages, _, app) async throws in
            try await pages.all()
            try await queue(app, 20, pages.inserting("Order:20"))
            try await queue(app, 0, pages.inserting("Order:0", at: .start))
            #expect(try await pages.skus() == skus([0, 1, 3, 20]))
        }
    }

    private static let edges = GraphQLOperation(
        "query E($first: Int, $after: String) { orders(first: $first, after: $after) { edges { node { sku } } "
            + "pageInfo { hasNextPage endCursor } } }")
    private static let numbered = GraphQLOperation(
        "query N($page: Int, $size: Int) { ordersOn(page: $page, size: $size) { sku } }", variables: ["size": 2])
    private static let below = GraphQLOperation(
        "query B($limit: Int, $nextToken: String) { shop { orders(limit: $limit, nextToken: $nextToken) "
            + "{ items { sku } nextToken } } }")

    /// Three pages of two, by their kinds.
    private static func kind(_ name: String) -> (pages: [String: String], operation: GraphQLOperation) {
        func list(_ field: String, _ ids: [Int]) -> String { "\"\(field)\":[\(OrderDesk.objects(ids))]" }
        switch name {
        case "edges":
            return (
                [
                    "": OrderDesk.connectionPage([1, 3], next: "a"), "a": OrderDesk.connectionPage([5, 7], next: "b"),
                    "b": OrderDesk.connectionPage([8]),
                ], edges
            )
        case "offset":
            var operation = ordersAt
            operation.variables = ["limit": 2]
            return (
                [
                    "": list("ordersAt", [1, 3]), "2": list("ordersAt", [5, 7]), "4": list("ordersAt", [8]),
                    "6": list("ordersAt", []),
                ], operation
            )
        case "number":
            return (
                [
                    "": list("ordersOn", [1, 3]), "2": list("ordersOn", [5, 7]), "3": list("ordersOn", [8]),
                    "4": list("ordersOn", []),
                ], numbered
            )
        default:
            func page(_ ids: [Int], next: String?) -> String {
                let page = OrderDesk.tokenPage(ids, next: next).dropFirst(#""listOrders":"#.count)
                return #""shop":{"__typename":"Shop","name":"S","orders":\#(page)}"#
            }
            return (["": page([1, 3], next: "a"), "a": page([5, 7], next: "b"), "b": page([8], next: nil)], below)
        }
    }

    @Test(
        "Lists of every kind take in what mutations put into them and take out, before the server answers and afterwards",
        arguments: ["edges", "offset", "number", "below"])
    func everyKind(_ name: String) async throws {
        let (loaded, operation) = Self.kind(name)
        try await withPages(loaded, operation) { (pages, desk, app) async throws in
            try await pages.all(upTo: 4)
            // Beyond what is loaded: it comes with its page.
            try await queue(app, 9, pages.inserting("Order:9"))
            try await queue(app, 4, pages.inserting("Order:4", at: .ascending(field: "sku")))
            try await queue(app, 3, pages.removing("Order:3"))
            try await queue(app, 0, pages.inserting("Order:0", at: .start))
            #expect(try await pages.skus() == skus([0, 1, 4, 5, 7]))
            #expect(try await !app.pages(operation).status().isComplete)
            try await pages.all()
            #expect(try await pages.skus() == skus([0, 1, 4, 5, 7, 8, 9]))
            for id in [9, 4, 3, 0] { desk.set(#""rename":\#(OrderDesk.object(id))"#, at: "\(id)") }
            try await MutationRunner(app).drain()
            #expect(try await app.pages(operation).skus() == skus([0, 1, 4, 5, 7, 8, 9]))
            #expect(try app.mutations(in: [.pending]).isEmpty)
            let status = try await app.pages(operation).status()
            #expect(status.objectCount == 7)
            #expect(status.isComplete)
            #expect(try app.records.check().problems == [])
            _ = try await app.collectGarbage()
            #expect(try await app.pages(operation).skus() == skus([0, 1, 4, 5, 7, 8, 9]))
            #expect(try app.records.check().problems == [])
        }
    }

    @Test("A change of a list below an object is seen by who reads that object as well")
    func belowAnObject() async throws {
        func page(_ ids: [Int]) -> String {
            let page = OrderDesk.tokenPage(ids, next: nil).dropFirst(#""listOrders":"#.count)
            return #""depot":{"__typename":"Depot","id":"d","orders":\#(page)}"#
        }
        let list = GraphQLOperation(
            "query D($limit: Int, $nextToken: String) { depot(id: \"d\") { orders(limit: $limit, nextToken: $nextToken) "
                + "{ items { sku } nextToken } } }")
        try await withPages(["": page([1, 3])], list) { (pages, _, app) async throws in
            try await pages.all()
            try await queue(app, 2, pages.inserting("Order:2", at: .ascending(field: "sku")))
            let fragment = GraphQLFragment(
                "fragment D on Depot { orders(limit: 1000) { items { sku } } }")
            let items = try app.read("Depot:d", fragment)["orders"]?["items"]?.elements ?? []
            #expect(items.compactMap { $0["sku"]?.string } == skus(1...3))
            #expect(try await pages.skus() == skus(1...3))
            #expect(try await app.pages(list).skus() == skus(1...3))
        }
    }

    @Test("What a mutation does to a list by offset is gone when the server refuses it")
    func refusedByOffset() async throws {
        let (loaded, operation) = Self.kind("offset")
        try await withPages(loaded, operation) { (pages, desk, app) async throws in
            try await pages.all()
            try await queue(app, 3, pages.removing("Order:3"))
            try await queue(app, 4, pages.inserting("Order:4", at: .ascending(field: "sku")))
            #expect(try await pages.skus() == skus([1, 4, 5, 7, 8]))
            try await MutationRunner(app).drain()
            #expect(try await pages.skus() == skus([1, 3, 5, 7, 8]))
        }
    }

    @Test(
        "An object that goes from a full page of a list by offset or number leaves its place",
        arguments: ["offset", "number"])
    func leavesPlace(kind: String) async throws {
        let (loaded, operation) = Self.kind(kind)
        try await withPages(loaded, operation) { (pages, desk, app) async throws in
            try await pages.all()
            try await queue(app, 3, pages.removing("Order:3"))
            #expect(try await pages.skus() == skus([1, 5, 7, 8]))
            try await answer(app, desk, 3)
            #expect(try await pages.skus() == skus([1, 5, 7, 8]))
            #expect(try await app.pages(operation).skus() == skus([1, 5, 7, 8]))
        }
    }

    @Test("An object that is on two pages of a list by offset goes from both")
    func removesFromBoth() async throws {
        let pages = [
            "": #""ordersAt":[\#(OrderDesk.objects([1, 2]))]"#, "2": #""ordersAt":[\#(OrderDesk.objects([2]))]"#,
        ]
        var operation = ordersAt
        operation.variables = ["limit": 2]
        try await withPages(pages, operation) { [operation] (pages, desk, app) async throws in
            try await pages.all()
            try await queue(app, 2, pages.removing("Order:2"))
            #expect(try await app.pages(operation).skus() == skus([1]))
            try await answer(app, desk, 2)
            #expect(try await app.pages(operation).skus() == skus([1]))
        }
    }

    @Test("A list by number whose pages have no size takes in what mutations insert, and lets go of what they remove")
    func numberedWithoutSize() async throws {
        let loaded = [
            "": #""ordersOn":[\#(OrderDesk.objects([1, 3]))]"#, "2": #""ordersOn":[\#(OrderDesk.objects([5, 7]))]"#,
            "3": #""ordersOn":[]"#,
        ]
        let operation = GraphQLOperation("query N($page: Int) { ordersOn(page: $page) { sku } }")
        try await withPages(loaded, operation) { (pages, _, app) async throws in
            try await pages.all()
            try await queue(app, 4, pages.inserting("Order:4", at: .ascending(field: "sku")))
            try await queue(app, 3, pages.removing("Order:3"))
            #expect(try await pages.skus() == skus([1, 4, 5, 7]))
        }
    }

    @Test("A new edge that says more than its object is the server's alone, and one that it has can go")
    func edgesWithCursors() async throws {
        let operation = GraphQLOperation(
            "query E($first: Int, $after: String) { orders(first: $first, after: $after) "
                + "{ edges { cursor node { sku } } pageInfo { hasNextPage endCursor } } }")
        let page =
            #""orders":{"__typename":"OrderConnection","edges":[{"__typename":"OrderEdge","cursor":"c","node":"#
            + OrderDesk.object(1) + #"}],"pageInfo":{"__typename":"PageInfo","hasNextPage":false,"endCursor":null}}"#
        try await withPages(["": page], operation) { (pages, _, app) async throws in
            try await pages.all()
            #expect(await larderError { try pages.inserting("Order:2") }?.code == .operation)
            try await queue(app, 1, pages.removing("Order:1"))
            #expect(try await pages.skus() == [])
        }
    }

    @Test("Lists of which the cache cannot say what an object does to their pages are not changed as one list")
    func refuses() async throws {
        try await withStoreFixture(schema: orderSchema) { app in
            // Without a limit the server decides how many elements a page has.
            #expect(await larderError { try app.pages(ordersAt).inserting("Order:1") }?.code == .operation)
            let merger = PageMerger(elements: ["ordersAt"]) { _, _ in nil }
            let merged = try app.pages(ordersAt, merger: merger)
            #expect(await larderError { try merged.removing("Order:1") }?.code == .operation)
        }
    }

    @Test("A list whose tokens are numbers is loaded to its end, and takes in objects on its later pages as well")
    func numberTokens() async throws {
        let schema = """
            type Query @fieldPolicy(forField: "listOrders", paginationArgs: "limit nextToken") {
              listOrders(limit: Int, nextToken: Int): OrderList
            }
            type Mutation { rename(id: ID!): Order }
            type OrderList { items: [Order] nextToken: Int }
            type Order { id: ID! sku: String }
            """
        func page(_ ids: [Int], next: String) -> String {
            #""listOrders":{"__typename":"OrderList","items":[\#(OrderDesk.objects(ids))],"nextToken":\#(next)}"#
        }
        let pages = ["": page([1, 3], next: "20"), "20": page([5, 7], next: "null")]
        let operation = GraphQLOperation(
            "query L($limit: Int, $nextToken: Int) { listOrders(limit: $limit, nextToken: $nextToken) "
                + "{ items { sku } nextToken } }")
        try await withPages(pages, operation, schema: schema) { (pages, _, app) async throws in
            #expect(try await pages.all() == PagesStatus(pageCount: 2, objectCount: 4, isComplete: true))
            try await queue(app, 6, pages.inserting("Order:6", at: .ascending(field: "sku")))
            #expect(try await pages.skus() == skus([1, 3, 5, 6, 7]))
        }
    }

    @Test("The pages of a list have an age also where a mutation has put a new edge into one of them")
    func ageOfNewEdge() async throws {
        let (loaded, operation) = Self.kind("edges")
        func sized(_ variables: [String: Value]) -> GraphQLOperation {
            GraphQLOperation(operation.document, variables: variables)
        }
        try await withPages(loaded, sized(["first": 2])) { (pages, desk, app) async throws in
            try await pages.all()
            try await queue(app, 4, pages.inserting("Order:4", at: .ascending(field: "sku")))
            try await answer(app, desk, 4)
            #expect(try await pages.skus() == skus([1, 3, 4, 5, 7, 8]))
            for page in [sized(["first": 2]), sized(["first": 2, "after": "a"])] {
                let read = try app.read(page)
                #expect(read.age != nil)
            }
        }
    }

    @Test("A list by offset without a limit lets no mutation take an object out")
    func refusesRemoving() async throws {
        try await withStoreFixture(schema: orderSchema) { app in
            #expect(await larderError { try app.pages(ordersAt).removing("Order:1") }?.code == .operation)
        }
    }

    @Test("The next page comes after the last one that was loaded, though an object of an earlier page has gone since")
    func nextAfterEviction() async throws {
        let pages = [
            "": OrderDesk.tokenPage(1...2, next: "a"), "a": OrderDesk.tokenPage(3...4, next: "b"),
            "b": OrderDesk.tokenPage(5...6, next: nil),
        ]
        try await withPages(pages) { (pages, desk, app) async throws in
            for _ in 0..<2 { _ = try await pages.next() }
            try await app.remove("Order:1", as: .evicted)
            #expect(try await pages.next()?.skus == skus(5...6))
            #expect(desk.requests.count == 3)
        }
    }

    @Test(
        "An object goes from a page that was loaded before the first of a list by offset or number",
        arguments: ["offset", "number"])
    func removesBeforeFirst(kind: String) async throws {
        let name = kind == "offset" ? "ordersAt" : "ordersOn"
        func list(_ ids: [Int]) -> String { "\"\(name)\":[\(OrderDesk.objects(ids))]" }
        let loaded = ["2": list([5, 7]), (kind == "offset" ? "0" : "1"): list([1, 3])]
        let start: [String: Value] = kind == "offset" ? ["offset": 2, "limit": 2] : ["page": 2, "size": 2]
        let operation = GraphQLOperation(Self.kind(kind).operation.document, variables: start)
        try await withPages(loaded, operation) { (pages, _, app) async throws in
            for _ in 0..<2 { #expect(try await pages.previous() != nil) }
            try await queue(app, 3, pages.removing("Order:3"))
            #expect(try await pages.skus() == skus([1, 5, 7]))
        }
    }
}
