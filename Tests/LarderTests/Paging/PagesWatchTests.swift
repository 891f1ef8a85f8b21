import Foundation
import LarderTestSupport
import Testing

@testable import Larder
@testable import LarderRecords

@Suite("Watching a whole list", .timeLimit(.minutes(10)))
struct PagesWatchTests {
    private static let two = [
        "": OrderDesk.tokenPage(1...3, next: "a"), "a": OrderDesk.tokenPage(4...6, next: nil),
    ]

    /// Reads states until one fits.
    private func state(
        _ states: inout PagesWatch.Iterator, within time: Duration = .seconds(300), until isWanted: (PagesState) -> Bool
    ) async throws -> PagesState {
        while let state = try await next(&states, within: time) ?? nil { if isWanted(state) { return state } }
        throw Silence()
    }

    /// A watcher that has seen the whole list.
    private func watchAll(_ pages: Pages) async throws -> PagesWatch.Iterator {
        try await pages.all()
        var states = try pages.watch().makeAsyncIterator()
        _ = try await state(&states) { $0.isComplete }
        return states
    }

    /// The server has another list from now on, in two pages.
    private static func setOtherList(_ desk: OrderDesk) {
        desk.set(OrderDesk.tokenPage([7], next: "b"), at: "")
        desk.set(OrderDesk.tokenPage([8], next: nil), at: "b")
    }

    private static let sku = GraphQLFragment("fragment F on Order { sku }")

    private func skus(_ state: PagesState) -> [String] { state.pages.flatMap(\.skus) }

    @Test("A watcher sees an empty list, and then each page that comes")
    func grows() async throws {
        try await withPages(Self.two) { (pages, _, _) async throws in
            var states = try pages.watch().makeAsyncIterator()
            #expect(try await state(&states) { _ in true }.pages.isEmpty)
            _ = try await pages.next()
            let first = try await state(&states) { $0.pages.count == 1 }
            #expect(first.isComplete == false)
            _ = try await pages.next()
            let second = try await state(&states) { $0.pages.count == 2 }
            #expect(second.isComplete)
            #expect(second.objects.count == 6)
        }
    }

    @Test("A watcher of a list that is loaded sees all of it at first")
    func beginsWhole() async throws {
        try await withPages(Self.two) { (pages, _, app) async throws in
            try await pages.all()
            var states = try app.pages(orderList).watch().makeAsyncIterator()
            let state = try await state(&states) { _ in true }
            #expect(skus(state) == ["s1", "s2", "s3", "s4", "s5", "s6"])
        }
    }

    @Test("A watcher of whole lists sees a list that goes backward when it has come to its beginning")
    func wholeBackward() async throws {
        try await withPages(OrderDesk.backward, orderConnection, ["last": 2]) { (pages, _, _) async throws in
            var growing = try pages.watch().makeAsyncIterator()
            var whole = try pages.watch(.whenComplete).makeAsyncIterator()
            for count in [2, 4, 6] {
                _ = try await pages.previous()
                let state = try await state(&growing) { $0.objects.count == count }
                #expect(state.isComplete == (count == 6))
            }
            #expect(try await state(&whole) { _ in true }.objects.count == 6)
        }
    }

    @Test("Pages that lead back at the front of a list that goes backward are told to its watchers")
    func circleAtFront() async throws {
        try await withPages(OrderDesk.backward, orderConnection, ["last": 2]) { (pages, desk, _) async throws in
            desk.set(OrderDesk.connectionPage(1...2, previous: "x"), at: "y")
            #expect(await larderError { try await pages.all() }?.code == .paging)
            var states = try pages.watch().makeAsyncIterator()
            let state = try await state(&states) { $0.pages.count == 3 }
            #expect(!state.isComplete)
            #expect(state.error?.code == .paging)
        }
    }

    @Test("Watching that has ended leaves no watcher behind, at whatever moment it ends")
    func endsWhole() async throws {
        try await withPages(Self.two) { (pages, _, app) async throws in
            try await pages.all()
            for round in 0..<2_000 {
                var states: PagesWatch.Iterator? = try pages.watch().makeAsyncIterator()
                // Another thread begins to watch the pages that follow, one after the other.
                let end = SuspendingClock.now + .microseconds(round % 200 * 5)
                while SuspendingClock.now < end {}
                if round.isMultiple(of: 10) { _ = await states?.next() }
                states = nil
            }
            try await eventually { app.core.watchers.isEmpty }
        }
    }

