import Foundation
import Larder
import LarderTestSupport
import Synchronization
import Testing

@Suite("Pages of a list", .timeLimit(.minutes(10)))
struct PagesTests {
    private static let three = [
        "": OrderDesk.tokenPage(1...3, next: "a"), "a": OrderDesk.tokenPage(4...6, next: "b"),
        "b": OrderDesk.tokenPage(7...8, next: nil),
    ]

    @Test("What has gone from the cache since it was loaded is asked for again", arguments: [false, true])
    func gone(isDeleted: Bool) async throws {
        let pages = ["": OrderDesk.tokenPage(1...3, next: "a"), "a": OrderDesk.tokenPage(4...6, next: nil)]
        try await withPages(pages) { (pages, desk, app) async throws in
            #expect(try await pages.all().objectCount == 6)
            try await app.remove("Order:5", as: isDeleted ? .deleted : .evicted)
            #expect(try await pages.atLeast(6).objectCount == (isDeleted ? 5 : 6))
            #expect(desk.requests.count == (isDeleted ? 2 : 3))
            try await app.evict(maxBytes: nil, maxAge: .zero)
            _ = try? await app.evict(maxBytes: 0)
            #expect(try await pages.all() == PagesStatus(pageCount: 2, objectCount: 6, isComplete: true))
            #expect(try await pages.skus() == skus(1...6))
        }
    }

    @Test("All pages are asked for one after the other, as large as the policy allows")
    func loadsAll() async throws {
        try await withPages(Self.three) { (pages, desk, _) async throws in
            let seen = Mutex<[PagesStatus]>([])
            let status = try await pages.all { status in seen.withLock { $0.append(status) } }
            #expect(status == PagesStatus(pageCount: 3, objectCount: 8, isComplete: true))
            #expect(seen.withLock { $0.map(\.objectCount) } == [3, 6, 8])
            #expect(desk.requests == ["/1000", "a/1000", "b/1000"])
            #expect(try await pages.skus() == skus(1...8))
        }
    }

    @Test("One page after the other is loaded as large as the program says, until the list ends")
    func loadsNext() async throws {
        try await withPages(Self.three, orderList, ["limit": 3]) { (pages, desk, _) async throws in
            #expect(try await pages.next()?.skus == skus(1...3))
            #expect(try await pages.next()?.skus == skus(4...6))
            #expect(try await pages.next()?.skus == skus(7...8))
            #expect(try await pages.next() == nil)
            #expect(desk.requests == ["/3", "a/3", "b/3"])
        }
    }

    @Test("The status tells what is loaded while a page is under way")
    func statusMeanwhile() async throws {
        try await withPages(Self.three) { (pages, desk, _) async throws in
            let (isAsked, isTold) = (Flag(), Flag())
            desk.hold { token in
                guard token == "a" else { return }
                isAsked.set()
                await isTold.wait()
            }
            async let all = pages.all()
            await isAsked.wait()
            #expect(try await pages.status() == PagesStatus(pageCount: 1, objectCount: 3))
            isTold.set()
            #expect(try await all.objectCount == 8)
        }
    }

    @Test("Each page stays readable by itself")
    func readsAlone() async throws {
        try await withPages(Self.three) { (pages, _, app) async throws in
            try await pages.all()
            var second = orderList
            second.variables = ["limit": 1000, "nextToken": "a"]
            #expect(try app.read(second)["listOrders"]?["items"]?.count == 3)
        }
    }

    @Test("A store that is opened again goes on after the last page that it has")
    func resumes() async throws {
        let desk = OrderDesk(Self.three)
        try await withTemporaryFolder { folder in
            let schema = try Schema(parsing: orderSchema)
            for (count, loaded) in [(3, 3), (4, 6), (.max, 8)] {
                let store = try Store.open(at: folder, schema: schema)
                let pages = try store.partition(server: desk.transport).pages(orderList)
                #expect(try await pages.all(upTo: count).objectCount == loaded)
                try store.close()
            }
        }
        #expect(desk.requests == ["/1000", "a/1000", "b/1000"])
    }

