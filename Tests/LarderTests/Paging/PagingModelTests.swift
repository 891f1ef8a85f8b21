import Foundation
import Larder
import LarderTestSupport
import Synchronization
import Testing

/// A list of orders in ascending order of their numbers, three to a page, by tokens that say where a page begins.
private final class OrderBook: Sendable {
    static let pageSize = 3
    private let rows = Mutex<[Int]>([])

    init(_ ids: [Int]) { rows.withLock { $0 = ids } }

    var ids: [Int] { rows.withLock { $0 } }

    func insert(_ id: Int) { rows.withLock { $0 = Set($0 + [id]).sorted() } }
    func remove(_ id: Int) { rows.withLock { $0.removeAll { $0 == id } } }

    /// What a page beginning after an order has, and the order after which the next one begins.
    func page(after last: Int?) -> (ids: [Int], next: Int?) {
        let rest = ids.filter { $0 > last ?? -1 }
        let page = Array(rest.prefix(Self.pageSize))
        return (page, rest.count > page.count ? page.last : nil)
    }

    var transport: ScriptedServer {
        ScriptedServer { [self] (request: GraphQLRequest) in
            if let id = request.values["add"] as? Int {
                insert(id)
                return #"{"data":{"add":\#(OrderDesk.object(id))}}"#
            }
            if let id = request.values["drop"] as? Int {
                remove(id)
                return #"{"data":{"drop":\#(OrderDesk.object(id))}}"#
            }
            let page = page(after: (request.values["nextToken"] as? String).flatMap { Int($0) })
            return #"{"data":{\#(OrderDesk.tokenPage(page.ids, next: page.next.map { "\($0)" }))}}"#
        }
    }
}

private let schema = """
    type Query @fieldPolicy(forField: "listOrders", paginationArgs: "limit nextToken") {
      listOrders(limit: Int, nextToken: String): OrderList
    }
    type Mutation { add(add: Int!): Order drop(drop: Int!): Order }
    type Order { id: ID! sku: String }
    type OrderList { items: [Order] nextToken: String }
    """
private let list = GraphQLOperation(
    "query L($nextToken: String) { listOrders(limit: 3, nextToken: $nextToken) { items { id sku } nextToken } }")

/// What a cache has to have of a list, as dictionaries of pages and of times say.
private struct BookModel {
    /// By the token of a page, "" for the first: its orders, the token of the next page, and when it came.
    var pages: [String: (ids: [Int], next: String?, time: Int64)] = [:]
    /// When each order came.
    var times: [Int: Int64] = [:]

    /// The tokens of the pages that follow each other from the first on.
    var chain: [String] {
        var found: [String] = []
        var token: String? = ""
        while let here = token, let page = pages[here], !found.contains(here) {
            found.append(here)
            token = page.next
        }
        return found
    }

    var ids: [Int] { chain.flatMap { pages[$0]?.ids ?? [] } }
    /// The token of the page that is to be loaded next; nil at the end.
    var next: String? { chain.last.map { pages[$0]?.next } ?? "" }

    mutating func came(_ token: String, _ book: OrderBook, at now: Int64) {
        let page = book.page(after: Int(token))
        pages[token] = (page.ids, page.next.map { "\($0)" }, now)
        for id in page.ids { times[id] = now }
    }

    mutating func insert(_ id: Int) {
        guard !ids.contains(id) else { return }
        for token in chain {
            guard let index = pages[token]?.ids.firstIndex(where: { $0 > id }) else { continue }
            pages[token]?.ids.insert(id, at: index)
            return
        }
        if next == nil, let last = chain.last { pages[last]?.ids.append(id) }
    }

    mutating func remove(_ id: Int) {
        for token in chain { pages[token]?.ids.removeAll { $0 == id } }
    }

    /// How old the oldest part of a page is; nil where a part is from the future.
    func age(of token: String, at now: Int64) -> Duration? {
        guard let page = pages[token] else { return nil }
        let all = [page.time] + page.ids.compactMap { times[$0] }
        guard let oldest = all.min(), all.allSatisfy({ $0 <= now + 60 }) else { return nil }
        return .seconds(max(0, now - oldest))
    }
}

@Suite("Lists, ages and bounds at random", .timeLimit(.minutes(10)))
struct PagingModelTests {
    private final class Run {
        private let folder: URL
        private var random: SeededNumbers
        private let book = OrderBook((0..<20).map { 100 + $0 * 40 })
        private let clock = TestClock()
        private var store: Store
        private var app: Partition
        private var model = BookModel()
        private var states: PagesWatch.Iterator?
        private var seen: [Int]?
        private var isPinned = false

        init(_ folder: URL, seed: UInt64) throws {
            self.folder = folder
            random = SeededNumbers(seed: seed)
            (store, app) = try Self.open(folder, book, clock)
        }

        private static func open(
            _ folder: URL, _ book: OrderBook, _ clock: TestClock
        ) throws -> (Store, Partition) {
            var options = Store.Options()
            options.silence()
            options.now = { clock.now }
            let store = try Store.open(at: folder, schema: try Schema(parsing: schema), options: options)
            return (store, try store.partition(transport: book.transport))
        }

        private func number(_ count: Int) -> Int { Int(random.next() % UInt64(count)) }
        private var now: Int64 { Int64(clock.now.timeIntervalSince1970) }

