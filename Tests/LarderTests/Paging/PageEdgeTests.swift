import Larder
import LarderTestSupport
import Testing

/// Lists whose pages are at the edge of what a list may be.
@Suite("Edges of pages", .timeLimit(.minutes(10)))
struct PageEdgeTests {
    private static let numbered = GraphQLOperation(
        "query N($page: Int, $size: Int) { ordersOn(page: $page, size: $size) { sku } }")

    private func at(_ ids: some Sequence<Int>) -> String { #""ordersAt":[\#(OrderDesk.objects(ids))]"# }

    private func on(_ ids: some Sequence<Int>) -> String { #""ordersOn":[\#(OrderDesk.objects(ids))]"# }

    @Test("A list of tokens has no page before its first")
    func onlyForward() async throws {
        try await withPages(["": OrderDesk.tokenPage(1...2, next: nil)], orderList) { (pages, desk, _) async throws in
            #expect(try await pages.previous()?.skus == skus(1...2))
            #expect(try await pages.previous() == nil)
            #expect(desk.requests.count == 1)
        }
    }

    @Test("There is no page beyond the loaded ones, and one whose object was evicted is a miss")
    func readsNoMore() async throws {
        try await withPages(["": OrderDesk.tokenPage(1...2, next: nil)], orderList) { (pages, _, app) async throws in
            #expect(try pages.page(0) == nil)
            #expect(try await pages.status() == PagesStatus(pageCount: 0, objectCount: 0, isComplete: false))
            try await pages.all()
            #expect(try pages.page(0)?.skus == skus(1...2))
            #expect(try pages.page(1) == nil && pages.page(-1) == nil)
            try await app.remove("Order:2", as: .evicted)
            #expect(await larderError { try pages.page(0) }?.code == .miss)
        }
    }

    @Test("Pages before the first are known after a restart as well, in the list's order")
    func knowsBackward() async throws {
        try await withPages(OrderDesk.backward, orderConnection, ["last": 2]) { (pages, desk, app) async throws in
            while try await pages.previous() != nil {}
            var operation = orderConnection
            operation.variables = ["last": 2]
            let later = try app.pages(operation)
            #expect(try await later.status().pageCount == 3)
            #expect(try await later.skus() == skus(1...6))
            #expect(try await later.previous() == nil)
            #expect(desk.requests.count == 3)
        }
    }

    @Test("Pages before the first are as large as the policy allows where the operation leaves it open")
    func backwardSize() async throws {
        try await withPages(OrderDesk.backward, orderConnection) { (pages, desk, _) async throws in
            _ = try await pages.previous()
            _ = try await pages.previous()
            #expect(desk.requests == ["/100", "x/100"])
        }
    }

    private static let backward = GraphQLOperation(
        "query B($last: Int, $before: String) { orders(last: $last, before: $before) { edges { node { sku } } "
            + "pageInfo { hasPreviousPage startCursor } } }")

    @Test("The first page of an operation that only goes backward is as large as the policy allows, too")
    func onlyBackwardSize() async throws {
        try await withPages(OrderDesk.backward, Self.backward) { (pages, desk, _) async throws in
            #expect(try await pages.all().objectCount == 6)
            #expect(desk.requests == ["/100", "x/100", "y/100"])
        }
    }

    @Test("No page follows the first one of a list that only goes backward")
    func onlyBackwardNext() async throws {
        try await withPages(OrderDesk.backward, Self.backward) { (pages, desk, _) async throws in
            #expect(try await pages.next() != nil)
            #expect(try await pages.next() == nil)
            #expect(desk.requests == ["/100"])
        }
    }

    @Test("A token that is no newer than this value, and a network that is away, start nothing over")
    func startsNothingOver() async throws {
        let server = OrderDesk(["": OrderDesk.tokenPage(1...3, next: "a")]).transport
        try await withStoreFixture(server, schema: orderSchema) { (app) async throws in
            try await app.pages(orderList).all(upTo: 1)
            let later = try app.pages(orderList)
            server.isReachable = false
            #expect(await larderError { try await later.all() }?.code.rawValue == "transport.unreachable")
            #expect(try await later.status() == PagesStatus(pageCount: 1, objectCount: 3))
            #expect(server.requests.count == 2)
        }
    }

    @Test("A call that waits for another is cancelled at once")
    func cancelsWaiting() async throws {
        let (asked, free) = (Flag(), Flag())
        let server = ScriptedServer { _ in
            asked.set()
            await free.wait()
            return #"{"data":{\#(OrderDesk.tokenPage(1...2, next: nil))}}"#
        }
        try await withStoreFixture(server, schema: orderSchema) { (app) async throws in
            let pages = try app.pages(orderList)
            let loading = Task { try await pages.next() }
            await asked.wait()
            let waiting = Task { try await pages.next() }
            waiting.cancel()
            #expect(await larderError { try await waiting.value }?.code == .cancelled)
            free.set()
            #expect(try await loading.value?.skus == skus(1...2))
            #expect(server.requests.count == 1)
        }
    }

    @Test("Offsets lead back to where the page before begins, and not below zero")
    func offsetsBack() async throws {
        let pages = ["4": at(5...7), "1": at(2...4), "0": at(1...3)]
        try await withPages(pages, ordersAt, ["offset": 4, "limit": 3]) { (pages, desk, _) async throws in
            #expect(try await pages.previous()?.skus == skus(5...7))
            #expect(try await pages.previous()?.skus == skus(2...4))
            // What the page after it has as well is shown there.
            #expect(try await pages.previous()?.skus == skus(1...1))
            #expect(try await pages.previous() == nil)
            #expect(try pages.page(0)?.skus == skus(1...1))
            #expect(desk.requests == ["4/3", "1/3", "0/3"])
        }
    }

    @Test("Offsets without a limit go on until a page is empty")
    func offsetsWithoutLimit() async throws {
        let pages = ["": at(1...3), "3": at(4...4), "4": at([])]
        try await withPages(pages, ordersAt) { (pages, desk, _) async throws in
            #expect(try await pages.all() == PagesStatus(pageCount: 3, objectCount: 4, isComplete: true))
            #expect(desk.requests == ["/-", "3/-", "4/-"])
            #expect(try await pages.previous() == nil)
        }
    }

    @Test("A limit that stands in the document says when a page is not full")
    func fixedLimit() async throws {
        let operation = GraphQLOperation("query A($offset: Int) { ordersAt(offset: $offset, limit: 2) { sku } }")
        try await withPages(["": at(1...2), "2": at(3...3)], operation) { (pages, desk, _) async throws in
            #expect(try await pages.all() == PagesStatus(pageCount: 2, objectCount: 3, isComplete: true))
            #expect(desk.requests.count == 2)
        }
    }

    @Test("A list ends where the next number is larger than an Int of GraphQL can be")
    func largestNumber() async throws {
        let last = Int64(Int32.max)
        let pages = ["\(last - 1)": on(1...1), "\(last)": on(2...2)]
        try await withPages(pages, Self.numbered, ["page": .int(last - 1), "size": 1]) {
            (pages, desk, _) async throws in
            #expect(try await pages.all() == PagesStatus(pageCount: 2, objectCount: 2, isComplete: true))
            #expect(desk.requests == ["\(last - 1)/1", "\(last)/1"])
        }
    }

    @Test("Pages with numbers begin at 1 where the operation does not say")
    func firstNumber() async throws {
        try await withPages(["": on(1...2), "2": on(3...3)], Self.numbered, ["size": 2]) {
            (pages, desk, _) async throws in
            #expect(try await pages.all().objectCount == 3)
            #expect(try await pages.previous() == nil)
            #expect(desk.requests == ["/2", "2/2"])
        }
    }

    @Test("An edge whose node is null is left out, and a page of null edges is not the end")
    func nullNodes() async throws {
        let edges =
            #"{"__typename":"OrderEdge","node":null},null,{"__typename":"OrderEdge","node":\#(OrderDesk.object(1))}"#
        let info =
            #""pageInfo":{"__typename":"PageInfo","hasNextPage":true,"hasPreviousPage":false,"#
            + #""startCursor":null,"endCursor":"x"}"#
        let pages = [
            "": #""orders":{"__typename":"OrderConnection","edges":[\#(edges)],\#(info)}"#,
            "x": OrderDesk.connectionPage(2...2),
        ]
        try await withPages(pages, orderConnection, ["first": 3]) { (pages, _, _) async throws in
            #expect(try await pages.all() == PagesStatus(pageCount: 2, objectCount: 2, isComplete: true))
            #expect(try await pages.skus() == skus(1...2))
        }
    }

    @Test("A cursor is followed only where the page says that another comes")
    func cursorAtEnd() async throws {
        let info =
            #""pageInfo":{"__typename":"PageInfo","hasNextPage":false,"hasPreviousPage":false,"#
            + #""startCursor":"a","endCursor":"z"}"#
        let page = #""orders":{"__typename":"OrderConnection","edges":[],\#(info)}"#
        try await withPages(["": page], orderConnection) { (pages, desk, _) async throws in
            #expect(try await pages.all() == PagesStatus(pageCount: 1, objectCount: 0, isComplete: true))
            #expect(try await pages.previous() == nil)
            #expect(desk.requests.count == 1)
        }
    }

    @Test("Objects are the same by all of their key fields, of whatever type, and by their type")
    func identities() async throws {
        let schema = """
            type Query @fieldPolicy(forField: "things", paginationArgs: "offset limit") {
              things(offset: Int = 0, limit: Int): [Thing]
            }
            interface Thing { n: Int }
            type A implements Thing @typePolicy(keyFields: "n isOn") { n: Int isOn: Boolean }
            type B implements Thing @typePolicy(keyFields: "n isOn") { n: Int isOn: Boolean }
            type C implements Thing @typePolicy(keyFields: "") { n: Int }
            """
        func thing(_ type: String, _ isOn: Bool? = nil) -> String {
            #"{"__typename":"\#(type)","n":1\#(isOn.map { #","isOn":\#($0)"# } ?? "")}"#
        }
        let all = [thing("A", true), thing("A", false), thing("B", true), thing("C"), thing("C")]
        let pages = [
            "": #""things":[\#(all.joined(separator: ","))]"#, "5": #""things":[\#(all.joined(separator: ","))]"#,
        ]
        let operation = GraphQLOperation("query T($offset: Int) { things(offset: $offset, limit: 5) { n } }")
        try await withPages(pages.merging(["10": #""things":[]"#]) { $1 }, operation, schema: schema) {
            (pages, _, _) async throws in
            // Objects without identity are other objects on each page.
            #expect(try await pages.all() == PagesStatus(pageCount: 3, objectCount: 7, isComplete: true))
            #expect(try pages.page(0)?.objects.count == 5 && pages.page(1)?.objects.count == 2)
            var states = try pages.watch().makeAsyncIterator()
            while let state = try await next(&states) {
                guard state.isComplete else { continue }
                #expect(state.pages.map(\.objects.count) == [5, 2, 0])
                break
            }
        }
    }

    @Test("A list of pages is not answered from an object whose key its arguments have")
    func keyedPages() async throws {
        let schema = """
            type Query @fieldPolicy(forField: "ordersOf", keyArgs: "ids", paginationArgs: "offset limit") {
              ordersOf(ids: [ID!]!, offset: Int = 0, limit: Int): [Order]
            }
            type Order { id: ID! sku: String }
            """
        try await withStoreFixture(schema: schema) { app in
            try await app.write("Order:7", GraphQLFragment("fragment F on Order { sku }"), ["sku": "s7"])
            let error = await larderError { try app.read(GraphQLOperation("{ ordersOf(ids: [7], limit: 2) { sku } }")) }
            #expect(error?.code == .miss)
        }
    }

    @Test("The program's options are those of each page's request")
    func options() async throws {
        let pages = ["": OrderDesk.tokenPage([1], next: "a"), "a": OrderDesk.tokenPage([2], next: nil)]
        let options = FetchOptions(headers: [.init(name: "X-Shop", value: "7")])
        let server = OrderDesk(pages).transport
        try await withStoreFixture(server, schema: orderSchema) { (app) async throws in
            try await app.pages(orderList, options: options).all()
            #expect(server.requests.map { $0.headers.map(\.value) } == [["7"], ["7"]])
        }
    }

    @Test("Objects come in the program's own type, and one that does not fit is an error with the page")
    func decodes() async throws {
        struct Order: Decodable, Equatable { var sku: String }
        struct Other: Decodable { var price: Int }
        try await withPages(["": OrderDesk.tokenPage(1...2, next: nil)], orderList) { (pages, _, _) async throws in
            let page = try #require(try await pages.next())
            #expect(try page.decode(Order.self) == [Order(sku: "s1"), Order(sku: "s2")])
            let error = await larderError { try page.decode(Other.self) }
            #expect(error?.code == .data && error?.response == page.response)
        }
    }

    @Test("A closed store loads no pages")
    func parked() async throws {
        try await withTemporaryFolder { folder in
            let store = try Store.open(at: folder, schema: try Schema(parsing: orderSchema))
            let app = try store.partition()
            let pages = try app.pages(orderList)
            try store.close()
            #expect(await larderError { try await pages.next() }?.code == .parked)
        }
    }

    @Test("The pages of a partition that is not the current one any more are neither loaded nor watched")
    func left() async throws {
        try await withTemporaryFolder { folder in
            let store = try Store.open(at: folder, schema: try Schema(parsing: orderSchema))
            let app = try await store.switch(to: backend("a"), pending: .park).partition
            let pages = try app.pages(orderList)
            _ = try await store.switch(to: backend("b"), pending: .park)
            #expect(await larderError { try await pages.next() }?.code == .parked)
            #expect(await larderError { try pages.watch() }?.code == .parked)
            #expect(await larderError { try app.pages(orderList) }?.code == .parked)
            try store.close()
        }
    }

    @Test("A watcher of whole lists sees no list that is not whole")
    func watchesWhole() async throws {
        let pages = ["": OrderDesk.tokenPage([1], next: "a"), "a": OrderDesk.tokenPage([2], next: nil)]
        try await withPages(pages, orderList) { (pages, _, _) async throws in
            var states = try pages.watch(.whenComplete).makeAsyncIterator()
            var each = try pages.watch().makeAsyncIterator()
            while try #require(try await next(&each)).pages.isEmpty { _ = try await pages.next() }
            _ = try await pages.next()
            let first = try #require(try await next(&states))
            #expect(first.isComplete && first.objects.compactMap { $0["sku"]?.string } == skus(1...2))
        }
    }

    @Test("A watcher sees pages before the first in the list's order")
    func watchesBackward() async throws {
        try await withPages(OrderDesk.backward, orderConnection, ["last": 2]) { (pages, _, _) async throws in
            var states = try pages.watch().makeAsyncIterator()
            while try await pages.previous() != nil {}
            while let state = try await next(&states) {
                if state.pages.count == 3 {
                    #expect(state.pages.flatMap(\.skus) == skus(1...6) && state.isComplete && state.error == nil)
                    break
                }
            }
        }
    }

    @Test("A page without what leads to the next is an error of the state")
    func watchesError() async throws {
        let page = #""orders":{"__typename":"OrderConnection","edges":[],"pageInfo":null}"#
        try await withPages(["": page], orderConnection) { (pages, _, _) async throws in
            #expect(await larderError { try await pages.next() }?.code == .paging)
            var states = try pages.watch().makeAsyncIterator()
            let state = try #require(try await next(&states))
            #expect(state.error?.code == .paging && !state.isComplete)
        }
    }

    @Test("A stored page that no list can have is replaced by a refresh, by the same value of Pages and another")
    func refreshesBroken() async throws {
        let broken = #""orders":{"__typename":"OrderConnection","edges":[],"pageInfo":null}"#
        try await withPages(["": broken], orderConnection) { (pages, desk, app) async throws in
            #expect(await larderError { try await pages.next() }?.code == .paging)
            desk.set(OrderDesk.connectionPage(1...2), at: "")
            let later = try app.pages(orderConnection)
            #expect(try await later.status() == PagesStatus())
            #expect(try await later.refresh().objectCount == 2)
            #expect(try await pages.refresh() == PagesStatus(pageCount: 1, objectCount: 2, isComplete: true))
        }
    }

    @Test("An object that goes to another page is shown there, and once, by the same value of Pages")
    func moves() async throws {
        let pages = ["": OrderDesk.tokenPage(1...3, next: "a"), "a": OrderDesk.tokenPage(4...6, next: nil)]
        try await withPages(pages, orderList) { (pages, desk, app) async throws in
            try await pages.all()
            var (first, second) = (orderList, orderList)
            (first.variables, second.variables) = (["limit": 1_000], ["limit": 1_000, "nextToken": "a"])
            desk.set(OrderDesk.tokenPage([1, 3], next: "a"), at: "")
            desk.set(OrderDesk.tokenPage([4, 2, 5, 6], next: nil), at: "a")
            _ = try await app.fetch(second, policy: .networkOnly)
            // The first page has it too, still.
            #expect(try pages.page(1)?.skus == skus(4...6))
            _ = try await app.fetch(first, policy: .networkOnly)
            #expect(try pages.page(1)?.skus == skus([4, 2, 5, 6]))
            #expect(try await pages.skus() == skus([1, 3, 4, 2, 5, 6]))
            #expect(try await pages.status().objectCount == 6)
        }
    }

    @Test("Objects on overlapping pages appear once after the cache was compacted as well")
    func compacted() async throws {
        let pages = [
            "": OrderDesk.tokenPage(1...3, next: "a"), "a": OrderDesk.tokenPage(3...5, next: "b"),
            "b": OrderDesk.tokenPage(5...7, next: nil),
        ]
        try await withPages(pages, orderList) { (pages, _, app) async throws in
            try await pages.all(upTo: 4)
            _ = try await app.records.compact()
            #expect(try pages.page(1)?.skus == skus(4...5))
            _ = try await app.records.compact()
            #expect(try await pages.all() == PagesStatus(pageCount: 3, objectCount: 7, isComplete: true))
            #expect(try await pages.skus() == skus(1...7))
        }
    }

    /// Clears the cache and stores pages of the list again, whose objects have other numbers then.
    private static func renumber(_ app: Partition, _ pages: [(token: String?, page: String)]) async throws {
        _ = try await app.records.clear()
        let others = OrderDesk.objects(100..<140)
        try await app.write(ordersAt, json: Array(#"{"ordersAt":[\#(others)]}"#.utf8))
        for (token, page) in pages {
            var operation = orderList
            operation.variables = ["limit": 1_000]
            if let token { operation.variables["nextToken"] = .string(token) }
            try await app.write(operation, json: Array("{\(page)}".utf8))
        }
    }

    @Test("Objects on overlapping pages appear once where the cache was cleared and filled again")
    func renumbered() async throws {
        let (first, second) = (OrderDesk.tokenPage(1...3, next: "a"), OrderDesk.tokenPage(3...5, next: nil))
        try await withPages(["": first, "a": second], orderList) { (pages, _, app) async throws in
            try await pages.all()
            try await Self.renumber(app, [(nil, first), ("a", second)])
            #expect(try pages.page(1)?.skus == skus(4...5))
            #expect(try await pages.skus() == skus(1...5))
        }
    }

    @Test("Objects on overlapping pages appear once where that happens while a page is asked for")
    func renumberedMeanwhile() async throws {
        let (first, second) = (OrderDesk.tokenPage(1...3, next: "a"), OrderDesk.tokenPage(3...5, next: nil))
        try await withPages(["": first, "a": second], orderList) { (pages, desk, app) async throws in
            _ = try await pages.next()
            desk.hold { _ in await #expect(throws: Never.self) { try await Self.renumber(app, [(nil, first)]) } }
            #expect(try await pages.next()?.skus == skus(4...5))
            #expect(try await pages.skus() == skus(1...5))
        }
    }

    @Test("A page that a clear has taken away hides no object of the page that is asked for meanwhile")
    func clearedMeanwhile() async throws {
        let pages = ["": OrderDesk.tokenPage(1...3, next: "a"), "a": OrderDesk.tokenPage(4...6, next: nil)]
        try await withPages(pages, orderList) { (pages, desk, app) async throws in
            _ = try await pages.next()
            // The objects that come next are given the numbers of those that were there.
            desk.hold { _ in await #expect(throws: Never.self) { try await app.records.clear() } }
            #expect(try await pages.next()?.skus == skus(4...6))
        }
    }

    @Test("A page that is a miss by itself hides no object of the pages that have it as well")
    func missHidesNothing() async throws {
        let pages = ["": OrderDesk.tokenPage(1...3, next: "a"), "a": OrderDesk.tokenPage(3...5, next: nil)]
        try await withPages(pages, orderList) { (pages, _, app) async throws in
            try await pages.all()
            #expect(try pages.page(1)?.skus == skus(4...5))
            try await app.remove("Order:1", as: .evicted)
            #expect(try pages.page(1)?.skus == skus(3...5))
        }
    }

    @Test("A page by offset or number one of whose objects is no more leads to the next page as before")
    func deletedObjects() async throws {
        let pages = ["": at(1...2), "2": at(3...4), "4": at(5...5)]
        try await withPages(pages, ordersAt, ["limit": 2]) { (pages, desk, app) async throws in
            try await pages.all()
            try await app.remove("Order:2", as: .deleted)
            try await app.remove("Order:3", as: .deleted)
            var operation = ordersAt
            operation.variables = ["limit": 2]
            let later = try app.pages(operation)
            #expect(try await later.status() == PagesStatus(pageCount: 3, objectCount: 3, isComplete: true))
            #expect(try await later.skus() == skus([1, 4, 5]))
            #expect(desk.requests.count == 3)
        }
    }

    @Test("A typed operation pages as its operation does, with the program's options")
    func typed() async throws {
        struct Orders: TypedOperation {
            struct Data: Decodable, Sendable {}
            var operation: GraphQLOperation { orderList }
        }
        let desk = OrderDesk(["": OrderDesk.tokenPage([1], next: "a"), "a": OrderDesk.tokenPage([2], next: nil)])
        let server = desk.transport
        try await withStoreFixture(server, schema: orderSchema) { app in
            let tenant = GraphQLRequest.Header(name: "x-tenant", value: "7")
            let pages = try app.pages(Orders(), options: FetchOptions(headers: [tenant]))
            #expect(try await pages.all().objectCount == 2)
            #expect(server.requests.map(\.headers) == [[tenant], [tenant]])
        }
    }
}
