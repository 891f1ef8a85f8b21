import Foundation
import LarderFiles
import LarderTestSupport
import Testing

@testable import Larder

@Suite("Watchers that begin while the store is suspended", .timeLimit(.minutes(5)))
struct SuspendedWatchTests {
    private let card = GraphQLFragment("fragment F on Recipe { title }")

    private func withStore(
        schema: String = fixtureSchema, _ files: FileSystem = FileSystem(),
        _ body: (Store, Partition) async throws -> Void
    ) async throws {
        var options = Store.Options()
        options.lockTimeout = .zero
        options.files = files
        options.silence()
        try await withOpenStore(schema: schema, options: options) { (folder, store, app) throws in
            try await body(store, app)
            try store.close()
            try expectSound(folder)
        }
    }

    @Test("An object's watcher shows the object after resume")
    func object() async throws {
        try await withStore { store, app in
            try await app.write("Recipe:5", card, ["title": "Pie"])
            try await store.suspend(within: soon)
            var states = app.watch("Recipe:5").makeAsyncIterator()
            try store.resume()
            try await app.write("Recipe:5", card, ["title": "Cake"])
            #expect(try await next(&states, within: .seconds(20))?.presence == .present)
        }
    }

    @Test("A list's watcher says that the store is suspended, and shows the list after resume")
    func list() async throws {
        try await withStore(schema: orderSchema) { store, app in
            try await app.write(
                ordersAt, json: Array(#"{"ordersAt":[\#(OrderDesk.objects(1...2))]}"#.utf8))
            let pages = try app.pages(ordersAt)
            try await store.suspend(within: soon)
            var states = try pages.watch().makeAsyncIterator()
            #expect(try await next(&states, within: .seconds(20))?.error?.code == .suspended)
            try store.resume()
            let order = GraphQLFragment("fragment F on Order { sku }")
            try await app.write("Order:1", order, ["sku": "new"])
            while let state = try await next(&states, within: .seconds(20)) {
                let skus = state.objects.compactMap { $0["sku"]?.string }
                guard skus.first == "new" else { continue }
                #expect(skus == ["new", "s2"] && state.error == nil)
                break
            }
        }
    }

    @Test("The queue of a suspended store that has none is not looked for, and none is made")
    func noQueue() async throws {
        try await withStore { (store, app) async throws in
            try await store.suspend(within: soon)
            await expectCode(.suspended) { _ = try app.mutations(in: [.pending]) }
            await expectCode(.suspended) { _ = try store.operationsDatabase() }
            try store.resume()
            #expect(try app.mutations(in: [.pending]).isEmpty)
        }
    }

    @Test("A suspended store opens no partition that was not open")
    func unopened() async throws {
        try await withTemporaryFolder { folder in
            let store = try Store.open(at: folder, schema: try Schema(parsing: fixtureSchema))
            try await store.suspend(within: soon)
            await expectCode(.suspended) { _ = try store.partition() }
            #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path) == [])
            try store.resume()
            try await store.partition().write("Recipe:5", card, ["title": "Pie"])
            try store.close()
        }
    }

    @Test("A call that is not async does not wait for resume where it would have to open the queue or a partition")
    func atOnce() async throws {
        try await withTemporaryFolder { folder in
            var options = Store.Options()
            options.suspensionWait = .seconds(60)
            let schema = try Schema(parsing: fixtureSchema)
            let store = try Store.open(at: folder.appending(path: "a"), schema: schema, options: options)
            let unused = try Store.open(at: folder.appending(path: "b"), schema: schema, options: options)
            let app = try store.partition()
            for one in [store, unused] { try await one.suspend(within: soon) }
            let begun = SuspendingClock.now
            await expectCode(.suspended) { _ = try app.mutations(in: [.pending]) }
            await expectCode(.suspended) { _ = try unused.partition() }
            #expect(begun.duration(to: .now) < .seconds(30))
            for one in [store, unused] {
                try one.resume()
                try one.close()
            }
        }
    }

    @Test("No work begins while a suspension is asked for")
    func work() async throws {
        let suspension = Suspension()
        let work = try #require(suspension.begin())
        _ = try await suspension.ask()
        #expect(suspension.begin() == nil)
        suspension.end(work)
        #expect(suspension.begin() == nil)
    }

    @Test("A resume that fails leaves the store suspended, and may be called again")
    func failedResume() async throws {
        let fails = Flag()
        let files = FileSystem(injecting: { call in
            fails.isSet && call.path.contains("/records/") ? .failure(EIO) : nil
        })
        try await withStore(files) { store, app in
            try await app.write("Recipe:5", card, ["title": "Pie"])
            try await store.suspend(within: soon)
            fails.set()
            for _ in 0..<2 {
                let error = #expect(throws: LarderError.self) { try store.resume() }
                #expect(error?.code.rawValue.hasPrefix("records.") == true, "\(error as Any)")
                await expectCode(.suspended) { _ = try app.read("Recipe:5", card) }
            }
            fails.set(false)
            try store.resume()
            #expect(try app.read("Recipe:5", card)["title"]?.string == "Pie")
        }
    }
}