    @Test("A list whose last token has expired is loaded anew")
    func startsOver() async throws {
        try await withPages(Self.three) { (pages, desk, app) async throws in
            try await pages.all(upTo: 4)
            desk.removePage(at: "a")
            desk.removePage(at: "b")
            desk.set(OrderDesk.tokenPage(1...3, next: "c"), at: "")
            desk.set(OrderDesk.tokenPage(4...9, next: nil), at: "c")
            let later = try app.pages(orderList)
            #expect(try await later.all() == PagesStatus(pageCount: 2, objectCount: 9, isComplete: true))
            #expect(desk.requests == ["/1000", "a/1000", "b/1000", "a/1000", "/1000", "c/1000"])
        }
    }

    @Test("An error that passes leaves the pages of an earlier run in their places")
    func goesOn() async throws {
        try await withPages(Self.three) { (pages, desk, app) async throws in
            try await pages.all(upTo: 4)
            let before = desk.requests
            desk.removePage(at: "b")
            desk.hold { [three = Self.three] _ in
                // The server is itself again when it is asked for the second time.
                if desk.requests.count == before.count + 2 { desk.set(three["b", default: ""], at: "b") }
            }
            let status = try await app.pages(orderList).all()
            #expect(status.pageCount == 3)
            #expect(status.isComplete)
            #expect(desk.requests == before + ["b/1000", "a/1000", "b/1000"])
        }
    }

    @Test("A page that the server refuses however it is asked for leaves the pages before it, in each run")
    func lastingError() async throws {
        try await withPages(Self.three) { (pages, desk, app) async throws in
            desk.removePage(at: "b")
            #expect(await larderError { try await pages.all() }?.code == .serverErrors)
            let before = desk.requests
            for _ in 0..<2 {
                let later = try app.pages(orderList)
                #expect(await larderError { try await later.all() }?.code == .serverErrors)
                #expect(try await later.status() == PagesStatus(pageCount: 2, objectCount: 6))
            }
            #expect(desk.requests == before + ["b/1000", "a/1000", "b/1000", "b/1000", "a/1000", "b/1000"])
        }
    }

    @Test("An old token that leads nowhere any more is renewed by the page that had it")
    func renewsToken() async throws {
        try await withPages(Self.three) { (pages, desk, app) async throws in
            try await pages.all(upTo: 4)
            let before = desk.requests
            desk.removePage(at: "b")
            desk.set(OrderDesk.tokenPage(4...6, next: "c"), at: "a")
            desk.set(OrderDesk.tokenPage(7...9, next: nil), at: "c")
            #expect(try await app.pages(orderList).all().objectCount == 9)
            #expect(desk.requests == before + ["b/1000", "a/1000", "c/1000"])
        }
    }

