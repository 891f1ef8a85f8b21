import Foundation
import Larder
import LarderRecords
import LarderTestSupport
import Synchronization
import Testing

@Suite("Lists to which much happens at once", .timeLimit(.minutes(10)))
struct BusyPagesTests {
    /// What may come of a call while others evict, collect, load and are cancelled.
    private static let expected: Set<String> = [
        "larder.miss", "larder.cancelled", "records.busy", "records.full", "larder.busy", "operations.busy",
        "larder.suspended",
    ]

    private func work(
        _ number: Int, _ id: Int, _ book: OrderBook, _ app: Partition, _ pages: Pages
    ) async throws {
        switch number {
        case 0, 1: _ = try await pages.next()
        case 2: try await pages.all()
        case 3: try await pages.all(startingOver: true)
        case 4: try await pages.refresh()
        case 5: try await pages.atLeast(id % 30)
        case 6:
            let task = Task { try await pages.all(startingOver: true) }
            await Task.yield()
            task.cancel()
            _ = try await task.value
        case 7, 8: try await OrderBook.queue("add", id, in: pages, app)
        case 9: try await OrderBook.queue("drop", book.ids.randomElement() ?? id, in: pages, app)
        case 10: try await MutationRunner(app).drain()
        case 11: try await app.evict(maxAge: .zero)
        case 12: _ = try await app.collectGarbage()
        case 13: book.insert(id)
        case 14: _ = try await app.records.compact()
        case 15: try await app.remove("Order:\(id)", as: .evicted)
        default:
            for index in 0..<(try await pages.status().pageCount) {
                guard let page = try pages.page(index) else { continue }
                #expect(Set(page.skus).count == page.skus.count, "an object is on a page twice")
            }
        }
    }

    @Test(
        "Pages that are loaded, refreshed, changed, evicted and watched at once come to the server's list",
        arguments: 0..<4)
    func atOnce(index: Int) async throws {
        let seed = TestSeed.of("busy pages", index)
        try await withTemporaryFolder { folder in
            let book = OrderBook((0..<20).map { 100 + $0 * 40 })
            let store = try Store.open(at: folder, schema: try Schema(parsing: OrderBook.schema))
            let app = try store.partition(server: book.transport())
            let pages = try app.pages(book.list)
            let shown = Mutex<[String]>([])
            let states = try pages.watch()
            let watching = Task {
                for await state in states {
                    let skus = state.objects.compactMap { $0["sku"]?.string }
                    #expect(Set(skus).count == skus.count, "seed \(seed): an object is shown twice")
                    shown.withLock { $0 = skus }
                }
            }
            await withTaskGroup(of: Void.self) { group in
                for worker in 0..<4 {
                    group.addTask {
                        var random = SeededNumbers(seed: seed &+ UInt64(worker))
                        for _ in 0..<30 {
                            let (number, id) = (Int(random.next() % 18), 100 + Int(random.next() % 800))
                            do { try await work(number, id, book, app, pages) } catch {
                                // Compacting is the cache's own, and throws what the cache throws.
                                let code =
                                    (error as? RecordError)?.code.rawValue ?? (error as? LarderError)?.code.rawValue
                                #expect(Self.expected.contains(code ?? ""), "seed \(seed), work \(number): \(error)")
                            }
                        }
                    }
                }
            }
            try await MutationRunner(app).drain()
            #expect(try app.mutations(in: [.pending, .inFlight]).isEmpty)
            try await pages.all(startingOver: true)
            #expect(try await pages.skus() == skus(book.ids), "seed \(seed)")
            #expect(try await app.pages(book.list).skus() == skus(book.ids), "seed \(seed)")
            try await eventually { shown.withLock { $0 } == skus(book.ids) }
            #expect(try app.records.check().problems == [], "seed \(seed)")
            watching.cancel()
            try store.close()
            await watching.value
            try expectSound(folder)
        }
    }

    private func load(_ pages: Pages, by call: String) async throws {
        switch call {
        case "next": _ = try await pages.next()
        case "previous": _ = try await pages.previous()
        case "refresh": try await pages.refresh()
        case "all": try await pages.all()
        default: try await pages.atLeast(1)
        }
    }

    @Test(
        "Every kind of loading call waits while another call loads",
        arguments: ["next", "previous", "refresh", "all", "atLeast"])
    func waits(call: String) async throws {
        let (isAsked, isFree) = (Flag(), Flag())
        let server = ScriptedServer { _ in
            isAsked.set()
            await isFree.wait()
            return #"{"data":{\#(OrderDesk.tokenPage(1...2, next: nil))}}"#
        }
        try await withStoreFixture(server, schema: orderSchema) { app in
            let pages = try app.pages(orderList)
            let loading = Task { try await pages.next() }
            await isAsked.wait()
            let waiting = Task { try await load(pages, by: call) }
            // A waiting call ends at once when it is cancelled, and has asked the server nothing.
            waiting.cancel()
            #expect(await larderError { try await waiting.value }?.code == .cancelled)
            #expect(server.requests.count == 1)
            isFree.set()
            #expect(try await loading.value?.skus == skus(1...2))
        }
    }

    @Test(
        "Calls that load at once what comes before, or the whole list, load each page once",
        arguments: ["previous", "all"])
    func loadsOnce(call: String) async throws {
        try await withPages(OrderDesk.backward, orderConnection, ["last": 2]) { (pages, desk, _) async throws in
            // Time for a call that does not wait to ask for the same page.
            desk.hold { _ in try? await Task.sleep(for: .milliseconds(30)) }
            try await withThrowingTaskGroup(of: Void.self) { group in
                for _ in 0..<3 { group.addTask { try await load(pages, by: call) } }
                try await group.waitForAll()
            }
            #expect(desk.requests == ["/2", "x/2", "y/2"])
        }
    }
}