    @Test("A change of an object on any page is seen, and an object that is deleted goes")
    func seesChanges() async throws {
        try await withPages(Self.two) { (pages, _, app) async throws in
            var states = try await watchAll(pages)
            try await app.write("Order:5", Self.sku, ["sku": "new"])
            _ = try await state(&states) { skus($0) == ["s1", "s2", "s3", "s4", "new", "s6"] }
            try await app.remove("Order:2", as: .deleted)
            _ = try await state(&states) { skus($0) == ["s1", "s3", "s4", "new", "s6"] }
        }
    }

    @Test("A watcher drops a page with an evicted object and the pages after it, until they are loaded again")
    func seesEviction() async throws {
        try await withPages(Self.two) { (pages, _, app) async throws in
            var states = try await watchAll(pages)
            try await app.remove("Order:2", as: .evicted)
            let left = try await state(&states, within: .seconds(20)) { _ in true }
            #expect(left.pages.isEmpty && !left.isComplete)
            try await pages.all()
            let whole = try await state(&states, within: .seconds(20)) { $0.isComplete }
            #expect(skus(whole) == ["s1", "s2", "s3", "s4", "s5", "s6"])
        }
    }

    @Test("A refreshed first page that leads elsewhere takes the rest out of the list")
    func seesRefresh() async throws {
        try await withPages(Self.two) { (pages, desk, _) async throws in
            var states = try await watchAll(pages)
            desk.set(OrderDesk.tokenPage([9, 1], next: "new"), at: "")
            try await pages.refresh()
            _ = try await state(&states) { skus($0) == ["s9", "s1"] && !$0.isComplete }
        }
    }

    @Test("An object that moves to an earlier page leaves the later one")
    func moves() async throws {
        try await withPages(Self.two) { (pages, desk, _) async throws in
            var states = try await watchAll(pages)
            desk.set(OrderDesk.tokenPage([6, 1], next: "a"), at: "")
            try await pages.refresh()
            _ = try await state(&states) { skus($0) == ["s6", "s1", "s4", "s5"] }
        }
    }

    @Test("A watcher that waits for whole lists sees the old one until the new one is whole")
    func waitsForWhole() async throws {
        try await withPages(Self.two) { (pages, desk, _) async throws in
            try await pages.all()
            var states = try pages.watch(.whenComplete).makeAsyncIterator()
            #expect(try await state(&states) { _ in true }.objects.count == 6)
            Self.setOtherList(desk)
            try await pages.all(startingOver: true)
            let state = try await state(&states) { _ in true }
            #expect(skus(state) == ["s7", "s8"])
        }
    }

    @Test("Each of two watchers that wait for whole lists is shown the list that was loaded anew")
    func twoWaitForWhole() async throws {
        try await withPages(Self.two) { (pages, desk, _) async throws in
            try await pages.all()
            var first = try pages.watch(.whenComplete).makeAsyncIterator()
            var second = try pages.watch(.whenComplete).makeAsyncIterator()
            #expect(try await state(&first) { _ in true }.objects.count == 6)
            #expect(try await state(&second) { _ in true }.objects.count == 6)
            Self.setOtherList(desk)
            // Both have time to read what they do not show yet.
            try await pages.all(startingOver: true) { _ in Thread.sleep(forTimeInterval: 0.1) }
            let firstState = try await state(&first, within: .seconds(20)) { _ in true }
            let secondState = try await state(&second, within: .seconds(20)) { _ in true }
            #expect(skus(firstState) == ["s7", "s8"] && skus(secondState) == ["s7", "s8"])
        }
    }

    @Test("A watcher that waits for whole lists is shown the new one also where another watcher has ended")
    func waitsBesideEnded() async throws {
        try await withPages(Self.two) { (pages, desk, _) async throws in
            try await pages.all()
            var states = try pages.watch(.whenComplete).makeAsyncIterator()
            #expect(try await state(&states) { _ in true }.objects.count == 6)
            // It ends at once: nothing holds it.
            _ = try pages.watch(.whenComplete)
            Self.setOtherList(desk)
            // The watcher has time to read what it does not show yet.
            try await pages.all(startingOver: true) { _ in Thread.sleep(forTimeInterval: 0.1) }
            #expect(skus(try await state(&states, within: .seconds(20)) { _ in true }) == ["s7", "s8"])
        }
    }

    @Test("A watcher of each page sees the new first page while the list is loaded anew")
    func seesNewFirstPage() async throws {
        try await withPages(Self.two) { (pages, desk, _) async throws in
            var states = try await watchAll(pages)
            Self.setOtherList(desk)
            let isSeen = Flag()
            defer { isSeen.set() }
            desk.hold { token in if token == "b" { await isSeen.wait() } }
            let loading = Task { try await pages.all(startingOver: true) }
            _ = try await state(&states, within: .seconds(20)) { skus($0) == ["s7"] }
            isSeen.set()
            #expect(try await loading.value.objectCount == 2)
        }
    }

