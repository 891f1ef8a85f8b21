import Foundation
import Larder
import LarderTestSupport
import Synchronization
import Testing

/// Servers that answer as they please: tokens that lead anywhere, pages of any length, objects that come twice, answers
/// that do not fit.
@Suite("Lists of servers that lie", .timeLimit(.minutes(10)))
struct LyingServerTests {
    /// What may come of a call.
    private static let expected: Set<String> = [
        "larder.paging", "larder.serverErrors", "larder.miss", "larder.partial", "records.responseMalformed",
        "records.responseMismatch", "larder.responseMalformed", "larder.responseMismatch", "records.full",
    ]
    /// As JSON writes them.
    private static let tokens = ["a", "b", "c", #"\u0001"#, #"\""#, "ä\u{301}", "null", "0", " "]

    private enum Kind: CaseIterable, Sendable { case tokens, connection, offset, number }

    private static func operation(_ kind: Kind) -> GraphQLOperation {
        switch kind {
        case .tokens: return orderList
        case .connection: return orderConnection
        case .offset:
            var operation = ordersAt
            operation.variables = ["limit": 3]
            return operation
        case .number:
            return GraphQLOperation(
                "query N($page: Int, $size: Int) { ordersOn(page: $page, size: $size) { sku } }",
                variables: ["size": 3])
        }
    }

    /// A page as such a server makes it.
    private static func page(_ kind: Kind, _ random: inout SeededNumbers) -> String {
        func number(_ count: Int) -> Int { Int(random.next() % UInt64(count)) }
        let ids = (0..<number(6)).map { _ in number(12) }
        var items = ids.map { number(9) == 0 ? "null" : OrderDesk.object($0) }
        if number(25) == 0 { items.append(#"{"__typename":"Order","id":null,"sku":"x"}"#) }
        if number(25) == 0 { items.append("7") }
        let list = number(15) == 0 ? "null" : "[\(items.joined(separator: ","))]"
        func token() -> String {
            switch number(8) {
            case 0: return "null"
            case 1: return "\"\""
            case 2 where number(4) == 0: return "7"
            default: return "\"\(tokens[number(tokens.count)])\""
            }
        }
        switch kind {
        case .tokens:
            if number(20) == 0 { return #""listOrders":null"# }
            let next = number(20) == 0 ? "" : #","nextToken":\#(token())"#
            return #""listOrders":{"__typename":"OrderList","items":\#(list)\#(next)}"#
        case .connection:
            if number(20) == 0 { return #""orders":null"# }
            let edges = items.map { #"{"__typename":"OrderEdge","node":\#($0)}"# }.joined(separator: ",")
            let info =
                number(15) == 0
                ? "null"
                : #"{"__typename":"PageInfo","hasNextPage":\#(number(4) != 0),"hasPreviousPage":\#(number(3) == 0),"#
                    + #""startCursor":\#(token()),"endCursor":\#(token())}"#
            return #""orders":{"__typename":"OrderConnection","edges":[\#(edges)],"pageInfo":\#(info)}"#
        case .offset: return #""ordersAt":\#(list)"#
        case .number: return #""ordersOn":\#(list)"#
        }
    }

    private func look(_ pages: Pages, _ note: Comment) async throws {
        var shown: [String] = []
        do {
            for index in 0..<(try await pages.status().pageCount) {
                shown += try #require(try pages.page(index), note).skus
            }
            #expect(try await pages.status().objectCount == shown.count, note)
        } catch let error as LarderError {
            // A page that is stored may be one that no list can have.
            #expect([.miss, .paging].contains(error.code), "\(error), \(note)")
        }
        #expect(Set(shown).count == shown.count, note)
    }

    @Test("Whatever a server sends, a list ends or is an error, and shows no object twice", arguments: 0..<12)
    func lies(index: Int) async throws {
        let seed = TestSeed.of("lying server", index)
        let kind = Kind.allCases[index % Kind.allCases.count]
        let note: Comment = "seed \(seed), \(kind)"
        let random = Mutex(SeededNumbers(seed: seed))
        let isHonest = Mutex(false)
        let asked = Atomic(0)
        let honest = OrderDesk([:])
        let server = ScriptedServer { request in
            // A list that goes on for ever is no lie; it is not waited for here.
            let count = asked.add(1, ordering: .relaxed).newValue
            if isHonest.withLock({ $0 }) { return await honest.answer(request) }
            if count % 40 == 0 { return #"{"data":null,"errors":[{"message":"enough"}]}"# }
            return #"{"data":{\#(random.withLock { Self.page(kind, &$0) })}}"#
        }
        try await withStoreFixture(server, schema: orderSchema) { app in
            let operation = Self.operation(kind)
            var pages = try app.pages(operation)
            let states = try pages.watch()
            let watching = Task {
                for await state in states {
                    let skus = state.objects.compactMap { $0["sku"]?.string }
                    #expect(Set(skus).count == skus.count, note)
                }
            }
            for _ in 0..<150 {
                let work = Int(random.withLock { $0.next() } % 12)
                let id = Int(random.withLock { $0.next() } % 12)
                do {
                    switch work {
                    case 0...2: _ = try await pages.next()
                    case 3: _ = try await pages.previous()
                    case 4: try await pages.all()
                    case 5: try await pages.all(startingOver: true)
                    case 6: try await pages.refresh()
                    case 7: try await pages.atLeast(id * 3)
                    case 8: try await app.remove("Order:\(id)", as: id % 2 == 0 ? .evicted : .deleted)
                    case 9: try await app.evict(maxBytes: 0)
                    case 10: _ = try await app.collectGarbage()
                    default: pages = try app.pages(operation)
                    }
                } catch let error as LarderError {
                    #expect(Self.expected.contains(error.code.rawValue), "\(error), \(note)")
                }
                try await look(pages, note)
            }
            isHonest.withLock { $0 = true }
            Self.fill(honest, kind)
            try await pages.all(startingOver: true)
            #expect(try await pages.skus() == skus(1...7), note)
            #expect(try await app.pages(operation).skus() == skus(1...7), note)
            #expect(try app.records.check().problems == [], note)
            watching.cancel()
            await watching.value
        }
    }

    /// Seven orders, three to a page.
    private static func fill(_ desk: OrderDesk, _ kind: Kind) {
        for (index, ids) in [Array(1...3), Array(4...6), [7]].enumerated() {
            let next = index == 2 ? nil : "t\(index + 1)"
            let token = index == 0 ? "" : "t\(index)"
            switch kind {
            case .tokens: desk.set(OrderDesk.tokenPage(ids, next: next), at: token)
            case .connection: desk.set(OrderDesk.connectionPage(ids, next: next), at: token)
            case .offset: desk.set(#""ordersAt":[\#(OrderDesk.objects(ids))]"#, at: index == 0 ? "" : "\(index * 3)")
            case .number: desk.set(#""ordersOn":[\#(OrderDesk.objects(ids))]"#, at: index == 0 ? "" : "\(index + 1)")
            }
        }
    }

    @Test("A page that says that one comes before it, and has no cursor for that one, is an error")
    func noCursorBefore() async throws {
        let pages = ["": OrderDesk.connectionPage(5...6, previous: "")]
        try await withPages(pages, orderConnection, ["last": 2]) { (pages, _, _) async throws in
            #expect(await larderError { try await pages.all() }?.code == .paging)
            #expect(try await pages.status().isComplete == false)
        }
    }

    @Test(
        "The next call asks once more for a page that led back, in a list that goes backward as well",
        arguments: ["previous", "all"])
    func ledBackBackward(call: String) async throws {
        let pages = [
            "": OrderDesk.connectionPage(5...6, previous: "x"), "x": OrderDesk.connectionPage(3...4, previous: "x"),
        ]
        try await withPages(pages, orderConnection, ["last": 2]) { (pages, desk, _) async throws in
            for _ in 0..<2 { _ = try await pages.previous() }
            #expect(await larderError { try await pages.previous() }?.code == .paging)
            desk.set(OrderDesk.connectionPage(3...4, previous: "y"), at: "x")
            desk.set(OrderDesk.connectionPage(1...2), at: "y")
            if call == "all" {
                #expect(try await pages.all().isComplete)
            } else {
                #expect(try await pages.previous()?.skus == skus(1...2))
            }
            #expect(try await pages.skus() == skus(1...6))
        }
    }

    @Test("The pages before one that has no pageInfo stay loaded")
    func staysBeforeBroken() async throws {
        let pages = [
            "": OrderDesk.connectionPage(1...2, next: "a"),
            "a": #""orders":{"__typename":"OrderConnection","edges":[],"pageInfo":null}"#,
        ]
        try await withPages(pages, orderConnection) { (pages, _, _) async throws in
            #expect(await larderError { try await pages.all() }?.code == .paging)
            #expect(try await pages.status() == PagesStatus(pageCount: 1, objectCount: 2))
            #expect(try await pages.skus() == skus(1...2))
        }
    }
}
