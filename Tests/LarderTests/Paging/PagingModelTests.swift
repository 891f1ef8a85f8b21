import Foundation
import Larder
import LarderTestSupport
import Synchronization
import Testing

/// What a cache has to have of a list, as dictionaries of pages and of times say.
private struct BookModel {
    /// What the cache has to have of a page.
    struct Page {
        var ids: [Int]
        var next: String?
        /// When it came.
        var time: Int64
        /// When the edge was made of an order that was put into the page afterwards; nil where that is not known.
        var edges: [Int: Int64]? = [:]
    }

    /// How the list goes from page to page.
    let kind: OrderBook.Kind
    /// By the token of a page, "" for the first.
    var pages: [String: Page] = [:]
    /// The orders that are there; one that was let go of may still be on a page.
    var orders: Set<Int> = []
    /// When each order came.
    var times: [Int: Int64] = [:]

    init(_ kind: OrderBook.Kind) { self.kind = kind }

    /// Whether the list begins with its last page.
    private var isBackward: Bool { kind == .backward }

    /// The orders of a page all of which are there.
    func whole(_ token: String) -> [Int]? {
        guard let page = pages[token], orders.isSuperset(of: page.ids) else { return nil }
        return page.ids
    }

    /// The tokens of the pages that follow each other from the first on.
    private func follow(_ isThere: (String) -> Bool) -> [String] {
        var found: [String] = []
        var token: String? = ""
        while let here = token, isThere(here), !found.contains(here) {
            found.append(here)
            token = pages[here]?.next
        }
        return found
    }

    /// Those of whole pages: what is loaded.
    var chain: [String] { follow { whole($0) != nil } }
    /// Those of all pages, in the order of the list: what a change goes through.
    private var changed: [String] {
        let chain = follow { pages[$0] != nil }
        return isBackward ? chain.reversed() : chain
    }

    /// The orders that are shown. Several pages may have one: the page that was loaded first shows it.
    var ids: [Int] {
        var shown: Set<Int> = []
        let lists = chain.map { token in (pages[token]?.ids ?? []).filter { shown.insert($0).inserted } }
        return (isBackward ? lists.reversed() : lists).flatMap { $0 }
    }
    /// The token of the page that is to be loaded next; nil at the end.
    var next: String? { chain.last.map { pages[$0]?.next } ?? "" }

    mutating func came(_ token: String, _ book: OrderBook, at now: Int64) {
        let page = book.page(at: token)
        pages[token] = Page(ids: page.ids, next: page.next, time: now)
        orders.formUnion(page.ids)
        for id in page.ids { times[id] = now }
    }

    mutating func cameAll(_ book: OrderBook, at now: Int64) {
        var token: String? = ""
        while let here = token {
            came(here, book, at: now)
            token = pages[here]?.next
        }
    }

    mutating func insert(_ id: Int, at now: Int64) {
        orders.insert(id)
        times[id] = now
        let changed = changed
        guard let first = changed.first, let last = changed.last,
            !changed.contains(where: { pages[$0]?.ids.contains(id) ?? false })
        else { return }
        let isComplete = pages[isBackward ? first : last]?.next == nil
        for token in changed {
            guard let index = pages[token]?.ids.firstIndex(where: { $0 > id && orders.contains($0) }) else { continue }
            // Before what is loaded there may be other pages.
            if isBackward, !isComplete, token == first, index == 0 { return }
            put(id, into: token, at: index, now)
            return
        }
        if isBackward || isComplete { put(id, into: last, at: pages[last]?.ids.count ?? 0, now) }
    }

    private mutating func put(_ id: Int, into token: String, at index: Int, _ now: Int64) {
        pages[token]?.ids.insert(id, at: index)
        if kind != .tokens { pages[token]?.edges?[id] = now }
    }