    @Test("A watcher of whole lists sees none that is made of pages of two lists while one is loaded anew")
    func waitsForOwnPages() async throws {
        try await withPages(Self.two) { (pages, desk, _) async throws in
            try await pages.all()
            let watch = try pages.watch(.whenComplete)
            var states = watch.makeAsyncIterator()
            #expect(try await state(&states) { _ in true }.objects.count == 6)
            desk.set(OrderDesk.tokenPage([7], next: "a"), at: "")
            desk.set(OrderDesk.tokenPage([8], next: nil), at: "a")
            let next = Task {
                var states = watch.makeAsyncIterator()
                return try await state(&states) { _ in true }
            }
            desk.hold { token in
                // Time to show the new first page with the old second one.
                if token == "a" { try? await Task.sleep(for: .milliseconds(50)) }
            }
            try await pages.all(startingOver: true)
            #expect(skus(try await next.value) == ["s7", "s8"])
        }
    }

    @Test("A watcher of whole lists is shown nothing while the list is not whole")
    func showsNothingInPart() async throws {
        try await withPages(Self.two) { (pages, _, _) async throws in
            let watch = try pages.watch(.whenComplete)
            let first = Task {
                var states = watch.makeAsyncIterator()
                return try await state(&states) { _ in true }
            }
            _ = try await pages.next()
            try await Task.sleep(for: .milliseconds(30))
            _ = try await pages.next()
            #expect(skus(try await first.value) == ["s1", "s2", "s3", "s4", "s5", "s6"])
        }
    }

    @Test("A list that starts over by itself is shown to a watcher of whole lists when the new one is whole")
    func waitsForNewWhole() async throws {
        try await withPages(Self.two) { (pages, desk, app) async throws in
            try await pages.all(upTo: 1)
            let later = try app.pages(orderList)
            var states = try later.watch(.whenComplete).makeAsyncIterator()
            // The token of an earlier run is not taken any more.
            desk.removePage(at: "a")
            Self.setOtherList(desk)
            try await later.all()
            let state = try await state(&states, within: .seconds(60)) { _ in true }
            #expect(skus(state) == ["s7", "s8"])
        }
    }