    /// Loads a list that another process begins anew when the page of one of these tokens is asked for. The new first
    /// page leads to the token that stands beside it.
    private func expectWhole(
        begunAnewAt next: [String: String], sourceLocation: SourceLocation = #_sourceLocation
    ) async throws {
        try await withPages(Self.three) { (pages, desk, app) async throws in
            desk.hold { token in
                guard let other = next[token] else { return }
                desk.set(OrderDesk.tokenPage(0...2, next: other), at: "")
                desk.set(OrderDesk.tokenPage(3...9, next: nil), at: other)
                // As another process that is killed before the second page.
                await #expect(throws: Never.self, sourceLocation: sourceLocation) {
                    try await app.pages(orderList).refresh()
                }
            }
            let whole = PagesStatus(pageCount: 2, objectCount: 10, isComplete: true)
            #expect(try await pages.all() == whole, sourceLocation: sourceLocation)
            #expect(try await app.pages(orderList).status() == whole, sourceLocation: sourceLocation)
        }
    }

    @Test("A list that another begins anew meanwhile is loaded to its end")
    func begunAnew() async throws { try await expectWhole(begunAnewAt: ["b": "x"]) }

    @Test("A list that others begin anew twice meanwhile is loaded to its end")
    func begunAnewTwice() async throws { try await expectWhole(begunAnewAt: ["b": "x", "x": "y"]) }

    @Test("A list that goes backward and that another begins anew meanwhile is loaded to its beginning")
    func begunAnewBackward() async throws {
        let old = [
            "": OrderDesk.connectionPage(5...6, previous: "x"), "x": OrderDesk.connectionPage(1...4),
        ]
        var backward = orderConnection
        backward.variables = ["last": 2]
        try await withPages(old, backward) { [backward] (pages, desk, app) async throws in
            desk.hold { cursor in
                guard cursor == "x" else { return }
                desk.set(OrderDesk.connectionPage(7...8, previous: "y"), at: "")
                desk.set(OrderDesk.connectionPage(1...6), at: "y")
                await #expect(throws: Never.self) { try await app.pages(backward).refresh() }
            }
            #expect(try await pages.all() == PagesStatus(pageCount: 2, objectCount: 8, isComplete: true))
            #expect(try await pages.skus() == skus(1...8))
        }
    }

    @Test("An old token whose page the server has no time for starts nothing over")
    func busyRenewal() async throws {
        let desk = OrderDesk(Self.three)
        let isFailing = Flag()
        let server = ScriptedServer { request in
            let answer = await desk.answer(request)
            guard isFailing.isSet, desk.requests.last == "a/1000" else { return answer }
            return #"{"data":null,"errors":[{"message":"m","extensions":{"code":"THROTTLED"}}]}"#
        }
        try await withStoreFixture(server, schema: orderSchema) { app in
            try await app.pages(orderList).all(upTo: 4)
            let before = desk.requests
            desk.removePage(at: "b")
            isFailing.set()
            let later = try app.pages(orderList)
            #expect(await larderError { try await later.all() }?.code == .serverErrors)
            #expect(desk.requests == before + ["b/1000", "a/1000"])
            #expect(try await later.status() == PagesStatus(pageCount: 2, objectCount: 6))
        }
    }

    @Test(
        "An error that says nothing of an old token starts nothing over",
        arguments: [
            #"{"message":"m","path":["listOrders","items"]}"#, #"{"message":"m","extensions":{"code":"THROTTLED"}}"#,
            #"{"message":"m","extensions":{"code":"INTERNAL_SERVER_ERROR"}}"#,
            #"{"message":"m","extensions":{"code":"UNAUTHENTICATED"}}"#,
        ])
    func otherErrors(error: String) async throws {
        let desk = OrderDesk(Self.three)
        let isFailing = Flag()
        let server = ScriptedServer { request in
            let answer = await desk.answer(request)
            return isFailing.isSet ? #"{"data":{"listOrders":null},"errors":[\#(error)]}"# : answer
        }
        try await withStoreFixture(server, schema: orderSchema) { app in
            _ = try await app.pages(orderList).next()
            isFailing.set()
            #expect(await larderError { try await app.pages(orderList).all() } != nil)
            #expect(desk.requests == ["/1000", "a/1000"])
        }
    }

    @Test("A token that the server has just sent and refuses is an error, and the pages stay")
    func failsOnce() async throws {
        try await withPages(["": OrderDesk.tokenPage(1...3, next: "gone")]) { (pages, desk, _) async throws in
            #expect(await larderError { try await pages.all() }?.code == .serverErrors)
            #expect(try await pages.status() == PagesStatus(pageCount: 1, objectCount: 3))
            #expect(desk.requests.count == 2)
        }
    }

    @Test("Objects on overlapping pages appear once")
    func overlaps() async throws {
        let pages = [
            "": OrderDesk.tokenPage([1, 2, 2, 3], next: "a"), "a": OrderDesk.tokenPage(2...5, next: nil),
        ]
        try await withPages(pages) { (pages, _, _) async throws in
            #expect(try await pages.all().objectCount == 5)
            #expect(try await pages.skus() == skus(1...5))
        }
    }

    @Test("Null items are left out")
    func leavesOutNull() async throws {
        let page =
            #""listOrders":{"__typename":"OrderList","items":[null,\#(OrderDesk.object(1)),null],"nextToken":""}"#
        try await withPages(["": page]) { (pages, _, _) async throws in
            #expect(try await pages.all() == PagesStatus(pageCount: 1, objectCount: 1, isComplete: true))
        }
    }

    @Test("A list that is null has no objects and no further page")
    func endsAtNull() async throws {
        try await withPages(["": #""listOrders":null"#]) { (pages, _, _) async throws in
            #expect(try await pages.all() == PagesStatus(pageCount: 1, objectCount: 0, isComplete: true))
        }
    }

    @Test(
        "A page that repeats its own token, and tokens in a circle, are errors", arguments: [["a"], ["a", "b", "c"]])
    func endsCircles(tokens: [String]) async throws {
        var pages = ["": OrderDesk.tokenPage([0], next: tokens[0])]
        for (index, token) in tokens.enumerated() {
            pages[token] = OrderDesk.tokenPage([index + 1], next: tokens[(index + 1) % tokens.count])
        }
        try await withPages(pages) { (pages, desk, app) async throws in
            #expect(await larderError { try await pages.all() }?.code == .paging)
            let count = desk.requests.count
            #expect(count == Set(tokens).count + 1)
            // Asked for once more, the page leads back as before.
            #expect(await larderError { try await app.pages(orderList).all() }?.code == .paging)
            #expect(desk.requests.count == count + 1)
        }
    }

    @Test("After a token that led back, the next call follows the token that the server gives by then")
    func nextAfterCircle() async throws {
        let pages = ["": OrderDesk.tokenPage(1...3, next: "a"), "a": OrderDesk.tokenPage(4...6, next: "a")]
        try await withPages(pages) { (pages, desk, _) async throws in
            for _ in 0..<2 { #expect(try await pages.next() != nil) }
            #expect(await larderError { try await pages.next() }?.code == .paging)
            desk.set(OrderDesk.tokenPage(4...6, next: "b"), at: "a")
            desk.set(OrderDesk.tokenPage(7...8, next: "c"), at: "b")
            desk.set(OrderDesk.tokenPage(9...9, next: nil), at: "c")
            #expect(try await pages.next()?.skus == skus(7...8))
            #expect(try await pages.next()?.skus == skus(9...9))
            #expect(try await pages.next() == nil)
            #expect(try await pages.skus() == skus(1...9))
        }
    }

    @Test("Pages without matches are passed until there are enough")
    func passesEmptyPages() async throws {
        let pages = [
            "": OrderDesk.tokenPage([], next: "a"), "a": OrderDesk.tokenPage([1], next: "b"),
            "b": OrderDesk.tokenPage([], next: "c"), "c": OrderDesk.tokenPage([2, 3], next: "d"),
            "d": OrderDesk.tokenPage([4], next: nil),
        ]
        try await withPages(pages) { (pages, desk, _) async throws in
            #expect(try await pages.atLeast(2).objectCount == 3)
            #expect(desk.requests.count == 4)
            #expect(try await pages.atLeast(100) == PagesStatus(pageCount: 5, objectCount: 4, isComplete: true))
            #expect(try await pages.atLeast(-1).objectCount == 4)
        }
    }

    @Test("Pages without matches that follow each other are no page that comes again")
    func passesEmptyPagesInARow() async throws {
        let pages = [
            "": OrderDesk.tokenPage([], next: "a"), "a": OrderDesk.tokenPage([], next: "b"),
            "b": OrderDesk.tokenPage([1], next: nil),
        ]
        try await withPages(pages) { (pages, _, _) async throws in
            #expect(try await pages.all() == PagesStatus(pageCount: 3, objectCount: 1, isComplete: true))
        }
    }

    @Test("Refreshing keeps the pages that the new first page leads to, and counts those that it does not")
    func refreshes() async throws {
        try await withPages(Self.three) { (pages, desk, _) async throws in
            try await pages.all()
            desk.set(OrderDesk.tokenPage([0, 1, 2, 3], next: "a"), at: "")
            #expect(try await pages.refresh() == PagesStatus(pageCount: 3, objectCount: 9, isComplete: true))
            desk.set(OrderDesk.tokenPage([0, 1], next: "new"), at: "")
            #expect(try await pages.refresh() == PagesStatus(pageCount: 1, objectCount: 2, stalePageCount: 2))
            #expect(try await pages.skus() == skus(0...1))
        }
    }

    @Test("Starting over asks for every page again")
    func asksAgain() async throws {
        try await withPages(Self.three) { (pages, desk, _) async throws in
            try await pages.all()
            desk.set(OrderDesk.tokenPage([5], next: nil), at: "a")
            #expect(try await pages.all().objectCount == 8)
            #expect(desk.requests.count == 3)
            #expect(try await pages.all(startingOver: true).objectCount == 4)
            #expect(desk.requests.count == 5)
        }
    }

    @Test("Starting over that fails leaves the list as the cache has it")
    func failsToStartOver() async throws {
        try await withPages(Self.three) { (pages, desk, _) async throws in
            let whole = try await pages.all()
            desk.removePage(at: "a")
            #expect(await larderError { try await pages.all(startingOver: true) }?.code == .serverErrors)
            #expect(try await pages.status() == whole)
            #expect(try await pages.skus() == skus(1...8))
        }
    }

    @Test("A cancelled call keeps what it has loaded")
    func cancels() async throws {
        try await withPages(Self.three) { (pages, _, _) async throws in
            let task = Task { try await pages.all { _ in withUnsafeCurrentTask { $0?.cancel() } } }
            #expect(await larderError { try await task.value }?.code == .cancelled)
            #expect(try await pages.status() == PagesStatus(pageCount: 1, objectCount: 3))
        }
    }

    @Test("Calls that load at once load different pages")
    func loadsTogether() async throws {
        try await withPages(Self.three) { (pages, desk, _) async throws in
            let found = try await withThrowingTaskGroup(of: [String].self) { group in
                for _ in 0..<4 { group.addTask { try await pages.next()?.skus ?? [] } }
                return try await group.reduce(into: []) { $0 += $1 }
            }
            #expect(Set(found) == Set(skus(1...8)))
            #expect(found.count == 8)
            #expect(desk.requests.count == 3)
        }
    }

    @Test("A page that is not stored whole is asked for again")
    func asksForEvicted() async throws {
        try await withPages(Self.three) { (pages, desk, app) async throws in
            try await pages.all()
            try await app.remove("Order:5", as: .evicted)
            let later = try app.pages(orderList)
            #expect(try await later.status().pageCount == 1)
            #expect(try await later.all().objectCount == 8)
            #expect(desk.requests.last == "a/1000")
        }
    }

    @Test("Errors in place of a page's objects are thrown under every policy", arguments: ErrorPolicy.allCases)
    func lacksObjects(policy: ErrorPolicy) async throws {
        let server = ScriptedServer { _ in
            #"""
            {"data":{"listOrders":{"__typename":"OrderList","items":null,"nextToken":null}},
             "errors":[{"message":"no","path":["listOrders","items"]}]}
            """#
        }
        try await withStoreFixture(server, schema: orderSchema) { app in
            let pages = try app.pages(orderList, options: FetchOptions(errorPolicy: policy))
            let error = await larderError { try await pages.next() }
            #expect(error?.code == .serverErrors && error?.errors.map(\.message) == ["no"])
            #expect(error?.response?["listOrders"] != nil)
        }
    }

    @Test("A list whose variables have a temporary id is asked for by the real one, once that is known")
    func temporaryID() async throws {
        let server = ScriptedServer { request in
            request.kind == .mutation
                ? #"{"data":{"rename":{"__typename":"Order","id":"9","sku":"s9"}}}"#
                : "{\"data\":{\(OrderDesk.tokenPage([1], next: nil))}}"
        }
        try await withStoreFixture(server, schema: orderSchema) { app in
            let id = TemporaryObjectID()
            let renamed: Value = ["rename": ["__typename": "Order", "id": id.value, "sku": "s9"]]
            try await app.enqueue(
                GraphQLOperation("mutation { rename(id: 5) { sku } }"),
                options: MutationOptions(optimisticResponse: renamed, temporaryIDs: [id]))
            try await quickRunner(app).drain()
            let owned = GraphQLOperation(
                "query O($owner: String, $limit: Int, $nextToken: String) { listOrders(filter: {owner: $owner}, "
                    + "limit: $limit, nextToken: $nextToken) { items { sku } nextToken } }",
                variables: ["owner": id.value])
            #expect(try await app.pages(owned).all().objectCount == 1)
            #expect(server.requests.last?.values["owner"] as? String == "9")
        }
    }

    @Test("Of overlapping pages the one that was loaded first shows an object, though it comes later in the list")
    func firstLoaded() async throws {
        let pages = ["": OrderDesk.connectionPage(5...6, previous: "x"), "x": OrderDesk.connectionPage(4...5)]
        try await withPages(pages, orderConnection) { (pages, _, app) async throws in
            _ = try await pages.next()
            #expect(try await pages.previous()?.skus == skus([4]))
            _ = try await app.records.compact()
            #expect(try pages.page(0)?.skus == skus([4]))
            #expect(try pages.page(1)?.skus == skus(5...6))
        }
    }

    @Test("Progress is told after each page that is loaded for a number of objects, and an empty list is not complete")
    func progressOfAtLeast() async throws {
        try await withPages(Self.three) { (pages, _, _) async throws in
            let before = try await pages.status()
            #expect(before == PagesStatus())
            let seen = Mutex<[Int]>([])
            try await pages.atLeast(4) { status in seen.withLock { $0.append(status.objectCount) } }
            #expect(seen.withLock { $0 } == [3, 6])
        }
    }
}