    mutating func remove(_ id: Int, at now: Int64) {
        for token in changed {
            pages[token]?.ids.removeAll { $0 == id }
            pages[token]?.edges?[id] = nil
        }
        orders.insert(id)
        times[id] = now
    }

    /// When the parts of a page came; nil where that is not known of all.
    func parts(of token: String) -> [Int64]? {
        guard let page = pages[token], let edges = page.edges else { return nil }
        return [page.time] + page.ids.compactMap { times[$0] } + edges.values
    }

    /// How old the oldest part of a page is; nil where a part is from the future.
    static func age(_ parts: [Int64], at now: Int64) -> Duration? {
        guard let oldest = parts.min(), parts.allSatisfy({ $0 <= now + 60 }) else { return nil }
        return .seconds(max(0, now - oldest))
    }

    /// All times at which something came.
    var allTimes: [Int64] { Array(times.values) + pages.values.flatMap { [$0.time] + ($0.edges ?? [:]).values } }
}

@Suite("Lists, ages and bounds at random", .timeLimit(.minutes(10)))
struct PagingModelTests {
    private final class Run {
        private let seed: UInt64
        private let folder: URL
        private var storeFolder: URL { folder.appending(path: "store") }
        private var random: SeededNumbers
        private let book: OrderBook
        private let clock = TestClock()
        private var store: Store
        private var app: Partition
        private var model: BookModel
        private var states: PagesWatch.Iterator?
        private var seen: [Int]?
        private var isPinned = false

        init(_ folder: URL, _ kind: OrderBook.Kind, seed: UInt64) throws {
            (self.seed, self.folder) = (seed, folder)
            book = OrderBook((0..<20).map { 100 + $0 * 40 }, kind)
            model = BookModel(kind)
            random = SeededNumbers(seed: seed)
            (store, app) = try Self.open(folder.appending(path: "store"), book, clock)
        }

        private static func open(
            _ folder: URL, _ book: OrderBook, _ clock: TestClock
        ) throws -> (Store, Partition) {
            var options = Store.Options()
            options.silence()
            options.now = { clock.now }
            let store = try Store.open(at: folder, schema: try Schema(parsing: OrderBook.schema), options: options)
            return (store, try store.partition(server: book.transport()))
        }

        private func number(_ count: Int) -> Int { Int(random.next() % UInt64(count)) }
        private var now: Int64 { Int64(clock.now.timeIntervalSince1970) }

        /// By how many seconds the clock goes on from a time, or back.
        ///
        /// What is dated up to a minute ahead has no age, as what came just now. So that they can be told apart,
        /// nothing is dated so.
        private func seconds(from time: Int64, among times: [Int64]) -> Int64 {
            while true {
                let seconds = Int64(number(3) == 0 ? -number(4000) : number(4000))
                if !times.contains(where: { (1...60).contains($0 - time - seconds) }) {
                    return seconds
                }
            }
        }

        func step() async throws {
            let pages = try app.pages(book.list)
            switch number(16) {
            case 0...2:
                let next = model.next
                let page = book.kind == .backward ? try await pages.previous() : try await pages.next()
                #expect((page == nil) == (next == nil))
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
                try await app.pin(named: "list", book.list)
                isPinned = true
            case 9:
                try await app.unpin(named: "list")
                isPinned = false
            case 10: (states, seen) = (states == nil ? try pages.watch().makeAsyncIterator() : nil, nil)
            case 11: clock.advance(by: .seconds(seconds(from: now, among: model.allTimes)))
            case 12: try await letGo()
            case 14 where ChildProgram.isBuilt: try await kill()
            default:
                states = nil
                try store.close()
                (store, app) = try Self.open(storeFolder, book, clock)
            }
            try await compare()
        }

        func loadAll() async throws {
            try await app.pages(book.list).all(startingOver: true)
            model.cameAll(book, at: now)
            #expect(model.ids == book.ids)
        }

