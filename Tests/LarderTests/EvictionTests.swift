import Foundation
import LarderTestSupport
import Testing

@testable import Larder

private func stored(_ number: Int) -> GraphQLOperation {
    GraphQLOperation(
        "query Some($first: Int) { recipes(first: $first) { title author { name } } }",
        variables: ["first": .int(Int64(number))])
}

extension Partition {
    fileprivate func store(_ number: Int, title: String = "Soup") async throws {
        try await write(
            stored(number),
            json: Array(
                #"""
                {"recipes":[{"__typename":"Recipe","id":"\#(number)","title":"\#(title) \#(number)",
                "author":{"__typename":"Cook","id":"\#(number)","name":"Ada"}}]}
                """#.utf8))
    }
}

@Suite("Evicting", .timeLimit(.minutes(10)))
struct EvictionTests {
    @Test("What is pinned or watched is not evicted, and all else is")
    func kept() async throws {
        try await withAgedStore { app, wait in
            for number in 1...4 { try await app.store(number) }
            wait(100)
            try await app.pin(named: "offline", stored(1))
            var states = try app.watch(stored(2)).makeAsyncIterator()
            _ = try await next(&states)
            try await app.evict(maxAge: .seconds(60))
            #expect(try app.read(stored(1))["recipes"]?[0]?["title"]?.string == "Soup 1")
            #expect(try app.read(stored(2))["recipes"]?[0]?["author"]?["name"]?.string == "Ada")
            for number in 3...4 {
                let error = #expect(throws: LarderError.self) { try app.read(stored(number)) }
                #expect(error?.code == .miss)
            }
            withExtendedLifetime(states) {}
        }
    }

    @Test("Eviction keeps a pinned answer, and removes an object that the answer does not contain")
    func beyondPin() async throws {
        try await withAgedStore { app, wait in
            try await app.store(1)
            let titles = GraphQLOperation(
                "query Some($first: Int) { recipes(first: $first) { title } }", variables: ["first": .int(1)])
            try await app.pin(named: "offline", titles)
            wait(100)
            try await app.evict(maxAge: .seconds(60))
            #expect(try app.read(titles).isComplete)
            let name = GraphQLFragment("fragment Name on Cook { name }")
            #expect(await larderError { try app.read("Cook:1", name) }?.code == .miss)
        }
    }

    @Test("What a queued mutation names is not evicted")
    func queued() async throws {
        try await withAgedStore { app, wait in
            for number in 1...2 { try await app.store(number) }
            let rate = GraphQLOperation("mutation { rate(input: { recipe: 1, stars: 5 }) { rating } }")
            var options = MutationOptions()
            options.optimisticResponse = ["rate": ["__typename": "Recipe", "id": "1", "rating": 5]]
            _ = try await app.enqueue(rate, options: options)
            wait(100)
            try await app.evict(maxAge: .seconds(60))
            let title = GraphQLFragment("fragment Title on Recipe { title }")
            #expect(try app.read("Recipe:1", title)["title"]?.string == "Soup 1")
            #expect(await larderError { try app.read("Recipe:2", title) }?.code == .miss)
        }
    }

    @Test(
        "What has come of an answer that is pinned or watched is not evicted while the rest of it is waited for",
        arguments: [false, true])
    func incomplete(isPinned: Bool) async throws {
        try await withAgedStore { app, wait in
            let known = GraphQLOperation("{ recipes(first: 1) { title } }")
            try await app.write(
                known, json: Array(#"{"recipes":[{"__typename":"Recipe","id":"1","title":"Soup"}]}"#.utf8))
            let both = GraphQLOperation("{ recipes(first: 1) { title } latest { id } }")
            var states: Watch.Iterator?
            if isPinned {
                try await app.pin(named: "offline", both)
            } else {
                states = try app.watch(both).makeAsyncIterator()
                #expect(await states?.next()?.response?.isComplete == false)
            }
            wait(100)
            try await app.evict(maxAge: .seconds(60))
            #expect(try app.read(known)["recipes"]?[0]?["title"]?.string == "Soup")
            withExtendedLifetime(states) {}
        }
    }

    @Test("A bound below what is pinned is an error that names the pin")
    func tooSmall() async throws {
        try await withStoreFixture { app in
            try await app.store(1)
            try await app.pin(named: "offline", stored(1))
            let error = await #expect(throws: LarderError.self) { try await app.evict(maxBytes: 0) }
            #expect(error?.code.rawValue == "records.full")
            #expect(error?.message.contains("offline") == true)
            #expect(try app.read(stored(1)).isComplete)
        }
    }

    @Test("A bound that what stays reaches exactly is kept, and one of a byte less is an error")
    func exactBound() async throws {
        try await withStoreFixture { app in
            try await app.store(1)
            try await app.pin(named: "offline", stored(1))
            let least = await larderError { try await app.evict(maxBytes: 0) }
            #expect(least?.code == .recordsFull)
            let rest = try await app.evict(maxBytes: .max).bytesInUse
            #expect(try await app.evict(maxBytes: rest).bytesInUse == rest)
            await expectCode(.recordsFull) { try await app.evict(maxBytes: rest - 1) }
        }
    }

    @Test("A rehearsal for a bound that cannot be kept tells how much stays, and throws nothing")
    func rehearsedTooSmall() async throws {
        try await withStoreFixture { app in
            try await app.store(1)
            try await app.pin(named: "offline", stored(1))
            let report = try await app.evict(maxBytes: 0, isRehearsal: true)
            #expect(report.bytesInUse > 0)
            #expect(try app.read(stored(1)).isComplete)
        }
    }

    @Test("The error names only what needs something")
    func holders() async throws {
        try await withStoreFixture { app in
            try await app.store(1)
            let unneeded = await larderError { try await app.evict(maxBytes: 0) }
            #expect(unneeded?.code == .recordsFull)
            for word in ["pin", "watcher", "mutation", "needed"] { #expect(unneeded?.message.contains(word) == false) }
            try await app.store(1)
            var states = try app.watch(stored(1)).makeAsyncIterator()
            _ = try await next(&states)
            let watched = await larderError { try await app.evict(maxBytes: 0) }
            #expect(watched?.message.contains("needed by watchers, and") == true, "\(watched?.message ?? "none")")
            #expect(try app.read(stored(1)).isComplete)
            withExtendedLifetime(states) {}
        }
    }

    @Test("The error names watchers that outlive their program, and queued mutations")
    func storedHolders() async throws {
        try await withStoreFixture { app in
            try await app.store(1)
            _ = try await app.watch(named: "list", stored(1))
            _ = try await app.enqueue(GraphQLOperation("mutation { rate(input: { recipe: 1, stars: 5 }) { rating } }"))
            let error = await larderError { try await app.evict(maxBytes: 0) }
            #expect(
                error?.message.contains("needed by watchers, by queued mutations, and") == true,
                "\(error?.message ?? "none")")
        }
    }

    @Test("The error names queued mutations also where the only one is being sent")
    func sentHolder() async throws {
        let (isAsked, isReleased) = (Flag(), Flag())
        let server = ScriptedServer { _, request in
            isAsked.set()
            await isReleased.wait()
            return ScriptedServer.done(request)
        }
        try await withStoreFixture(server) { app in
            try await app.store(1)
            try await app.enqueue(giveStars("1", 5))
            let sending = Task { try await quickRunner(app).drain() }
            await isAsked.wait()
            let error = await larderError { try await app.evict(maxBytes: 0) }
            #expect(error?.message.contains("needed by queued mutations") == true, "\(error?.message ?? "none")")
            isReleased.set()
            try await sending.value
        }
    }

    @Test("Of many pins that hold too much the error names twenty")
    func manyPins() async throws {
        try await withStoreFixture { app in
            try await app.store(1)
            for number in 1...30 { try await app.pin(named: "p\(number)", stored(1)) }
            let error = await larderError { try await app.evict(maxBytes: 0) }
            #expect(error?.code == .recordsFull)
            #expect(error?.message.contains("and 10 more") == true, "\(error?.message ?? "none")")
        }
    }

    @Test("Ages and bounds below zero are as zero; an age beyond a century, or any bound, keeps everything")
    func extremes() async throws {
        try await withAgedStore { app, wait in
            try await app.store(1)
            wait(100)
            for age in [Duration.seconds(200 * 365 * 86_400), .seconds(Int64.max)] { try await app.evict(maxAge: age) }
            try await app.evict(maxBytes: .max, maxAge: .seconds(Int64.max))
            #expect(try app.read(stored(1)).isComplete)
            try await app.evict(maxAge: .seconds(-5))
            #expect(throws: LarderError.self) { try app.read(stored(1)) }
            try await app.store(2)
            // The tables themselves take more.
            #expect(await larderError { try await app.evict(maxBytes: .min) }?.code == .recordsFull)
            #expect(throws: LarderError.self) { try app.read(stored(2)) }
        }
    }

    @Test("A bound that cannot be kept keeps nothing from going by its age")
    func ageBesideBound() async throws {
        try await withAgedStore { app, wait in
            try await app.store(1)
            try await app.store(2)
            try await app.pin(named: "offline", stored(2))
            wait(100)
            var options = RunOptions()
            options.cache = CacheUpkeep(maxBytes: 1, maxAge: .seconds(60))
            options.cache.interval = .milliseconds(1)
            let task = Task { [options] in try await app.run(options) }
            try await eventually { (try? app.read(stored(1))) == nil }
            try await app.store(3)
            wait(100)
            try await eventually { (try? app.read(stored(3))) == nil }
            task.cancel()
            _ = await task.result
            #expect(try app.read(stored(2)).isComplete)
        }
    }

    @Test("Eviction removes no object when collecting garbage is enough to keep the bound")
    func garbageFirst() async throws {
        try await withAgedStore { app, wait in
            let title = String(repeating: "x", count: 4_000)
            for number in 1...20 { try await app.store(number, title: title) }
            let needed = try app.records.bytesInUse()
            wait(60)
            for number in 21...40 { try await app.store(number, title: title) }
            let all = try app.records.bytesInUse()
            // The later recipes become garbage.
            for number in 21...40 { try await app.write(stored(number), json: Array(#"{"recipes":[]}"#.utf8)) }
            #expect(try await app.evict(maxBytes: (needed + all) / 2).objects == 0)
            for number in 1...20 { #expect(try app.read(stored(number)).isComplete) }
        }
    }

    @Test("The log warns when the cache cannot be kept within its bound")
    func loggedBound() async throws {
        let log = RecordedLog(from: .warning)
        var options = Store.Options()
        options.logger = log.logger
        try await withOpenStore(options: options) { (_, _, app) throws in
            try await app.store(1)
            try await app.pin(named: "offline", stored(1))
            await app.putInOrder(CacheUpkeep(maxBytes: 1)) { _ in }
            #expect(log.texts.withLock { $0 }.contains("the cache could not be kept in order"))
        }
    }

    @Test("Where the maximum age cannot be kept, the bound of bytes still is")
    func boundBesideAge() async throws {
        try await withAgedStore { app, _ in
            for number in 1...20 { try await app.store(number, title: String(repeating: "x", count: 4_000)) }
            let bytes = try app.records.bytesInUse()
            // A collection is under way, and ends before the second bound is looked at.
            #expect(app.core.watchers.beginNoting())
            var failures = 0
            await app.putInOrder(CacheUpkeep(maxBytes: bytes / 2, maxAge: .seconds(3_600))) { _ in
                failures += 1
                app.core.watchers.endNoting()
            }
            #expect(failures == 1)
            #expect(try app.records.bytesInUse() <= bytes / 2)
        }
    }

    @Test("A cache that has more bytes than it may is brought down to nine tenths of that, and not far below")
    func nineTenths() async throws {
        try await withAgedStore { app, wait in
            let title = String(repeating: "x", count: 4_000)
            for number in 1...100 {
                try await app.store(number, title: title)
                wait(60)
            }
            let bytes = try await app.evict(maxBytes: .max).bytesInUse
            await app.putInOrder(CacheUpkeep(maxBytes: bytes - 1)) { Issue.record($0) }
            let left = try await app.evict(maxBytes: .max).bytesInUse
            #expect((bytes / 2...bytes / 10 * 9).contains(left), "\(left) of \(bytes)")
        }
    }

    @Test("A bound that is kept is no failure, where nine tenths of it cannot be")
    func boundAlone() async throws {
        try await withAgedStore { app, _ in
            for number in 1...40 {
                try await app.store(number, title: String(repeating: "x", count: 4_000))
                try await app.pin(named: "p\(number)", stored(number))
            }
            try await app.store(41, title: String(repeating: "x", count: 4_000))
            let bound = try app.records.bytesInUse() - 1
            await app.putInOrder(CacheUpkeep(maxBytes: bound)) { Issue.record($0) }
            let left = try app.records.bytesInUse()
            #expect((bound / 10 * 9 + 1...bound).contains(left), "\(left) of \(bound)")
            #expect(await larderError { try app.read(stored(41)) }?.code == .miss)
            #expect(try app.read(stored(1)).isComplete)
        }
    }

    @Test("Nothing goes of a cache that has as many bytes as it may")
    func boundReached() async throws {
        try await withAgedStore { app, _ in
            for number in 1...40 { try await app.store(number, title: String(repeating: "x", count: 4_000)) }
            let bytes = try app.records.bytesInUse()
            await app.putInOrder(CacheUpkeep(maxBytes: bytes)) { Issue.record($0) }
            #expect(try app.records.bytesInUse() == bytes)
            for number in 1...40 { #expect(try app.read(stored(number)).isComplete) }
        }
    }

    @Test("A pin of a list keeps all of its pages, those that come later as well")
    func pinnedList() async throws {
        let desk = OrderDesk([
            "": OrderDesk.tokenPage(1...3, next: "a"), "a": OrderDesk.tokenPage(4...6, next: "b"),
            "b": OrderDesk.tokenPage(7...8, next: nil),
        ])
        try await withStoreFixture(desk.transport, schema: orderSchema) { app in
            let pages = try app.pages(orderList)
            try await app.pin(named: "offline", orderList)
            for count in [4, .max] {
                try await pages.all(upTo: count)
                try await app.evict(maxAge: .zero)
                #expect(await larderError { try await app.evict(maxBytes: 0) }?.code.rawValue == "records.full")
                _ = try await app.collectGarbage()
                #expect(try await app.pages(orderList).skus() == skus(1...(count == 4 ? 6 : 8)))
            }
            try await app.unpin(named: "offline")
            // The tables themselves take more.
            _ = try? await app.evict(maxBytes: 0)
            #expect(try await app.pages(orderList).status().pageCount == 0)
        }
    }

    @Test("A watcher of a list keeps the pages that it shows from being evicted")
    func watchedList() async throws {
        let desk = OrderDesk([
            "": OrderDesk.tokenPage(1...3, next: "a"), "a": OrderDesk.tokenPage(4...6, next: nil),
        ])
        try await withStoreFixture(desk.transport, schema: orderSchema) { app in
            let pages = try app.pages(orderList)
            try await pages.all()
            var states = try pages.watch().makeAsyncIterator()
            while let state = try await next(&states) ?? nil { if state.isComplete { break } }
            _ = try? await app.evict(maxBytes: 0)
            #expect(try await app.pages(orderList).skus() == skus(1...6))
            withExtendedLifetime(states) {}
        }
    }

    @Test("A pin of a list keeps the pages before its first as well")
    func pinnedBackwards() async throws {
        let desk = OrderDesk([
            "": OrderDesk.connectionPage(5...6, previous: "x"), "x": OrderDesk.connectionPage(3...4, previous: "y"),
            "y": OrderDesk.connectionPage(1...2),
        ])
        try await withStoreFixture(desk.transport, schema: orderSchema) { app in
            var orders = orderConnection
            orders.variables = ["last": 2]
            try await app.pin(named: "offline", orders)
            let pages = try app.pages(orders)
            while try await pages.previous() != nil {}
            #expect(await larderError { try await app.evict(maxBytes: 0) }?.code == .recordsFull)
            _ = try await app.collectGarbage()
            #expect(try await app.pages(orders).skus() == skus(1...6))
        }
    }

    @Test("The bytes of what goes are also those of its parts, as counted before and afterwards")
    func bytes() async throws {
        let pages = (0..<40).map { page in
            OrderDesk.connectionPage(page * 25..<page * 25 + 25, next: page < 39 ? "\(page + 1)" : nil)
        }
        let desk = OrderDesk(
            Dictionary(uniqueKeysWithValues: pages.enumerated().map { ($0 == 0 ? "" : "\($0)", $1) }))
        try await withAgedStore(desk.transport, schema: orderSchema) { app, wait in
            var operation = orderConnection
            operation.variables = ["first": 25]
            #expect(try await app.pages(operation).all().objectCount == 1000)
            let records = try app.records.check().counts
            #expect(records.parts > 1000)
            wait(100)
            let rehearsal = try await app.evict(maxAge: .seconds(60), isRehearsal: true)
            let report = try await app.evict(maxAge: .seconds(60))
            #expect(report.objects == 1000)
            #expect(report.bytes == rehearsal.bytes)
            // A record has 24 bytes before its fields, of which an edge has one.
            #expect(report.bytes > (records.parts + report.objects) * 24)
        }
    }

    @Test("run keeps a cache within its bound of bytes also where it has no maximum age")
    func upkeepOfBytes() async throws {
        try await withAgedStore { app, _ in
            try await app.store(1)
            var options = RunOptions()
            options.cache = CacheUpkeep(maxBytes: 1)
            let task = Task { [options] in try await app.run(options) }
            try await eventually { (try? app.read(stored(1))) == nil }
            task.cancel()
            _ = await task.result
        }
    }

    @Test("run keeps the cache within its bounds by itself, and looks once a minute")
    func upkeep() async throws {
        #expect(CacheUpkeep().interval == .seconds(60))
        try await withAgedStore { app, wait in
            try await app.store(1)
            wait(100)
            var options = RunOptions()
            options.cache = CacheUpkeep(maxAge: .seconds(60))
            let task = Task { [options] in try await app.run(options) }
            try await eventually { (try? app.read(stored(1))) == nil }
            task.cancel()
            _ = await task.result
        }
    }

    @Test("An eviction whose task is cancelled says so", arguments: [false, true])
    func cancelled(isRehearsal: Bool) async throws {
        try await withStoreFixture { app in
            for number in 1...20 { try await app.store(number) }
            let task = Task {
                try await app.evict(0, .zero, isRehearsal: isRehearsal, sliceTime: .microseconds(1)) {
                    withUnsafeCurrentTask { $0?.cancel() }
                }
            }
            #expect(await larderError { try await task.value }?.code == .cancelled)
        }
    }

    @Test("An eviction that ends early leaves a smaller cache")
    func endedEarly() async throws {
        try await withStoreFixture { app in
            for number in 1...20 { try await app.store(number) }
            @Sendable func left() -> Int { (1...20).count(where: { (try? app.read(stored($0))) != nil }) }
            let task = Task {
                try await app.evict(0, .zero, isRehearsal: false, sliceTime: .microseconds(1)) {
                    if left() < 20 { withUnsafeCurrentTask { $0?.cancel() } }
                }
            }
            #expect(await larderError { try await task.value }?.code == .cancelled)
            // Each slice is a commit of its own, and so short that it removes one or two. What `left` reads is spared
            // for a while, so that a few would stay of one commit for all as well.
            #expect((15..<20).contains(left()))
        }
    }

    @Test("What keeps the cache in order and is cancelled meanwhile has not failed")
    func cancelledUpkeep() async throws {
        try await withAgedStore { app, wait in
            try await app.store(1)
            wait(100)
            let failures = Flag()
            let task = Task {
                withUnsafeCurrentTask { $0?.cancel() }
                await app.putInOrder(CacheUpkeep(maxAge: .seconds(60))) { _ in failures.set() }
            }
            await task.value
            #expect(!failures.isSet)
        }
    }
}
