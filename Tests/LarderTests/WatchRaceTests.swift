import Foundation
import LarderTestSupport
import Synchronization
import Testing

@testable import Larder

@Suite("Watching under contention", .timeLimit(.minutes(10)))
struct WatchRaceTests {
    @Test("The state that ends a fetch has what the fetch brought", arguments: 0..<40)
    func fetchEnd(_ round: Int) async throws {
        try await withStoreFixture(ScriptedServer { _ in recipeListAnswer }) { app in
            for await state in try app.watch(recipeList, policy: .networkOnly) where !state.isFetching {
                #expect(state.complete != nil)
                break
            }
        }
    }

    @Test("The error of a fetch ends when the whole answer has come by another way")
    func refusedAnswer() async throws {
        try await withStoreFixture(ScriptedServer { _ in "<html>" }) { app in
            var states = try app.watch(recipeList, policy: .networkOnly).makeAsyncIterator()
            var state = try #require(try await next(&states))
            while state.isFetching { state = try #require(try await next(&states)) }
            #expect(state.error?.code.rawValue == "records.responseMalformed")
            try await app.write(recipeList, json: soupAndBread("Soup"))
            state = try #require(try await next(&states))
            #expect(state.complete != nil)
            #expect(state.error == nil)
        }
    }

    @Test("States never go back, however many write and watch")
    func monotone() async throws {
        try await withStoreFixture { app in
            let text = GraphQLFragment("fragment T on Recipe { rating }")
            try await app.write("Recipe:1", text, json: Array(#"{"id":1,"rating":0}"#.utf8))
            try await withThrowingTaskGroup(of: Void.self) { group in
                for _ in 0..<200 {
                    group.addTask {
                        var last = -1.0
                        for await state in try app.watch("Recipe:1", text) {
                            guard let rating = state.complete?["rating"]?.double else { continue }
                            #expect(rating >= last)
                            last = rating
                            if rating == 100 { break }
                        }
                        #expect(last == 100)
                    }
                }
                group.addTask {
                    for number in 1...100 {
                        try await app.write("Recipe:1", text, json: Array(#"{"id":1,"rating":\#(number)}"#.utf8))
                        if number % 40 == 0 { _ = try await app.records.compact() }
                    }
                }
                try await group.waitForAll()
            }
        }
    }

    @Test("A commit between a read and its noting wakes the watcher")
    func betweenReadAndNoting() async throws {
        try await withStoreFixture { app in
            try await app.write(recipeList, json: soupAndBread("Soup"))
            let (stream, continuation) = AsyncStream.makeStream(
                of: WatchState.self, bufferingPolicy: .bufferingNewest(1))
            let (hasWritten, written) = (Flag(), DispatchSemaphore(value: 0))
            let watcher = Watcher(app.core, try app.core.operations.bound(recipeList), .query) {
                guard !hasWritten.isSet else { return }
                hasWritten.set()
                Task {
                    try await app.write(recipeList, json: soupAndBread("Stew"))
                    written.signal()
                }
                _ = written.wait(timeout: .now() + 60)
            }
            #expect(watcher.add(continuation))
            // Its hook waits, which no thread of tasks may.
            DispatchQueue.global().async { watcher.start() }
            var states = stream.makeAsyncIterator()
            var title: String?
            while title != "Stew" {
                let state = try await next(&states, within: .seconds(60))
                title = state?.response?["recipes"]?[0]?["title"]?.string
            }
            watcher.end()
        }
    }

    @Test("A watcher whose reader takes nothing keeps the newest state alone")
    func slowReader() async throws {
        try await withStoreFixture { app in
            try await app.write(recipeList, json: soupAndBread("Soup 0"))
            var slow = try app.watch(recipeList).makeAsyncIterator()
            var quick = try app.watch(recipeList).makeAsyncIterator()
            for number in 1...5 {
                try await app.write(recipeList, json: soupAndBread("Soup \(number)"))
                while let state = try await next(&quick),
                    state.response?["recipes"]?[0]?["title"]?.string != "Soup \(number)"
                {}
            }
            var taken = 1
            while let state = try await next(&slow), state.response?["recipes"]?[0]?["title"]?.string != "Soup 5" {
                taken += 1
            }
            // The last state may be on its way to one of two readers while the other has it.
            #expect(taken <= 2)
        }
    }

    @Test("A second watcher of an answer is given its state at once, also where nothing has changed")
    func second() async throws {
        try await withStoreFixture { app in
            try await app.write(recipeList, json: soupAndBread("Soup"))
            var first = try app.watch(recipeList).makeAsyncIterator()
            #expect(try await next(&first)?.complete != nil)
            var second = try app.watch(recipeList).makeAsyncIterator()
            #expect(try await next(&second, within: .seconds(60))?.complete != nil)
        }
    }

    @Test("A watcher that ends late leaves its successor's place alone: later streams share that one's reading")
    func successor() async throws {
        try await withStoreFixture { app in
            let core = app.core
            let bound = try core.operations.bound(recipeList)
            func stream() -> AsyncStream<WatchState>.Continuation {
                AsyncStream.makeStream(of: WatchState.self, bufferingPolicy: .bufferingNewest(1)).continuation
            }
            func lastID() throws -> WatcherIndex.WatcherID {
                let id = try #require(core.watchers.add { _ in })
                core.watchers.remove(id)
                return id
            }
            let late = Watcher(core, bound, .query)
            let (first, second) = (stream(), stream())
            core.watchers.shared.watch(bound, .query, core, first)
            late.end()
            let before = try lastID()
            core.watchers.shared.watch(bound, .query, core, second)
            #expect(try lastID() == before + 1)
            first.finish()
            second.finish()
        }
    }

    @Test("A watcher that asks while the store is suspended shows no state without what its reader has")
    func refetchedWhileSuspended() async throws {
        var options = Store.Options()
        options.silence()
        try await withOpenStore(ScriptedServer { _ in recipeListAnswer }, options: options) { (_, store, app) throws in
            try await app.write(recipeList, json: soupAndBread("Stew"))
            let watch = try app.watch(recipeList, policy: .cacheFirst)
            let titles = Mutex<[String?]>([])
            let reading = Task {
                for await state in watch {
                    let title = state.response?["recipes"]?[0]?["title"]?.string
                    titles.withLock { $0.append(title) }
                }
            }
            try await eventually { titles.withLock { $0.count } == 1 }
            try await store.suspend(within: soon)
            watch.refetch()
            try store.resume()
            try await app.write(recipeList, json: soupAndBread("Pie"))
            try await eventually { titles.withLock { $0.contains("Pie") || $0.contains("Soup") } }
            #expect(titles.withLock { !$0.contains(nil) })
            reading.cancel()
        }
    }

    @Test("Streams that were dropped or cancelled leave nothing behind")
    func registrations() async throws {
        try await withStoreFixture { app in
            for _ in 0..<100 {
                _ = try app.watch(recipeList)
                _ = app.watch("Recipe:1")
                let task = Task { for await _ in try app.watch(recipe(1)) {} }
                task.cancel()
                try await task.value
            }
            #expect(app.core.watchers.isEmpty)
        }
    }

    @Test("A watcher that ends just when it begins to fetch leaves no fetch behind")
    func endedAtBeginning() async throws {
        try await withStoreFixture { app in
            let bound = try app.core.operations.bound(recipeList)
            var fetches: [WeaklyHeld] = []
            var watchers: [Watcher] = []
            for _ in 0..<500 {
                let held = Held()
                fetches.append(WeaklyHeld(held: held))
                let fetch: @Sendable () async throws(LarderError) -> Void = {
                    try? await Task.sleep(for: .seconds(3600))
                    withExtendedLifetime(held) {}
                }
                watchers.append(Watcher(app.core, bound, .query, fetch: fetch))
            }
            await beginAndEnd(watchers)
            watchers = []
            try await eventually { fetches.allSatisfy { $0.held == nil } }
        }
    }

    /// What a fetch holds until it has ended.
    private final class Held: Sendable {}
    private struct WeaklyHeld { weak var held: Held? }

    private final class Turns: Sendable {
        let begun = Atomic(0)
        let ended = Atomic(0)
    }

    /// Has one watcher after the other begin to fetch, while another thread ends it.
    private func beginAndEnd(_ watchers: [Watcher]) async {
        let turns = Turns()
        await withCheckedContinuation { (continuation: CheckedContinuation<Void, Never>) in
            Thread.detachNewThread {
                for (number, watcher) in watchers.enumerated() {
                    while turns.begun.load(ordering: .acquiring) <= number {}
                    // Each at another moment.
                    for _ in 0..<number % 64 { _ = turns.begun.load(ordering: .acquiring) }
                    watcher.end()
                    turns.ended.store(number + 1, ordering: .releasing)
                }
                continuation.resume()
            }
            for (number, watcher) in watchers.enumerated() {
                turns.begun.store(number + 1, ordering: .releasing)
                watcher.refetch()
                while turns.ended.load(ordering: .acquiring) <= number {}
            }
        }
    }

    @Test("Watchers go on over compacting and clearing")
    func generations() async throws {
        try await withStoreFixture { app in
            try await app.write(recipeList, json: soupAndBread("Soup"))
            var states = try app.watch(recipe(1)).makeAsyncIterator()
            _ = try await next(&states)
            _ = try await app.records.compact()
            try await app.write(recipeList, json: soupAndBread("Stew"))
            #expect(try await next(&states)?.response?["recipe"]?["title"]?.string == "Stew")
            _ = try await app.records.clear()
            #expect(try await next(&states)?.complete == nil)
            try await app.write(recipeList, json: soupAndBread("Soup"))
            #expect(try await next(&states)?.response?["recipe"]?["title"]?.string == "Soup")
        }
    }

    @Test("Opening a store twice in a process names the place that opened it first")
    func twice() async throws {
        try await withTemporaryFolder { folder in
            let schema = try Schema(parsing: fixtureSchema)
            let line = #line + 1
            let first = try Store.open(at: folder, schema: schema)
            _ = try first.partition()
            let error = #expect(throws: LarderError.self) {
                _ = try Store.open(at: folder, schema: schema).partition()
            }
            #expect(error?.code.rawValue == "records.alreadyOpen")
            #expect(error?.message.contains("WatchRaceTests.swift:\(line)") == true)
            try first.close()
            let other = #line + 1
            let second = try Store.open(at: folder, schemaText: [fixtureSchema])
            _ = try second.partition()
            let refusal = #expect(throws: LarderError.self) {
                _ = try Store.open(at: folder, schema: schema).partition()
            }
            #expect(refusal?.message.contains("WatchRaceTests.swift:\(other)") == true)
            try second.close()
        }
    }
}