        /// A mutation that puts an order into the list, or takes one out: it is seen at once, and the same afterwards.
        private func change(_ pages: Pages, _ id: Int, isNew: Bool) async throws {
            try await OrderBook.queue(isNew ? "add" : "drop", id, in: pages, app)
            if isNew { model.insert(id, at: now) } else { model.remove(id, at: now) }
            #expect(try await shown() == model.ids, "seed \(seed)")
            try await MutationRunner(app).drain()
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
            try takeOver(after: isTight ? nil : maxAge, needed)
        }

        /// Takes over which pages are there after an eviction.
        ///
        /// - Parameter maxAge: Up to which pages must be there; nil where young ones may have gone.
        private func takeOver(after maxAge: Int64?, _ needed: [String], isWhole: Bool = true) throws {
            model.orders = try orders()
            for (token, page) in model.pages {
                let isThere = try content(token) != nil
                if needed.contains(token) {
                    #expect(isThere, "page \(token) is needed; seed \(seed)")
                } else if let maxAge, isWhole, !isYoung(page.time, maxAge) {
                    #expect(!isThere, "page \(token) came too long ago; seed \(seed)")
                } else if let maxAge, let parts = model.parts(of: token), parts.allSatisfy({ isYoung($0, maxAge) }) {
                    #expect(isThere, "page \(token) is young; seed \(seed)")
                }
                if try !hasField(token) { model.pages[token] = nil }
            }
        }

        /// A time in the future is older than all others.
        private func isYoung(_ time: Int64, _ maxAge: Int64) -> Bool { time >= now - maxAge && time <= now + 60 }

        // MARK: Kills

        /// A program that works on the same store and is killed: what it had done is there, and of what it was doing
        /// each page is either as before or as afterwards.
        private func kill() async throws {
            states = nil
            try store.close()
            var works: [String] = []
            var (time, times) = (now, model.allTimes)
            for _ in 0..<1 + number(5) {
                let id = 100 + number(800)
                times.append(time)
                let later = seconds(from: time, among: times)
                works.append(
                    [
                        "next", "next", "all", "refresh", "add:\(id)", "add:\(id)",
                        "drop:\(model.ids.isEmpty ? id : model.ids[number(model.ids.count)])", "pin", "unpin",
                        "clock:\(later)",
                    ][number(10)])
                if works.last == "clock:\(later)" { time += later }
            }
            if number(2) == 0 { works.append("let:\(number(3000))") }
            let orders = book.ids.map { "\($0)" }.joined(separator: ",")
            let said = folder.appending(path: "said")
            let arguments = ["book", "\(now)", "\(1 + number(25))", book.kind.rawValue, orders] + works
            let child = try ChildProgram.start(storeFolder, arguments, output: said)
            await child.ended()
            let lines = try ChildProgram.lines(of: said)
            (store, app) = try Self.open(storeFolder, book, clock)
            #expect(try app.records.check().problems == [], "\(arguments)")
            var (left, sent) = (works[...], [Int]())
            for line in lines {
                let words = line.split { $0 == " " || $0 == ":" }.map(String.init)
                switch words[0] {
                case "add":
                    sent.append(Int(words[1]) ?? 0)
                    book.insert(sent[sent.count - 1])
                case "drop":
                    sent.append(Int(words[1]) ?? 0)
                    book.remove(sent[sent.count - 1])
                default:
                    try finished(left.removeFirst())
                    sent = []
                }
            }
            if let work = left.first { try await takeOver(cutOff: work, isSent: !sent.isEmpty) }
        }

        private func finished(_ work: String) throws {
            let words = work.split(separator: ":").map(String.init)
            let number = words.count > 1 ? Int(words[1]) ?? 0 : 0
            switch words[0] {
            case "next": if let next = model.next { model.came(next, book, at: now) }
            case "all": model.cameAll(book, at: now)
            case "refresh": model.came("", book, at: now)
            case "add": model.insert(number, at: now)
            case "drop": model.remove(number, at: now)
            case "pin": isPinned = true
            case "unpin": isPinned = false
            case "clock": clock.advance(by: .seconds(number))
            default: try takeOver(after: Int64(number), isPinned ? model.chain : [])
            }
        }

