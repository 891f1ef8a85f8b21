import Larder
import LarderTestSupport
import Testing

@Suite("Kinds of pages", .timeLimit(.minutes(10)))
struct PageKindTests {
    private func refusal(_ operation: GraphQLOperation, schema: String = orderSchema) async throws -> LarderError? {
        var error: LarderError?
        try await withStoreFixture(schema: schema) { app in error = await larderError { try app.pages(operation) } }
        return error
    }

    @Test("A connection goes forward by the cursor of its end")
    func goesForward() async throws {
        let pages = [
            "": OrderDesk.connectionPage(1...2, next: "x"), "x": OrderDesk.connectionPage(3...4),
        ]
        try await withPages(pages, orderConnection, ["first": 2]) { (pages, desk, _) async throws in
            #expect(try await pages.all().isComplete)
            #expect(try await pages.skus() == skus(1...4))
            #expect(desk.requests == ["/2", "x/2"])
        }
    }

    @Test("A connection goes backward from where it began, and keeps the order of the list")
    func goesBackward() async throws {
        try await withPages(OrderDesk.backward, orderConnection, ["last": 2]) { (pages, desk, _) async throws in
            #expect(try await pages.previous()?.skus == skus(5...6))
            #expect(try await pages.previous()?.skus == skus(3...4))
            #expect(try await pages.previous()?.skus == skus(1...2))
            #expect(try await pages.previous() == nil)
            #expect(try await pages.skus() == skus(1...6))
            #expect(desk.requests == ["/2", "x/2", "y/2"])
        }
    }

    @Test("A connection that is asked for so many of the last is whole at its first page")
    func loadsAllBackward() async throws {
        let backward = GraphQLOperation(
            "query B($last: Int, $before: String) { orders(last: $last, before: $before) { edges { node { sku } } "
                + "pageInfo { hasPreviousPage startCursor } } }")
        for operation in [orderConnection, backward] {
            try await withPages(OrderDesk.backward, operation, ["last": 2]) { (pages, desk, _) async throws in
                #expect(try await pages.atLeast(3) == PagesStatus(pageCount: 2, objectCount: 4))
                #expect(try await pages.all() == PagesStatus(pageCount: 3, objectCount: 6, isComplete: true))
                #expect(try await pages.skus() == skus(1...6))
                #expect(try await pages.all(startingOver: true).isComplete)
                #expect(desk.requests == ["/2", "x/2", "y/2", "/2", "x/2", "y/2"])
            }
        }
    }

    @Test("Lists of other things beside the elements are none of the pages' objects")
    func otherLists() async throws {
        let schema = """
            type Query @fieldPolicy(forField: "list", paginationArgs: "limit nextToken")
              @fieldPolicy(forField: "search", paginationArgs: "first after") {
              list(limit: Int, nextToken: String): List
              search(first: Int, after: String): Search
            }
            type Thing { id: ID! }
            type Count { name: String }
            type List { counts: [Count] items: [Thing] rows: [Thing] nextToken: String }
            type Search { facets: [Count] edges: [Edge] pageInfo: Info }
            type Edge { node: Thing }
            type Info { hasNextPage: Boolean endCursor: String }
            """
        let answers = [
            "list": #"{"data":{"list":{"__typename":"List","counts":[{"__typename":"Count","name":"a"}],"#
                + #""items":[{"__typename":"Thing","id":"1"},{"__typename":"Thing","id":"2"}],"nextToken":null}}}"#,
            "search": #"{"data":{"search":{"__typename":"Search","facets":[{"__typename":"Count","name":"a"}],"#
                + #""edges":[{"__typename":"Edge","node":{"__typename":"Thing","id":"3"}}],"#
                + #""pageInfo":{"__typename":"Info","hasNextPage":false,"endCursor":null}}}}"#,
        ]
        let server = ScriptedServer { request in answers[request.operationName ?? ""] ?? "" }
        try await withStoreFixture(server, schema: schema) { app in
            let list = try app.pages(
                GraphQLOperation(
                    "query list($nextToken: String) "
                        + "{ list(nextToken: $nextToken) { counts { name } items { id } nextToken } }"))
            #expect(try await list.all().objectCount == 2)
            let search = try app.pages(
                GraphQLOperation(
                    "query search($first: Int, $after: String) { search(first: $first, after: $after) "
                        + "{ facets { name } edges { node { id } } pageInfo { hasNextPage endCursor } } }"))
            #expect(try await search.all().objectCount == 1)
            let two = GraphQLOperation(
                "query two($nextToken: String) "
                    + "{ list(nextToken: $nextToken) { counts { name } rows { id } nextToken } }")
            #expect(await larderError { try app.pages(two) }?.code == .operation)
        }
    }