    @Test("A change that is not confirmed is said to be so, until the server confirms it")
    func confirmed() async throws {
        try await withPages(Self.two) { (pages, desk, app) async throws in
            try await pages.all()
            var states = try pages.watch().makeAsyncIterator()
            let renamed: Value = ["rename": ["__typename": "Order", "id": "5", "sku": "new"]]
            try await app.enqueue(
                GraphQLOperation("mutation { rename(id: 5) { sku } }"),
                options: MutationOptions(optimisticResponse: renamed))
            let waiting = try await state(&states) { $0.isOptimistic }
            #expect(skus(waiting) == ["s1", "s2", "s3", "s4", "new", "s6"])
            desk.set(#""rename":{"__typename":"Order","id":"5","sku":"new"}"#, at: "")
            try await MutationRunner(app).drain()
            let confirmed = try await state(&states, within: .seconds(60)) { !$0.isOptimistic }
            #expect(skus(confirmed) == skus(waiting))
        }
    }

    @Test("Tokens in a circle are an error of the state, beside the pages")
    func seesCircle() async throws {
        try await withPages(Self.two) { (pages, desk, _) async throws in
            desk.set(OrderDesk.tokenPage([4], next: "a"), at: "a")
            _ = try? await pages.all()
            var states = try pages.watch().makeAsyncIterator()
            let state = try await state(&states) { _ in true }
            #expect(state.error?.code == .paging)
            #expect(skus(state) == ["s1", "s2", "s3", "s4"])
        }
    }

    @Test("A page that cannot be read any more is shown as it was, beside the error, which ends with it")
    func unreadable() async throws {
        try await withTemporaryFolder { folder in
            var options = Store.Options()
            options.maximumAnswerSize = 100_000
            let store = try Store.open(at: folder, schema: try Schema(parsing: orderSchema), options: options)
            let app = try store.partition(server: OrderDesk(Self.two).transport)
            let pages = try app.pages(orderList)
            var states = try await watchAll(pages)
            try await app.write("Order:5", Self.sku, ["sku": .string(String(repeating: "x", count: 200_000))])
            let failed = try await state(&states) { $0.error != nil }
            #expect(failed.error?.code.rawValue == "records.tooLarge")
            #expect(skus(failed) == ["s1", "s2", "s3", "s4", "s5", "s6"])
            try await app.write("Order:5", Self.sku, ["sku": "new"])
            let again = try await state(&states) { $0.error == nil }
            #expect(skus(again) == ["s1", "s2", "s3", "s4", "new", "s6"])
            try store.close()
        }
    }

    @Test("A reader that is slow is given the newest state, and not those before it")
    func slowReader() async throws {
        try await withPages(Self.two) { (pages, _, app) async throws in
            try await pages.all()
            var slow = try pages.watch().makeAsyncIterator()
            var quick = try pages.watch().makeAsyncIterator()
            for number in 1...20 {
                try await app.write("Order:5", Self.sku, ["sku": .string("new \(number)")])
                _ = try await state(&quick) { skus($0).contains("new \(number)") }
            }
            let first = try await state(&slow) { _ in true }
            #expect(first.isComplete && !skus(first).contains("s5"))
            if !skus(first).contains("new 20") { _ = try await state(&slow) { skus($0).contains("new 20") } }
        }
    }

    @Test("Watching ends when the store is closed")
    func ends() async throws {
        try await withTemporaryFolder { folder in
            let store = try Store.open(at: folder, schema: try Schema(parsing: orderSchema))
            var states = try store.partition().pages(orderList).watch().makeAsyncIterator()
            _ = try await state(&states) { _ in true }
            try store.close()
            #expect(try await next(&states) == nil)
        }
    }

    @Test("In a watched list the first page in its order shows an object, though a later page was loaded before")
    func firstInOrder() async throws {
        let pages = ["": OrderDesk.connectionPage(5...6, previous: "x"), "x": OrderDesk.connectionPage(4...5)]
        try await withPages(pages, orderConnection) { (pages, _, _) async throws in
            var states = try pages.watch().makeAsyncIterator()
            _ = try await pages.next()
            _ = try await state(&states) { $0.pages.count == 1 }
            _ = try await pages.previous()
            let both = try await state(&states) { $0.pages.count == 2 }
            #expect(both.pages.map(\.skus) == [["s4", "s5"], ["s6"]])
        }
    }

    @Test("A watcher shows an object once that a page has twice")
    func twiceOnPage() async throws {
        try await withPages(Self.two) { (pages, desk, _) async throws in
            desk.set(OrderDesk.tokenPage([1, 2, 2, 3], next: nil), at: "")
            _ = try await pages.next()
            var states = try pages.watch().makeAsyncIterator()
            let whole = try await state(&states) { $0.isComplete }
            #expect(skus(whole) == ["s1", "s2", "s3"])
        }
    }

    @Test("A watcher reads the page of a changed object again, and no other page")
    func readsOnePage() async throws {
        let loaded = [
            "": OrderDesk.tokenPage(1...3, next: "a"), "a": OrderDesk.tokenPage(4...6, next: "b"),
            "b": OrderDesk.tokenPage(7...9, next: nil),
        ]
        try await withPages(loaded) { (pages, _, app) async throws in
            var states = try await watchAll(pages)
            let cache = app.records
            let ids = try ["Order:1", "Order:5"].map { key in
                try cache.generations.withSnapshot { generation, transaction in
                    try #require(try generation.tables.record(of: key, transaction))
                }
            }
            // The objects of one read in four are noted.
            let used = cache.generations.current.used
            for _ in 0..<2 { used.forget() }
            for number in 1...12 {
                try await app.write("Order:5", Self.sku, ["sku": .string("new \(number)")])
                _ = try await state(&states) { skus($0).contains("new \(number)") }
            }
            #expect(ids.map { used.contains($0) } == [false, true])
        }
    }

    @Test("A watcher of whole lists goes on with the old list where loading it anew has failed")
    func goesOnWithOld() async throws {
        try await withPages(Self.two) { (pages, desk, app) async throws in
            try await pages.all()
            var states = try pages.watch(.whenComplete).makeAsyncIterator()
            _ = try await state(&states) { $0.isComplete }
            desk.removePage(at: "a")
            #expect(await larderError { try await pages.all(startingOver: true) }?.code == .serverErrors)
            try await app.write("Order:5", Self.sku, ["sku": "new"])
            let later = try await state(&states, within: .seconds(20)) { skus($0).contains("new") }
            #expect(skus(later) == ["s1", "s2", "s3", "s4", "new", "s6"])
        }
    }

    @Test("A page that is stored anew and shows what it showed gives the list's watcher no state")
    func sameAgain() async throws {
        try await withPages(Self.two) { (pages, desk, app) async throws in
            try await pages.all()
            try await app.remove("Order:2", as: .deleted)
            var states = try pages.watch().makeAsyncIterator()
            _ = try await state(&states) { skus($0) == ["s1", "s3", "s4", "s5", "s6"] }
            // The page is another one; what is deleted was not shown on it before.
            desk.set(OrderDesk.tokenPage([1, 3], next: "a"), at: "")
            try await pages.refresh()
            await #expect(throws: Silence.self) { _ = try await next(&states, within: .milliseconds(200)) }
        }
    }
}