        private func takeOver(cutOff work: String, isSent: Bool) async throws {
            let words = work.split(separator: ":").map(String.init)
            switch words[0] {
            case "add", "drop":
                let isQueued = try !app.mutations(in: [.pending, .inFlight, .acknowledged]).isEmpty
                try await MutationRunner(app).drain()
                if isSent || isQueued { try finished(work) }
            case "next", "all", "refresh":
                let before = model
                try finished(work)
                let after = model
                model = before
                model.orders = try orders()
                for token in Set(before.pages.keys).union(after.pages.keys) {
                    let content = try content(token)
                    if let page = after.pages[token], let content, content.ids == page.ids, content.next == page.next,
                        content.age == .zero
                    {
                        model.pages[token] = page
                        for id in page.ids { model.times[id] = now }
                    } else {
                        #expect(content?.ids == model.whole(token), "page \(token) is neither; seed \(seed)")
                    }
                }
            case "pin", "unpin": isPinned = try !app.pins().isEmpty
            case "let":
                try takeOver(
                    after: words.count > 1 ? Int64(words[1]) : nil, isPinned ? model.chain : [], isWhole: false)
            default: break
            }
        }

        /// What the cache has of a page; nil where something of it is not there.
        private func content(_ token: String) throws -> (ids: [Int], next: String?, age: Duration?)? {
            let response = try app.read(book.list(at: token), allowsPartial: true)
            guard response.isComplete else { return nil }
            return (book.ids(in: response), book.next(in: response), response.age)
        }

        /// Whether the cache has a page, though perhaps not all of its orders.
        private func hasField(_ token: String) throws -> Bool {
            let response = try app.read(book.list(at: token), allowsPartial: true)
            return !(response[book.kind == .tokens ? "listOrders" : "orders"]?.isNull ?? true)
        }

        /// The orders that the cache has.
        private func orders() throws -> Set<Int> {
            Set(try app.records.inspect.keys(type: "Order").compactMap { Int($0.dropFirst("Order:".count)) })
        }

        private func shown() async throws -> [Int] {
            try await app.pages(book.list).skus().compactMap { Int($0.dropFirst()) }
        }

        private func compare() async throws {
            let shown = try await shown()
            #expect(shown == model.ids, "seed \(seed)")
            #expect(Set(shown).count == shown.count, "an object is shown twice; seed \(seed)")
            let chain = Set(model.chain)
            for token in model.pages.keys {
                let content = try content(token)
                if chain.contains(token) {
                    #expect(content?.ids == model.pages[token]?.ids, "seed \(seed)")
                    #expect(content?.next == model.pages[token]?.next, "seed \(seed)")
                    if let parts = model.parts(of: token) {
                        #expect(content?.age == BookModel.age(parts, at: now), "seed \(seed)")
                    }
                } else {
                    // What is no part of the list may have been changed as such.
                    if let content, content.ids != model.pages[token]?.ids {
                        model.pages[token]?.ids = content.ids
                        model.pages[token]?.edges = nil
                    }
                    if try !hasField(token) { model.pages[token] = nil }
                }
            }
            #expect(try app.records.check().problems == [])
        }

        func finish() async throws {
            try await loadAll()
            try await compare()
            try store.close()
            try expectSound(storeFolder)
        }
    }

    @Test(
        "A list is what a model says, whatever is loaded, changed, pinned, watched, let go of, reopened and killed",
        arguments: OrderBook.Kind.allCases)
    func random(kind: OrderBook.Kind) async throws {
        for index in 0..<2 {
            let seed = TestSeed.of("paging model \(kind)", index)
            try await withTemporaryFolder { folder in
                let run = try Run(folder, kind, seed: seed)
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