    @Test("The objects of a connection's pages are its nodes, where its edges are asked for something else")
    func nodesBesideEdges() async throws {
        let page =
            #""orders":{"__typename":"OrderConnection","nodes":[\#(OrderDesk.objects(1...2))],"#
            + #""edges":[{"__typename":"OrderEdge","cursor":"a"},{"__typename":"OrderEdge","cursor":"b"}],"#
            + #""pageInfo":{"__typename":"PageInfo","hasNextPage":false,"endCursor":null}}"#
        let operation = GraphQLOperation(
            "query C($first: Int, $after: String) { orders(first: $first, after: $after) "
                + "{ edges { cursor } nodes { sku } pageInfo { hasNextPage endCursor } } }")
        try await withPages(["": page], operation) { (pages, _, _) async throws in
            #expect(try await pages.all().objectCount == 2)
            #expect(try await pages.skus() == skus(1...2))
        }
    }

    @Test("A page before the first is asked for by the arguments that go backward, and by no other")
    func goesBackwardAlone() async throws {
        let server = OrderDesk([
            "": OrderDesk.connectionPage(3...4, previous: "x"), "x": OrderDesk.connectionPage(1...2),
        ]).transport
        var operation = orderConnection
        operation.variables = ["first": 2]
        try await withStoreFixture(server, schema: orderSchema) { [operation] (app) async throws in
            let pages = try app.pages(operation)
            _ = try await pages.next()
            #expect(try await pages.previous()?.skus == skus(1...2))
        }
        #expect(server.requests.map { Set($0.values.keys) } == [["first"], ["last", "before"]])
    }

    @Test("A connection whose page has no pageInfo, or no cursor for the next one, is an error")
    func needsPageInfo() async throws {
        let pages = [
            #""orders":{"__typename":"OrderConnection","edges":[],"pageInfo":null}"#,
            #""orders":{"__typename":"OrderConnection","edges":[],"pageInfo":{"__typename":"PageInfo","#
                + #""hasNextPage":true,"hasPreviousPage":false,"startCursor":null,"endCursor":null}}"#,
            OrderDesk.connectionPage(1...2, next: ""),
        ]
        for page in pages {
            try await withPages(["": page], orderConnection) { (pages, _, _) async throws in
                #expect(await larderError { try await pages.next() }?.code == .paging)
            }
        }
    }

    @Test("Offsets count what came, and end at a page that is not full")
    func goesByOffset() async throws {
        let pages = [
            "": #""ordersAt":[\#(OrderDesk.objects(1...3))]"#, "3": #""ordersAt":[\#(OrderDesk.objects(4...6))]"#,
            "6": #""ordersAt":[\#(OrderDesk.objects(7...7))]"#,
        ]
        try await withPages(pages, ordersAt, ["limit": 3]) { (pages, desk, _) async throws in
            #expect(try await pages.all() == PagesStatus(pageCount: 3, objectCount: 7, isComplete: true))
            #expect(desk.requests == ["/3", "3/3", "6/3"])
        }
    }