        func step() async throws {
            let pages = try app.pages(list)
            switch number(14) {
            case 0...2:
                let next = model.next
                #expect((try await pages.next() == nil) == (next == nil))
                if let next { model.came(next, book, at: now) }
            case 3: try await loadAll()
            case 4:
                try await pages.refresh()
                model.came("", book, at: now)
            case 5, 6: try await change(pages, 100 + number(800), isNew: true)
            case 7:
                guard let id = model.ids.isEmpty ? nil : model.ids[number(model.ids.count)] else { return }
                try await change(pages, id, isNew: false)
            case 8:
                try await app.pin(named: "list", list)
                isPinned = true
            case 9:
                try await app.unpin(named: "list")
                isPinned = false
            case 10: (states, seen) = (states == nil ? try pages.watch().makeAsyncIterator() : nil, nil)
            case 11:
                let seconds = Int64(number(3) == 0 ? -number(4000) : number(4000))
                clock.advance(by: .seconds(seconds))
            case 12: try await letGo()
            default:
                states = nil
                try store.close()
                (store, app) = try Self.open(folder, book, clock)
            }
            try await compare()
        }

        func loadAll() async throws {
            try await app.pages(list).all(startingOver: true)
            var token: String? = ""
            while let here = token {
                model.came(here, book, at: now)
                token = model.pages[here]?.next
            }
            #expect(model.ids == book.ids)
        }

        /// A mutation that puts an order into the list, or takes one out: it is seen at once, and the same afterwards.
        private func change(_ pages: Pages, _ id: Int, isNew: Bool) async throws {
            let name = isNew ? "add" : "drop"
            let operation = GraphQLOperation(
                "mutation M($\(name): Int!) { \(name)(\(name): $\(name)) { id sku } }",
                variables: [name: .int(Int64(id))])
            let change =
                isNew
                ? try pages.inserting("Order:\(id)", at: .ascending(field: "id")) : try pages.removing("Order:\(id)")
            let response: Value = [name: ["__typename": "Order", "id": .string("\(id)"), "sku": .string("s\(id)")]]
            try await app.enqueue(
                operation, options: MutationOptions(optimisticResponse: response, listChanges: [change]))
            if isNew { model.insert(id) } else { model.remove(id) }
            #expect(try await shown() == model.ids)
            try await MutationRunner(app).drain()
            model.times[id] = now
        }

        /// Lets go of what is old, and of garbage.
        private func letGo() async throws {
            if var states {
                // Until the watcher has come to all pages, they are not watched.
                while seen != model.ids {
                    guard let state = await states.next() else { break }
                    seen = state.objects.compactMap { $0["id"]?.string.flatMap { Int($0) } }
                }
                self.states = states
            }
            let needed = isPinned || states != nil ? model.chain : []
            let maxAge = Int64(number(3000))
            let isTight = number(4) == 0
            _ = try? await app.evict(maxBytes: isTight ? 0 : nil, maxAge: .seconds(maxAge))
            _ = try await app.collectGarbage()
            for (token, page) in model.pages {
                let isThere = try content(token) != nil
                if needed.contains(token) {
                    #expect(isThere, "page \(token) is needed")
                } else if page.time < now - maxAge {
                    #expect(!isThere, "page \(token) came too long ago")
                } else if !isTight, page.ids.allSatisfy({ model.times[$0] ?? 0 >= now - maxAge }) {
                    #expect(isThere, "page \(token) is young")
                }
                if !isThere { model.pages[token] = nil }
            }
        }

        /// What the cache has of a page; nil where something of it is not there.
        private func content(_ token: String) throws -> (ids: [Int], age: Duration?)? {
            var operation = list
            if !token.isEmpty { operation.variables["nextToken"] = .string(token) }
            let response = try app.read(operation, allowsPartial: true)
            guard response.isComplete else { return nil }
            let items = response["listOrders"]?["items"]?.elements ?? []
            return (items.compactMap { $0["id"]?.string.flatMap { Int($0) } }, response.age)
        }

        private func shown() async throws -> [Int] {
            try await app.pages(list).skus().compactMap { Int($0.dropFirst()) }
        }

        private func compare() async throws {
            let shown = try await shown()
            #expect(shown == model.ids)
            #expect(Set(shown).count == shown.count, "an object is shown twice")
            let chain = Set(model.chain)
            for token in model.pages.keys {
                let content = try content(token)
                if chain.contains(token) {
                    #expect(content?.ids == model.pages[token]?.ids)
                    #expect(content?.age == model.age(of: token, at: now))
                } else {
                    // What is no part of the list may have been changed as such.
                    if let content { model.pages[token]?.ids = content.ids } else { model.pages[token] = nil }
                }
            }
            #expect(try app.records.check().problems == [])
        }

        func finish() async throws {
            try await loadAll()
            try await compare()
            try store.close()
            try expectSound(folder)
        }
    }

    @Test("A list is what a model says, whatever is loaded, changed, pinned, watched, let go of and reopened")
    func random() async throws {
        for index in 0..<6 {
            let seed = TestSeed.of("paging model", index)
            try await withTemporaryFolder { folder in
                let run = try Run(folder, seed: seed)
                for step in 0..<60 {
                    do { try await run.step() } catch {
                        Issue.record("seed \(seed), step \(step): \(error)")
                        throw error
                    }
                }
                try await run.finish()
            }
        }
    }
}
