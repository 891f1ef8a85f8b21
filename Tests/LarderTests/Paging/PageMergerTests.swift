import Larder
import LarderTestSupport
import Synchronization
import Testing

private let schema = """
    type Query { feed(before: Int): Feed }
    type Feed { stories: [Story] oldest: Int }
    type Story { id: ID! sku: String }
    """
private let feed = GraphQLOperation("query F($before: Int) { feed(before: $before) { stories { sku } oldest } }")
private let merger = PageMerger(
    elements: ["feed", "stories"],
    next: { page, _ in page["feed"]?["oldest"]?.int.map { ["before": .int($0)] } })

private func page(_ ids: [Int], oldest: Int?) -> String {
    let stories = ids.map { #"{"__typename":"Story","id":"\#($0)","sku":"s\#($0)"}"# }.joined(separator: ",")
    return #""feed":{"__typename":"Feed","stories":[\#(stories)],"oldest":\#(oldest.map { "\($0)" } ?? "null")}"#
}

@Suite("Pages that a program merges itself", .timeLimit(.minutes(10)))
struct PageMergerTests {
    private static let three = [
        "": page([9, 8], oldest: 8), "8": page([8, 7, 6], oldest: 6), "6": page([5], oldest: nil),
    ]

    @Test("The merger leads from page to page, objects that come again are left out, and a restart goes on")
    func loads() async throws {
        let desk = OrderDesk(Self.three)
        try await withTemporaryFolder { folder in
            for (count, loaded) in [(3, 4), (.max, 5)] {
                let store = try Store.open(at: folder, schema: try Schema(parsing: schema))
                let pages = try store.partition(server: desk.transport).pages(feed, merger: merger)
                #expect(try await pages.all(upTo: count).objectCount == loaded)
                if loaded == 5 { #expect(try await pages.skus() == skus([9, 8, 7, 6, 5])) }
                try store.close()
            }
        }
        #expect(desk.requests == ["/-", "8/-", "6/-"])
    }

    @Test("A list goes backward where the merger says how")
    func backward() async throws {
        let desk = OrderDesk(["": page([4, 5], oldest: 4), "4": page([2, 3], oldest: 2), "2": page([1], oldest: nil)])
        let backward = PageMerger(
            elements: ["feed", "stories"],
            previous: { page, _ in page["feed"]?["oldest"]?.int.map { ["before": .int($0)] } }, next: { _, _ in nil })
        try await withStoreFixture(desk.transport, schema: schema) { app in
            let pages = try app.pages(feed, merger: backward)
            while try await pages.previous() != nil {}
            #expect(try await pages.skus() == skus(1...5))
        }
    }

    @Test("A merger is given the variables with which each page was requested")
    func goesOnByVariables() async throws {
        let desk = OrderDesk([
            "": page([9], oldest: 0), "1": page([8], oldest: 0), "2": page([7], oldest: nil),
        ])
        let counting = PageMerger(elements: ["feed", "stories"]) { page, variables in
            guard page["feed"]?["oldest"]?.int != nil else { return nil }
            guard case .int(let number)? = variables["before"] else { return ["before": 1] }
            return ["before": .int(number + 1)]
        }
        try await withStoreFixture(desk.transport, schema: schema) { app in
            let pages = try app.pages(feed, merger: counting)
            #expect(try await pages.all().isComplete)
            #expect(try await pages.skus() == skus([9, 8, 7]))
        }
    }

    @Test("The variables of a merger go before those of the operation, which are the first page's")
    func goesBeforeOperation() async throws {
        let desk = OrderDesk(["10": page([9, 8], oldest: 8), "8": page([7], oldest: nil)])
        var operation = feed
        operation.variables = ["before": 10]
        try await withStoreFixture(desk.transport, schema: schema) { app in
            let pages = try app.pages(operation, merger: merger)
            #expect(try await pages.all().isComplete)
            #expect(try await pages.skus() == skus([9, 8, 7]))
            #expect(desk.requests == ["10/-", "8/-"])
        }
    }

    @Test("A merger that leads back is an error, and the pages stay")
    func circle() async throws {
        let desk = OrderDesk(["": page([9], oldest: 8), "8": page([7], oldest: 8)])
        try await withStoreFixture(desk.transport, schema: schema) { app in
            let pages = try app.pages(feed, merger: merger)
            #expect(await larderError { try await pages.all() }?.code == .paging)
            #expect(try await pages.skus() == skus([9, 7]))
        }
    }

    @Test("A watcher of the list sees the pages to which the merger leads")
    func watches() async throws {
        let desk = OrderDesk(Self.three)
        try await withStoreFixture(desk.transport, schema: schema) { app in
            let pages = try app.pages(feed, merger: merger)
            try await pages.all()
            var states = try pages.watch(.whenComplete).makeAsyncIterator()
            #expect(await states.next()?.objects.compactMap { $0["sku"]?.string } == skus([9, 8, 7, 6, 5]))
        }
    }

    @Test("A place that is no list of objects is refused", arguments: [["feed"], ["feed", "oldest"], ["nothing"], []])
    func refuses(place: [String]) async throws {
        try await withStoreFixture(schema: schema) { app in
            let error = await larderError {
                try app.pages(feed, merger: PageMerger(elements: place, next: { _, _ in nil }))
            }
            #expect(error?.code == .operation)
        }
    }

    @Test("Only a query has pages, whatever leads from one to the next")
    func onlyQueries() async throws {
        let refresh = GraphQLOperation("mutation { refresh { stories { sku } } }")
        let own = PageMerger(elements: ["refresh", "stories"], next: { _, _ in nil })
        try await withStoreFixture(schema: schema + "type Mutation { refresh: Feed }") { app in
            #expect(await larderError { try app.pages(refresh, merger: own) }?.code == .operation)
        }
    }

    @Test("Variables that a merger does not say stay as the operation has them")
    func keepsOtherVariables() async throws {
        let desk = OrderDesk(Self.three)
        let limited = GraphQLOperation(
            "query F($before: Int, $limit: Int) { feed(before: $before, limit: $limit) { stories { sku } oldest } }",
            variables: ["limit": 2])
        let limiting = schema.replacing("before: Int", with: "before: Int, limit: Int")
        try await withStoreFixture(desk.transport, schema: limiting) { app in
            try await app.pages(limited, merger: merger).all()
        }
        #expect(desk.requests == ["/2", "8/2", "6/2"])
    }

    @Test("A merger is not asked what is before a page to which it has led onward")
    func asksBeforeFirstAlone() async throws {
        let desk = OrderDesk(Self.three)
        let asked = Mutex<[Bool]>([])
        let both = PageMerger(
            elements: ["feed", "stories"],
            previous: { _, variables in
                asked.withLock { $0.append(variables["before"] == nil) }
                return nil
            }, next: { page, _ in page["feed"]?["oldest"]?.int.map { ["before": .int($0)] } })
        try await withStoreFixture(desk.transport, schema: schema) { app in
            try await app.pages(feed, merger: both).all()
        }
        let isOfFirst = asked.withLock { $0 }
        #expect(!isOfFirst.isEmpty && isOfFirst.allSatisfy { $0 })
    }

    @Test("A typed operation is paged by the merger that the program gives with it")
    func typed() async throws {
        struct Feed: TypedOperation {
            struct Data: Decodable, Sendable {}
            var operation: GraphQLOperation { feed }
        }
        let desk = OrderDesk(Self.three)
        try await withStoreFixture(desk.transport, schema: schema) { app in
            let pages = try app.pages(Feed(), merger: merger)
            try await pages.all()
            #expect(try await pages.skus() == skus([9, 8, 7, 6, 5]))
        }
    }

    @Test("A merger goes before the policy that a list has in the schema")
    func goesBeforePolicy() async throws {
        let desk = OrderDesk(["": OrderDesk.tokenPage([1], next: "a"), "z": OrderDesk.tokenPage([2], next: nil)])
        let own = PageMerger(elements: ["listOrders", "items"]) { page, _ in
            page["listOrders"]?["nextToken"]?.string == nil ? nil : ["nextToken": "z"]
        }
        try await withStoreFixture(desk.transport, schema: orderSchema) { app in
            let pages = try app.pages(orderList, merger: own)
            #expect(try await pages.all().objectCount == 2)
            #expect(try await pages.skus() == skus([1, 2]))
        }
        #expect(desk.requests == ["/-", "z/-"])
    }
}