    @Test("A list that shrinks while it is read ends, and shows no object twice")
    func shrinks() async throws {
        let pages = [
            "": #""ordersAt":[\#(OrderDesk.objects(1...3))]"#, "3": #""ordersAt":[\#(OrderDesk.objects([3, 4, 5]))]"#,
            "6": #""ordersAt":[]"#,
        ]
        try await withPages(pages, ordersAt, ["limit": 3]) { (pages, _, _) async throws in
            #expect(try await pages.all() == PagesStatus(pageCount: 3, objectCount: 5, isComplete: true))
        }
    }

    @Test("A server that does not look at the offset is an error")
    func seesSamePage() async throws {
        let page = #""ordersAt":[\#(OrderDesk.objects(1...3))]"#
        try await withPages(["": page, "3": page], ordersAt, ["limit": 3]) { (pages, desk, _) async throws in
            #expect(await larderError { try await pages.all() }?.code == .paging)
            #expect(desk.requests.count == 2)
        }
    }

    @Test("Pages with numbers go on from the number where they began, and back to 1")
    func goesByNumber() async throws {
        let operation = GraphQLOperation(
            "query N($page: Int, $size: Int) { ordersOn(page: $page, size: $size) { sku } }")
        let pages = [
            "1": #""ordersOn":[\#(OrderDesk.objects(1...2))]"#, "2": #""ordersOn":[\#(OrderDesk.objects(3...4))]"#,
            "3": #""ordersOn":[\#(OrderDesk.objects(5...5))]"#,
        ]
        try await withPages(pages, operation, ["page": 2, "size": 2]) { (pages, desk, _) async throws in
            #expect(try await pages.all().objectCount == 3)
            #expect(try await pages.previous()?.skus == skus(1...2))
            #expect(try await pages.previous() == nil)
            #expect(try await pages.skus() == skus(1...5))
            #expect(desk.requests == ["2/2", "3/2", "1/2"])
        }
    }

