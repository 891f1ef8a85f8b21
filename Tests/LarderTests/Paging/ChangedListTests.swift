import Foundation
import Larder
import LarderTestSupport
import Synchronization
import Testing

@Suite("Lists that change at the server while the cache has them", .timeLimit(.minutes(10)))
struct ChangedListTests {
    static let size = 3

    /// Has the desk answer with a list, by offset.
    private static func fill(
        _ desk: OrderDesk, _ ids: [Int], firstAt first: String = "",
        page: (ArraySlice<Int>) -> String = { #""ordersAt":[\#(OrderDesk.objects($0))]"# }
    ) {
        for start in stride(from: 0, through: ids.count, by: size) {
            desk.set(page(ids[start..<min(start + size, ids.count)]), at: start == 0 ? first : "\(start)")
        }
    }

    /// Loads a list, which becomes another one at the server. Expects that a refresh of the first page drops the pages
    /// after it, and that `all()` loads the new list.
    private func expectEnd(
        of operation: GraphQLOperation, becoming ids: ClosedRange<Int>, firstAt first: String = "",
        sourceLocation: SourceLocation = #_sourceLocation, page: (ArraySlice<Int>) -> String
    ) async throws {
        let desk = OrderDesk([:])
        try await withStoreFixture(desk.transport, schema: orderSchema) { (app) async throws in
            Self.fill(desk, Array(1...7), firstAt: first, page: page)
            #expect(try await app.pages(operation).all().objectCount == 7, sourceLocation: sourceLocation)
            Self.fill(desk, Array(ids), firstAt: first, page: page)
            #expect(try await app.pages(operation).refresh().stalePageCount == 2, sourceLocation: sourceLocation)
            let status = try await app.pages(operation).status()
            #expect(status == PagesStatus(pageCount: 1, objectCount: 3), sourceLocation: sourceLocation)
            let pages = try app.pages(operation)
            #expect(try await pages.all().isComplete, sourceLocation: sourceLocation)
            #expect(try await pages.skus() == skus(ids), sourceLocation: sourceLocation)
        }
    }

    private func withList(
        _ ids: [Int], _ body: (GraphQLOperation, OrderDesk, Partition, TestClock) async throws -> Void
    ) async throws {
        let (desk, clock) = (OrderDesk([:]), TestClock())
        Self.fill(desk, ids)
        var operation = ordersAt
        operation.variables = ["limit": .int(Int64(Self.size))]
        var options = Store.Options()
        options.now = { clock.now }
        try await withTemporaryFolder { folder in
            let store = try Store.open(at: folder, schema: try Schema(parsing: orderSchema), options: options)
            let app = try store.partition(server: desk.transport)
            #expect(try await app.pages(operation).all().objectCount == ids.count)
            try await body(operation, desk, app, clock)
            try store.close()
            try expectSound(folder)
        }
    }

    @Test("A first page by offset that is another one now leaves no page of the list as it was behind it")
    func refreshed() async throws {
        try await withList(Array(1...7)) { (operation, desk, app, _) async throws in
            let ids = Array(0...7)
            Self.fill(desk, ids)
            let pages = try app.pages(operation)
            #expect(try await pages.refresh() == PagesStatus(pageCount: 1, objectCount: 3, stalePageCount: 2))
            #expect(try await app.pages(operation).status() == PagesStatus(pageCount: 1, objectCount: 3))
            #expect(try await pages.all().isComplete)
            #expect(try await pages.skus() == skus(ids))
            #expect(try await app.pages(operation).skus() == skus(ids))
        }
    }

    @Test("A page by offset that is another one now is stored in the commit in which the one after it goes")
    func oneCommit() async throws {
        try await withList(Array(1...6)) { (operation, desk, app, _) async throws in
            let pages = try app.pages(operation)
            var states = try pages.watch(.whenComplete).makeAsyncIterator()
            var shown = await states.next().map { $0.pages.flatMap(\.skus) }
            for round in 1...40 {
                let ids = (1...6).map { round * 10 + $0 }
                Self.fill(desk, ids)
                let other = try app.pages(operation)
                try await other.refresh()
                #expect(try await other.status().pageCount == 1)
                try await other.all()
                while shown != skus(ids), let state = await states.next() {
                    let found = state.pages.flatMap(\.skus)
                    #expect(Set(found.map { $0.dropLast() }).count <= 1, "\(found)")
                    shown = found
                }
            }
        }
    }

    @Test(
        "A watcher of a list by offset never shows two lists, and comes to the newest, whatever is done to the cache",
        arguments: PagesWatch.Update.allCases)
    func watchedAtRandom(update: PagesWatch.Update) async throws {
        let seed = TestSeed.of("watched list by offset \(update)")
        var random = SeededNumbers(seed: seed)
        func number(_ count: Int) -> Int { Int(random.next() % UInt64(count)) }
        try await withList(Array(1...6)) { (operation, desk, app, clock) async throws in
            var (version, ids) = (0, Array(1...6))
            let latest = Mutex<PagesState?>(nil)
            let all = [try app.pages(operation), try app.pages(operation)]
            let watch = try all[0].watch(update)
            let watcher = Task {
                for await state in watch {
                    let versions = Set(state.objects.compactMap { $0["sku"]?.string?.count })
                    #expect(versions.count <= 1, "seed \(seed): \(state.pages.map(\.skus))")
                    latest.withLock { $0 = state }
                }
            }
            defer { watcher.cancel() }
            for _ in 0..<150 {
                let pages = all[number(2)]
                switch number(8) {
                case 0...2:
                    // The names of a version are as long as those of no other.
                    version = (version + 1) % 9
                    let first = (0..<version).reduce(1) { power, _ in power * 10 }
                    ids = Array(first..<first + 1 + (version == 0 ? 8 : number(13)))
                    Self.fill(desk, ids)
                    if number(2) == 0 {
                        try await pages.refresh()
                    } else {
                        try await pages.all(startingOver: true)
                    }
                case 3: try await pages.all()
                case 4: _ = try? await pages.next()
                case 5: _ = try await app.records.compact()
                case 6: try await app.evict(maxAge: number(2) == 0 ? .zero : .seconds(100))
                default: clock.advance(by: .seconds(number(3)))
                }
            }
            try await all[1].all(startingOver: true)
            try await eventually { latest.withLock { $0?.isComplete == true && $0?.objects.count == ids.count } }
            let shown = latest.withLock { $0?.pages.flatMap(\.skus) }
            #expect(shown == skus(ids), "seed \(seed)")
        }
    }

    @Test("A list by offset below an object ends where a page has become another one")
    func belowObject() async throws {
        let operation = GraphQLOperation(
            """
            query D($id: ID!, $offset: Int, $limit: Int) {
              depot(id: $id) { ordersAt(offset: $offset, limit: $limit) { sku } }
            }
            """, variables: ["id": "1", "limit": .int(Int64(Self.size))])
        try await expectEnd(of: operation, becoming: 0...7, firstAt: "1") { page in
            #""depot":{"__typename":"Depot","id":"1","ordersAt":[\#(OrderDesk.objects(page))]}"#
        }
    }

    /// A list by offset whose elements have no key.
    enum Keyless: Sendable, CaseIterable {
        case edges, notes

        var operation: GraphQLOperation {
            let selection =
                switch self {
                case .edges: "edgesAt(offset: $offset, limit: $limit) { edges { node { sku } } }"
                case .notes: "notesAt(offset: $offset, limit: $limit) { sku }"
                }
            return GraphQLOperation(
                "query K($offset: Int, $limit: Int) { \(selection) }",
                variables: ["limit": .int(Int64(ChangedListTests.size))])
        }

        func page(_ ids: ArraySlice<Int>) -> String {
            func list(_ element: (Int) -> String) -> String { ids.map(element).joined(separator: ",") }
            return switch self {
            case .edges:
                #""edgesAt":{"__typename":"OrderEdges","edges":["#
                    + list { #"{"__typename":"OrderEdge","node":\#(OrderDesk.object($0))}"# } + "]}"
            case .notes: #""notesAt":["# + list { #"{"__typename":"Note","sku":"s\#($0)"}"# } + "]"
            }
        }
    }

    @Test("A list of elements without a key ends where a page has become another one", arguments: Keyless.allCases)
    func keyless(kind: Keyless) async throws {
        try await expectEnd(of: kind.operation, becoming: 11...17) { kind.page($0) }
    }

    @Test("A list in an object without a key keeps its pages when a field beside it changes, or one around it")
    func besideOtherFields() async throws {
        func page(_ ids: ClosedRange<Int>, name: String, next: String?) -> String {
            let token = next.map { "\"\($0)\"" } ?? "null"
            return #""mall":{"__typename":"Mall","name":"\#(name)","shop":{"__typename":"Shop","name":"\#(name)","#
                + #""orders":{"__typename":"OrderList","items":[\#(OrderDesk.objects(ids))],"nextToken":\#(token)}}}"#
        }
        let desk = OrderDesk(["": page(1...3, name: "old", next: "a"), "a": page(4...5, name: "new", next: nil)])
        let operation = GraphQLOperation(
            """
            query S($limit: Int, $nextToken: String) {
              mall { name shop { name orders(limit: $limit, nextToken: $nextToken) { items { sku } nextToken } } }
            }
            """)
        try await withStoreFixture(desk.transport, schema: orderSchema) { app in
            #expect(try await app.pages(operation).all() == PagesStatus(pageCount: 2, objectCount: 5, isComplete: true))
            let pages = try app.pages(operation)
            #expect(try await pages.skus() == skus(1...5))
            #expect(try pages.page(0)?.response["mall"]?["shop"]?["name"]?.string == "new")
        }
    }

    @Test("A first page by offset that another call fetched later is not followed by pages of an earlier time")
    func fetched() async throws {
        try await withList(Array(1...7)) { (operation, desk, app, clock) async throws in
            let ids = Array(0...7)
            Self.fill(desk, ids)
            clock.advance(by: .seconds(5))
            _ = try await app.fetch(operation, policy: .networkOnly)
            let pages = try app.pages(operation)
            #expect(try await pages.status() == PagesStatus(pageCount: 1, objectCount: 3))
            #expect(try await pages.all().isComplete)
            #expect(try await pages.skus() == skus(ids))
            #expect(try await app.pages(operation).skus() == skus(ids))
        }
    }

    @Test("A watcher of a list by offset shows the later pages, though another call replaced the first one")
    func watchedUntilThen() async throws {
        try await withList(Array(1...7)) { (operation, desk, app, clock) async throws in
            Self.fill(desk, Array(0...7))
            clock.advance(by: .seconds(5))
            _ = try await app.fetch(operation, policy: .networkOnly)
            let pages = try app.pages(operation)
            #expect(try await pages.status().pageCount == 1)
            var states = try pages.watch().makeAsyncIterator()
            let state = await states.next()
            #expect(state?.pages.flatMap(\.skus) == skus([0, 1, 2, 4, 5, 6, 7]) && state?.isComplete == true)
        }
    }

    @Test("A list by offset that another call begins anew meanwhile is loaded anew to its end")
    func begunAnew() async throws {
        try await withList(Array(1...7)) { (operation, desk, app, clock) async throws in
            let isBegun = Flag()
            desk.hold { offset in
                guard offset == "6", !isBegun.isSet else { return }
                isBegun.set()
                Self.fill(desk, Array(0...7))
                clock.advance(by: .seconds(5))
                await #expect(throws: Never.self) { try await app.pages(operation).refresh() }
            }
            let pages = try app.pages(operation)
            #expect(try await pages.all(startingOver: true).isComplete)
            #expect(try await pages.skus() == skus(0...7))
        }
    }

    @Test("A list by offset whose loading anew is cut short is not made of two lists", arguments: [0, 5])
    func cutShort(seconds: Int) async throws {
        try await withList(Array(10...16)) { (operation, desk, app, clock) async throws in
            let ids = Array(8...16)
            Self.fill(desk, ids)
            let last = Mutex(false)
            desk.hold { offset in
                guard offset == "6", !last.withLock({ $0 }) else { return }
                last.withLock { $0 = true }
                desk.removePage(at: "6")
            }
            clock.advance(by: .seconds(seconds))
            let pages = try app.pages(operation)
            #expect(await larderError { try await pages.all(startingOver: true) }?.code == .serverErrors)
            Self.fill(desk, ids)
            let later = try app.pages(operation)
            #expect(try await later.status() == PagesStatus(pageCount: 2, objectCount: 6))
            #expect(try await later.all().isComplete)
            #expect(try await later.skus() == skus(ids))
        }
    }

    @Test("A list that once led back is asked for again, and goes on when the server is right")
    func ledBack() async throws {
        let desk = OrderDesk(["": OrderDesk.tokenPage(1...3, next: "a"), "a": OrderDesk.tokenPage(4...6, next: "a")])
        try await withStoreFixture(desk.transport, schema: orderSchema) { app in
            let pages = try app.pages(orderList)
            #expect(await larderError { try await pages.all() }?.code == .paging)
            #expect(desk.requests.count == 2)
            desk.set(OrderDesk.tokenPage(4...6, next: "b"), at: "a")
            desk.set(OrderDesk.tokenPage(7...8, next: nil), at: "b")
            for pages in [pages, try app.pages(orderList)] {
                #expect(try await pages.all() == PagesStatus(pageCount: 3, objectCount: 8, isComplete: true))
                #expect(try await pages.skus() == skus(1...8))
            }
        }
    }

    @Test("A page that another call has stored meanwhile, and that leads back, is asked for again")
    func ledBackMeanwhile() async throws {
        let desk = OrderDesk([
            "": OrderDesk.tokenPage(1...3, next: "a"), "a": OrderDesk.tokenPage(4...6, next: "b"),
            "b": OrderDesk.tokenPage(7...9, next: "a"),
        ])
        try await withStoreFixture(desk.transport, schema: orderSchema) { app in
            let isHeld = Flag()
            desk.hold { token in
                guard token == "a", !isHeld.isSet else { return }
                isHeld.set()
                await #expect(throws: Never.self) { try await app.pages(orderList).all(upTo: 9) }
                desk.set(OrderDesk.tokenPage(7...8, next: nil), at: "b")
            }
            let pages = try app.pages(orderList)
            #expect(try await pages.all() == PagesStatus(pageCount: 3, objectCount: 8, isComplete: true))
            #expect(try await pages.skus() == skus(1...8))
        }
    }

    @Test("A list in which a whole page came in between two pages is asked for again, and goes on")
    func shiftedByPage() async throws {
        let desk = OrderDesk([:])
        Self.fill(desk, Array(1...3))
        var operation = ordersAt
        operation.variables = ["limit": 3]
        try await withStoreFixture(desk.transport, schema: orderSchema) { [operation] app in
            _ = try await app.pages(operation).next()
            Self.fill(desk, Array(-2...5))
            let pages = try app.pages(operation)
            #expect(try await pages.all().isComplete)
            #expect(try await pages.skus() == skus(-2...5))
        }
    }

    @Test("A server that has too much to do, by its status alone, leaves the pages that are loaded")
    func throttled() async throws {
        let desk = OrderDesk(["": OrderDesk.tokenPage(1...3, next: "a"), "a": OrderDesk.tokenPage(4...6, next: nil)])
        let status = Mutex(200)
        let server = ScriptedServer(nil, search: nil) { _, _, request in
            let status = status.withLock { $0 }
            let body = status == 200 ? await desk.answer(request) : #"{"errors":[{"message":"Rate exceeded"}]}"#
            return GraphQLAnswer(body: Array(body.utf8), status: status, retryAfter: .seconds(7))
        }
        try await withStoreFixture(server, schema: orderSchema) { app in
            _ = try await app.pages(orderList).next()
            for refused in [429, 500, 503, 401] {
                status.withLock { $0 = refused }
                let before = server.requests.count
                let error = await larderError { try await app.pages(orderList).all() }
                #expect(server.requests.count == before + 1)
                #expect(error?.code == .serverErrors)
                if refused == 429 { #expect(error?.remedy == .tryAgain(after: .seconds(7))) }
                #expect(desk.requests == ["/1000"])
            }
            status.withLock { $0 = 200 }
            #expect(try await app.pages(orderList).all().objectCount == 6)
            #expect(desk.requests == ["/1000", "a/1000"])
        }
    }

    @Test("An old token that the server refuses by the status of the request is renewed", arguments: [400, 422])
    func refusedByStatus(status: Int) async throws {
        let desk = OrderDesk(["": OrderDesk.tokenPage(1...3, next: "a"), "a": OrderDesk.tokenPage(4...6, next: nil)])
        let server = ScriptedServer(nil, search: nil) { _, _, request in
            let body = await desk.answer(request)
            return GraphQLAnswer(body: Array(body.utf8), status: body.contains("expired") ? status : 200)
        }
        try await withStoreFixture(server, schema: orderSchema) { app in
            _ = try await app.pages(orderList).next()
            desk.removePage(at: "a")
            desk.set(OrderDesk.tokenPage(1...3, next: "c"), at: "")
            desk.set(OrderDesk.tokenPage(4...6, next: nil), at: "c")
            #expect(try await app.pages(orderList).all().objectCount == 6)
            #expect(desk.requests == ["/1000", "a/1000", "/1000", "c/1000"])
        }
    }

    @Test("Pages renew an old token of a nested list when the server's error names the list's path")
    func refusedBelowObject() async throws {
        func page(_ ids: ClosedRange<Int>, next: String?) -> String {
            let list = OrderDesk.tokenPage(ids, next: next).dropFirst(#""listOrders":"#.count)
            return #""depot":{"__typename":"Depot","id":"1","orders":\#(list)}"#
        }
        let desk = OrderDesk(["1": page(1...3, next: "a"), "a": page(4...6, next: nil)])
        let server = ScriptedServer { request in
            let answer = await desk.answer(request)
            guard answer.contains("expired") else { return answer }
            return #"{"data":{"depot":{"__typename":"Depot","id":"1","orders":null}},"#
                + #""errors":[{"message":"expired","path":["depot","orders"]}]}"#
        }
        let operation = GraphQLOperation(
            """
            query D($id: ID!, $limit: Int, $nextToken: String) {
              depot(id: $id) { orders(limit: $limit, nextToken: $nextToken) { items { sku } nextToken } }
            }
            """, variables: ["id": "1"])
        try await withStoreFixture(server, schema: orderSchema) { app in
            _ = try await app.pages(operation).next()
            desk.removePage(at: "a")
            desk.set(page(1...3, next: "c"), at: "1")
            desk.set(page(4...6, next: nil), at: "c")
            #expect(try await app.pages(operation).all().objectCount == 6)
            #expect(desk.requests == ["1/1000", "a/1000", "1/1000", "c/1000"])
        }
    }

    @Test(
        "An object that the server cannot tell of in full ends no list whose policy takes it",
        arguments: [
            ErrorPolicy.partial, .ignore,
        ])
    func partial(policy: ErrorPolicy) async throws {
        let desk = OrderDesk([:])
        let answers = Mutex([
            "": #"{"data":{\#(OrderDesk.tokenPage(1...3, next: "a"))}}"#,
            "a": #"{"data":{"listOrders":{"__typename":"OrderList","#
                + #""items":[{"__typename":"Order","id":"4","sku":null}],"nextToken":"b"}},"#
                + #""errors":[{"message":"no","path":["listOrders","items",0,"sku"]}]}"#,
            "b": #"{"data":{\#(OrderDesk.tokenPage(5...6, next: nil))}}"#,
        ])
        let server = ScriptedServer(nil, search: nil) { _, _, request in
            let token = (request.values["nextToken"] as? String) ?? ""
            _ = await desk.answer(request)
            let text =
                answers.withLock { $0[token] } ?? #"{"data":{"listOrders":null},"errors":[{"message":"expired"}]}"#
            return GraphQLAnswer(body: Array(text.utf8), status: 200)
        }
        try await withStoreFixture(server, schema: orderSchema) { app in
            let pages = try app.pages(orderList, options: FetchOptions(errorPolicy: policy))
            #expect(try await pages.all() == PagesStatus(pageCount: 3, objectCount: 6, isComplete: true))
            #expect(try pages.page(1)?.objects.count == 1)
            // A refused token is told from what the policy takes.
            _ = try await app.pages(orderList).refresh()
            answers.withLock { answers in
                answers["a"] = nil
                answers[""] = #"{"data":{\#(OrderDesk.tokenPage(1...3, next: "c"))}}"#
                answers["c"] = #"{"data":{\#(OrderDesk.tokenPage(4...6, next: nil))}}"#
            }
            let later = try app.pages(orderList, options: FetchOptions(errorPolicy: policy))
            #expect(try await later.all() == PagesStatus(pageCount: 2, objectCount: 6, isComplete: true))
        }
    }

    @Test("Empty pages without an end are an error, and the next call goes on")
    func endless() async throws {
        let asked = Atomic(0)
        let server = ScriptedServer { _ in
            let number = asked.add(1, ordering: .relaxed).newValue
            let isEnd = number == 1_004
            return #"{"data":{\#(OrderDesk.tokenPage(isEnd ? [1, 2] : [], next: isEnd ? nil : "t\(number)"))}}"#
        }
        try await withStoreFixture(server, schema: orderSchema) { app in
            let pages = try app.pages(orderList)
            #expect(await larderError { try await pages.all() }?.code == .paging)
            #expect(try await pages.status().pageCount == 1_001)
            #expect(try await pages.all().objectCount == 2)
        }
    }

    @Test("Empty pages are counted anew after one that is not, and a thousand of them in a row are gone past")
    func emptyInARow() async throws {
        let asked = Atomic(0)
        let server = ScriptedServer { _ in
            let number = asked.add(1, ordering: .relaxed).newValue
            let isEnd = number == 1_003
            let ids = number == 1_001 || isEnd ? [number] : []
            return #"{"data":{\#(OrderDesk.tokenPage(ids, next: isEnd ? nil : "t\(number)"))}}"#
        }
        try await withStoreFixture(server, schema: orderSchema) { app in
            let status = try await app.pages(orderList).all()
            #expect(status == PagesStatus(pageCount: 1_003, objectCount: 2, isComplete: true))
        }
    }

    @Test("A first page by offset that is the same again keeps the pages behind it")
    func sameAgain() async throws {
        try await withList(Array(1...7)) { (operation, _, app, _) async throws in
            let status = try await app.pages(operation).refresh()
            #expect(status == PagesStatus(pageCount: 3, objectCount: 7, isComplete: true))
        }
    }
}