    @Test(
        "A changed first page of a list by number drops the old pages that followed it",
        arguments: [true, false])
    func changedByNumber(isRefreshed: Bool) async throws {
        let desk = OrderDesk([:])
        func fill(_ ids: [Int]) {
            for (index, start) in stride(from: 0, to: ids.count, by: 3).enumerated() {
                let page = ids[start..<min(start + 3, ids.count)]
                desk.set(#""ordersOn":[\#(OrderDesk.objects(page))]"#, at: index == 0 ? "" : "\(index + 1)")
            }
        }
        let operation = GraphQLOperation(
            "query N($page: Int, $size: Int) { ordersOn(page: $page, size: $size) { sku } }", variables: ["size": 3])
        try await withAgedStore(desk.transport, schema: orderSchema) { app, wait in
            fill(Array(1...7))
            #expect(try await app.pages(operation).all().objectCount == 7)
            fill(Array(0...7))
            if isRefreshed {
                #expect(try await app.pages(operation).refresh().stalePageCount == 2)
            } else {
                // A plain fetch of the first page, which does not know of the list.
                wait(5)
                _ = try await app.fetch(operation, policy: .networkOnly)
            }
            let pages = try app.pages(operation)
            #expect(try await pages.status() == PagesStatus(pageCount: 1, objectCount: 3))
            #expect(try await pages.all().isComplete)
            #expect(try await pages.skus() == skus(0...7))
        }
    }

    @Test(
        "A limit that the server does not give is refused before anything is asked",
        arguments: [Value.int(1_001), .int(-1), .int(2_147_483_647)])
    func refusesLimits(limit: Value) async throws {
        let desk = OrderDesk([:])
        var operation = orderList
        operation.variables = ["limit": limit]
        try await withStoreFixture(desk.transport, schema: orderSchema) { [operation] (app) async throws in
            #expect(await larderError { try app.pages(operation) }?.code == .variables)
            #expect(await larderError { try await app.fetch(operation) }?.code == .variables)
            #expect(await larderError { try app.read(operation) }?.code == .variables)
        }
        #expect(desk.requests.isEmpty)
    }

    @Test("Where the operation leaves the size of a page to a default of its own, that is the size of each")
    func defaultSize() async throws {
        let operation = GraphQLOperation(
            "query L($limit: Int = 2, $nextToken: String) { listOrders(limit: $limit, nextToken: $nextToken) "
                + "{ items { sku } nextToken } }")
        let pages = ["": OrderDesk.tokenPage(1...2, next: "a"), "a": OrderDesk.tokenPage(3...3, next: nil)]
        try await withPages(pages, operation) { (pages, desk, _) async throws in
            #expect(try await pages.all().objectCount == 3)
            #expect(desk.requests == ["/2", "a/2"])
        }
    }

    @Test("A connection's size of page may be called limit, and is held to what the server gives", arguments: [10, 11])
    func limitOfConnection(limit: Int64) async throws {
        let schema = """
            type Query @fieldPolicy(forField: "search", paginationArgs: "limit after", maxLimit: 10) {
              search(limit: Int, after: String): Search
            }
            type Search { nodes: [Thing] pageInfo: Info }
            type Thing { id: ID! }
            type Info { hasNextPage: Boolean endCursor: String }
            """
        var operation = GraphQLOperation(
            "query S($limit: Int, $after: String) { search(limit: $limit, after: $after) "
                + "{ nodes { id } pageInfo { hasNextPage endCursor } } }")
        operation.variables = ["limit": .int(limit)]
        #expect(try await refusal(operation, schema: schema)?.code == (limit == 10 ? nil : .variables))
    }

    @Test(
        "A list by tokens takes limits up to its policy's, also when that is larger than AppSync's",
        arguments: [2_000, 2_001])
    func largerThanAppSyncs(limit: Int64) async throws {
        let schema = orderSchema.replacing(#""limit nextToken")"#, with: #""limit nextToken", maxLimit: 2000)"#)
        var operation = orderList
        operation.variables = ["limit": .int(limit)]
        #expect(try await refusal(operation, schema: schema)?.code == (limit == 2_000 ? nil : .variables))
    }

    @Test("A list by offset takes a limit of any size where its policy says no largest one")
    func unknownLargest() async throws {
        var operation = ordersAt
        operation.variables = ["limit": .int(100_000)]
        #expect(try await refusal(operation)?.code == nil)
    }

    @Test("A limit in the document is refused when it is compiled")
    func refusesWrittenLimit() async throws {
        let operation = GraphQLOperation(
            "query L($t: String) { listOrders(limit: 1001, nextToken: $t) { items { sku } nextToken } }")
        let error = try #require(try await refusal(operation))
        #expect(error.code == .operation)
        #expect(error.message.contains("limit of Query.listOrders is 1001, and the server gives 1000 at most"))
    }

    @Test("A default of the operation's own that is more than the server gives is refused")
    func refusesDefault() async throws {
        let operation = GraphQLOperation(
            "query L($limit: Int = 1001, $t: String) "
                + "{ listOrders(limit: $limit, nextToken: $t) { items { sku } nextToken } }")
        #expect(try await refusal(operation)?.code == .variables)
    }

    @Test(
        "A page of no elements leads nowhere, one of more than an Int of GraphQL can say nowhere either: both are refused",
        arguments: [0, -1, Int64(Int32.max) + 1, .max])
    func refusesSize(_ limit: Int64) async throws {
        for var operation in [orderList, ordersAt] {
            operation.variables = ["limit": .int(limit)]
            #expect(try await refusal(operation)?.code == .variables)
        }
    }

    @Test(
        "An operation that lacks what paging needs is refused with what it lacks",
        arguments: [
            ("{ order(id: 1) { sku } }", "asks for no list of pages"),
            ("query ($n: String) { listOrders(nextToken: $n) { items { sku } } }", "need the field nextToken"),
            ("{ listOrders { items { sku } nextToken } }", "nextToken of Query.listOrders must be a variable"),
            ("query ($n: String) { listOrders(nextToken: $n) { nextToken } }", "need a list of objects"),
            ("query ($a: String) { orders(after: $a) { nodes { sku } } }", "need the field pageInfo"),
            (
                "query ($n: String, $o: Int) { listOrders(nextToken: $n) { items { sku } nextToken } "
                    + "ordersAt(offset: $o) { sku } }", "several lists of pages: listOrders, ordersAt"
            ),
        ])
    func refuses(document: String, message: String) async throws {
        let error = try #require(try await refusal(GraphQLOperation(document)))
        #expect(error.code == .operation)
        #expect(error.message.contains(message), "\(error.message)")
    }

    @Test("Policies from code page as those of the schema do")
    func fromCode() async throws {
        let plain = orderSchema.replacing(/@fieldPolicy\([^)]*\)/, with: "")
        #expect(try await refusal(orderList, schema: plain)?.code == .operation)
        var schema = try Schema(parsing: plain)
        try schema.setPagination(["limit", "nextToken"], maxLimit: 50, forField: "listOrders", of: "Query")
        let desk = OrderDesk(["": OrderDesk.tokenPage(1...2, next: nil)])
        try await withTemporaryFolder { [schema] folder in
            let store = try Store.open(at: folder, schema: schema)
            try await store.partition(server: desk.transport).pages(orderList).all()
            try store.close()
        }
        #expect(desk.requests == ["/50"])
    }

    @Test("A server that answers the same page again on the way back is an error, and the pages stay")
    func seesSamePageBack() async throws {
        let operation = GraphQLOperation(
            "query N($page: Int, $size: Int) { ordersOn(page: $page, size: $size) { sku } }")
        let same = #""ordersOn":[\#(OrderDesk.objects(3...4))]"#
        let pages = ["3": #""ordersOn":[\#(OrderDesk.objects(5...6))]"#, "2": same, "1": same]
        try await withPages(pages, operation, ["page": 3, "size": 2]) { (pages, _, _) async throws in
            for _ in 0..<2 { #expect(try await pages.previous() != nil) }
            #expect(await larderError { try await pages.previous() }?.code == .paging)
            #expect(try await pages.status().pageCount == 2)
        }
    }

    @Test("A first page that no list can have, as a refresh brings it, leaves nothing of the list")
    func refreshesToBroken() async throws {
        let pages = [
            "": OrderDesk.connectionPage(1...2, next: "a"), "a": OrderDesk.connectionPage(3...4),
        ]
        try await withPages(pages, orderConnection) { (pages, desk, _) async throws in
            #expect(try await pages.all().pageCount == 2)
            desk.set(#""orders":{"__typename":"OrderConnection","edges":[],"pageInfo":null}"#, at: "")
            #expect(await larderError { try await pages.refresh() }?.code == .paging)
            #expect(try await pages.status() == PagesStatus())
        }
    }

    @Test("The argument last of a connection is held to the server's limit", arguments: [100, 101])
    func lastOfConnection(last: Int64) async throws {
        var operation = orderConnection
        operation.variables = ["last": .int(last)]
        #expect(try await refusal(operation)?.code == (last == 100 ? nil : .variables))
    }

    @Test(
        "A list by offset or number asks for pages as large as its policy allows, and refuses a larger limit",
        arguments: ["offset", "page"])
    func largestPage(position: String) async throws {
        let schema = """
            type Query @fieldPolicy(forField: "list", paginationArgs: "\(position) limit", maxLimit: 2) {
              list(\(position): Int, limit: Int): [Order]
            }
            type Order { id: ID! sku: String }
            """
        var operation = GraphQLOperation(
            "query L($\(position): Int, $limit: Int) { list(\(position): $\(position), limit: $limit) { sku } }")
        let pages = ["": #""list":[\#(OrderDesk.objects(1...2))]"#, "2": #""list":[\#(OrderDesk.objects(3...3))]"#]
        try await withPages(pages, operation, schema: schema, asking: ["/2", "2/2"]) { (pages, _, _) async throws in
            #expect(try await pages.all().objectCount == 3)
        }
        operation.variables = ["limit": 3]
        #expect(try await refusal(operation, schema: schema)?.code == .variables)
    }

    @Test(
        "A connection whose pageInfo lacks a field for its direction is refused with the name of that field",
        arguments: [
            ("after", "endCursor", "hasNextPage"), ("after", "hasNextPage", "endCursor"),
            ("before", "startCursor", "hasPreviousPage"), ("before", "hasPreviousPage", "startCursor"),
        ])
    func lacksPageInfo(argument: String, asked: String, missing: String) async throws {
        let operation = GraphQLOperation(
            "query ($c: String) { orders(\(argument): $c) { nodes { sku } pageInfo { \(asked) } } }")
        let error = try #require(try await refusal(operation))
        #expect(error.code == .operation)
        #expect(error.message.contains("need the field \(missing)"), "\(error.message)")
    }

    @Test("A list by tokens works with any name of the token's argument and field")
    func tokenName() async throws {
        let schema = """
            type Query @fieldPolicy(forField: "listOrders", paginationArgs: "limit marker") {
              listOrders(limit: Int, marker: String): OrderList
            }
            type OrderList { items: [Order] marker: String }
            type Order { id: ID! sku: String }
            """
        func page(_ ids: ClosedRange<Int>, next: String) -> String {
            #""listOrders":{"__typename":"OrderList","items":[\#(OrderDesk.objects(ids))],"marker":\#(next)}"#
        }
        let pages = ["": page(1...2, next: #""a""#), "a": page(3...3, next: "null")]
        let operation = GraphQLOperation(
            "query L($limit: Int, $nextToken: String) { listOrders(limit: $limit, marker: $nextToken) "
                + "{ items { sku } marker } }")
        try await withPages(pages, operation, schema: schema) { (pages, _, _) async throws in
            #expect(try await pages.all() == PagesStatus(pageCount: 2, objectCount: 3, isComplete: true))
            #expect(try await pages.skus() == skus(1...3))
        }
    }

    @Test("A list in pages of another size is loaded separately")
    func otherSize() async throws {
        let desk = OrderDesk(["": OrderDesk.tokenPage(1...2, next: "a"), "a": OrderDesk.tokenPage(3...3, next: nil)])
        try await withStoreFixture(desk.transport, schema: orderSchema) { app in
            for limit in [2, 3] as [Int64] {
                var operation = orderList
                operation.variables = ["limit": .int(limit)]
                let pages = try app.pages(operation)
                #expect(try await pages.status() == PagesStatus())
                #expect(try await pages.all().objectCount == 3)
            }
        }
        #expect(desk.requests == ["/2", "a/2", "/3", "a/3"])
    }

    @Test("A page by offset belongs to no list where a cache on the way has kept it since before the page before it")
    func keptOnTheWay() async throws {
        let desk = OrderDesk([
            "": #""ordersAt":[\#(OrderDesk.objects(1...3))]"#, "3": #""ordersAt":[\#(OrderDesk.objects(4...5))]"#,
        ])
        let server = ScriptedServer(nil, search: nil) { _, _, request in
            let body = await desk.answer(request)
            let age = Duration.seconds(desk.requests.last == "3/3" ? 10 : 0)
            return GraphQLAnswer(body: Array(body.utf8), status: 200, age: age)
        }
        var operation = ordersAt
        operation.variables = ["limit": 3]
        try await withStoreFixture(server, schema: orderSchema) { [operation] (app) async throws in
            #expect(try await app.pages(operation).all().pageCount == 2)
            #expect(try await app.pages(operation).status().pageCount == 1)
        }
    }
}
