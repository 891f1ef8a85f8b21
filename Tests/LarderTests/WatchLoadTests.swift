import LarderTestSupport
import Synchronization
import Testing

@testable import Larder
@testable import LarderRecords

@Suite("Many watchers, many changes", .timeLimit(.minutes(10)))
struct WatchLoadTests {
    @Test("Ten thousand watchers of one object that start and stop leave nothing behind")
    func startAndStop() async throws {
        try await withStoreFixture { app in
            try await app.write(recipeList, json: soupAndBread("Soup"))
            for _ in 0..<2 {
                var streams: [Watch] = []
                for _ in 0..<10_000 { streams.append(try app.watch(recipe(1))) }
                #expect(!app.core.watchers.isEmpty)
                try await app.write(recipeList, json: soupAndBread("Soup"))
                streams = []
                #expect(app.core.watchers.isEmpty)
            }
        }
    }

    @Test("Ten thousand watchers of what is there and of what is not leave nothing behind, whichever ends first")
    func startAndStopObjects() async throws {
        try await withStoreFixture { app in
            try await app.write(recipeList, json: soupAndBread("Soup"))
            let title = GraphQLFragment("fragment Title on Recipe { title }")
            var random = SeededNumbers(seed: 19)
            var objects: [AsyncStream<ObjectState>?] = []
            var answers: [Watch?] = []
            for number in 0..<5_000 {
                objects.append(app.watch("Recipe:\(number % 50)"))
                answers.append(try app.watch("Recipe:\(number % 50)", title))
            }
            #expect(!app.core.watchers.isEmpty)
            for index in objects.indices.shuffled(using: &random) { objects[index] = nil }
            // What is absent comes, and what is there goes, while half of them watch.
            try await app.write("Recipe:40", title, ["title": "Pie"])
            try await app.remove("Recipe:1", as: .deleted)
            for index in answers.indices.shuffled(using: &random) { answers[index] = nil }
            #expect(app.core.watchers.isEmpty)
        }
    }

    private func watcher(
        _ number: UInt32, of index: WatcherIndex, telling woken: Counter
    ) throws -> WatcherIndex.WatcherID {
        let id = index.add { _ in woken.add(number) }
        return try #require(id)
    }

    @Test("Ten thousand watchers do not make a write slow: only the watchers of the changed field wake")
    func concerned() throws {
        let index = WatcherIndex()
        let woken = Counter()
        var ids: [WatcherIndex.WatcherID] = []
        for number in 0..<10_000 as Range<UInt32> {
            let id = try watcher(number, of: index, telling: woken)
            ids.append(id)
            let field = RecordField(record: 1, field: number + 1)
            let dependencies = Dependencies(generation: 7, fields: [field], absentKeys: [])
            #expect(index.set(dependencies, of: id, readAt: 0))
        }
        index.publish(Commit.changing([(1, 5), (2, 6)], generation: 7))
        #expect(woken.taken == [4])
        index.publish(Commit.changing([(1, 5)], generation: 8))
        #expect(woken.taken == [], "of another numbering")
        index.publish(Commit.changing([(1, RecordField.any)], generation: 7))
        #expect(woken.taken.count == 10_000)
        for id in ids.dropFirst(2) { index.remove(id) }
        index.publish(Commit.changing([(1, RecordField.any)], generation: 7))
        #expect(woken.taken == [0, 1])
        for id in ids { index.remove(id) }
        #expect(index.isEmpty)
    }

    @Test("A watcher of several fields, of any field and of others is woken once, and forgotten whole")
    func overlapping() throws {
        let index = WatcherIndex()
        let woken = Counter()
        let first = try watcher(1, of: index, telling: woken)
        let second = try watcher(2, of: index, telling: woken)
        func watch(_ id: WatcherIndex.WatcherID, _ fields: Set<RecordField>) {
            _ = index.set(Dependencies(generation: 7, fields: fields, absentKeys: []), of: id, readAt: index.published)
        }
        let any = RecordField(record: 1, field: RecordField.any)
        watch(first, [any, RecordField(record: 1, field: 3), RecordField(record: 2, field: 3)])
        watch(second, [RecordField(record: 1, field: 3), RecordField(record: 1, field: .max)])
        index.publish(Commit.changing([(1, 3), (2, 3)], generation: 7))
        #expect(woken.taken == [1, 2])
        index.publish(Commit.changing([(1, 4)], generation: 7))
        #expect(woken.taken == [1])
        watch(first, [RecordField(record: 2, field: 3)])
        index.publish(Commit.changing([(1, 4)], generation: 7))
        #expect(woken.taken == [])
        index.publish(Commit.changing([(1, RecordField.any)], generation: 7))
        #expect(woken.taken == [2])
        index.remove(first)
        index.remove(second)
        #expect(index.isEmpty)
    }

    @Test("Marks that come while a reading rests begin no read, and one that is wanted at once does not wait")
    func resting() {
        let reading = MarkedReading()
        let reads = Counter()
        let read: @Sendable () -> Duration = {
            reads.add(1)
            return .seconds(3600)
        }
        reading.run(read)
        for _ in 0..<100 { reading.mark(read) }
        #expect(reads.taken == [1])
        reading.readNow(read)
        #expect(reads.taken == [1])
        reading.end()
        reading.readNow(read)
        #expect(reads.taken == [])
    }

    /// Adds streams to a watcher. A stream leaves it when the caller lets go of the stream, so the caller keeps them.
    private func streams(
        _ count: Int, of watcher: Watcher, sourceLocation: SourceLocation = #_sourceLocation
    ) -> [AsyncStream<WatchState>] {
        (0..<count).map { _ in
            let (stream, continuation) = AsyncStream.makeStream(
                of: WatchState.self, bufferingPolicy: .bufferingNewest(1))
            #expect(watcher.add(continuation), sourceLocation: sourceLocation)
            return stream
        }
    }

    @Test("A watcher of many streams rests between two readings, 20 µs for each stream")
    func restsForItsStreams() async throws {
        try await withStoreFixture { app in
            try await app.write(recipeList, json: soupAndBread("Soup"))
            let readings = Mutex<[SuspendingClock.Instant]>([])
            let watcher = Watcher(app.core, try app.core.operations.bound(recipeList), .query) {
                readings.withLock { $0.append(.now) }
            }
            let streams = streams(10_000, of: watcher)
            watcher.start()
            try await app.write(recipeList, json: soupAndBread("Stew"))
            try await eventually { readings.withLock { $0.count } >= 2 }
            let times = readings.withLock { $0 }
            #expect(times[1] - times[0] >= .milliseconds(200))
            watcher.end()
            withExtendedLifetime(streams) {}
        }
    }

    @Test("A watcher of 17 streams rests between two readings")
    func restsForSeventeen() async throws {
        try await withStoreFixture { app in
            try await app.write(recipeList, json: soupAndBread("Soup"))
            let readings = Mutex<[SuspendingClock.Instant]>([])
            let watchers = app.core.watchers
            let watcher = Watcher(app.core, try app.core.operations.bound(recipeList), .query) {
                let count = readings.withLock { readings in
                    readings.append(.now)
                    return readings.count
                }
                guard count <= 100 else { return }
                // Marks the watcher while it reads: if it does not rest, it reads again at once.
                let position = ChangePosition(epoch: 0, number: 0)
                watchers.publish(Commit(generation: 0, changes: .everything, position: position))
            }
            let streams = streams(17, of: watcher)
            watcher.start()
            try await eventually { readings.withLock { $0.count } > 100 }
            let times = readings.withLock { $0 }
            #expect(times[100] - times[0] >= .microseconds(100 * 17 * 20))
            watcher.end()
            withExtendedLifetime(streams) {}
        }
    }

    @Test("A watcher of an object whose reader takes nothing keeps one state, with all that changed")
    func slowObjectWatcher() async throws {
        try await withOpenStore { (_, store, app) throws in
            let card = GraphQLFragment("fragment Card on Recipe { title rating note }")
            func write(_ number: Int, note: Int) async throws {
                try await app.write(
                    "Recipe:1", card, ["title": "Soup", "rating": .int(Int64(number)), "note": .int(Int64(note))])
            }
            try await write(0, note: 0)
            var states = app.watch("Recipe:1").makeAsyncIterator()
            #expect(try await next(&states)?.changedFields == [])
            try await write(1, note: 1)
            for number in 2..<200 { try await write(number, note: 1) }
            // And as many as no test has time to make durable.
            let record = try #require(try app.records.presence(of: "Recipe:1").dependencies.records.first)
            let generation = try app.records.presence(of: "Recipe:1").dependencies.generation
            for _ in 0..<100_000 {
                app.core.watchers.publish(Commit.changing([(record, RecordField.any)], generation: generation))
            }
            try await write(200, note: 1)
            // Readings that were asked for may still be under way.
            try await Task.sleep(for: .milliseconds(300))
            try store.close()
            var kept: [ObjectState] = []
            while let state = try await next(&states) { kept.append(state) }
            #expect(kept.count <= 1)
            #expect(kept.allSatisfy { $0.presence == .present })
        }
    }

    @Test("The state that a slow reader takes names every field that changed since the last it took")
    func mergedChanges() async throws {
        try await withStoreFixture { app in
            let card = GraphQLFragment("fragment Card on Recipe { title rating }")
            try await app.write("Recipe:1", card, ["title": "Soup", "rating": 1])
            var states = app.watch("Recipe:1").makeAsyncIterator()
            #expect(try await next(&states)?.presence == .present)
            try await app.write("Recipe:1", card, ["title": "Stew", "rating": 1])
            try await Task.sleep(for: .milliseconds(100))
            try await app.write("Recipe:1", card, ["title": "Stew", "rating": 2])
            try await Task.sleep(for: .milliseconds(100))
            var changed: Set<FieldKey> = []
            while changed.count < 2 {
                changed.formUnion(try #require(try await next(&states)).changedFields)
            }
            #expect(changed == ["title", "rating"])
        }
    }
}

extension Commit {
    fileprivate static func changing(_ fields: [(record: UInt64, field: UInt32)], generation: UInt64) -> Commit {
        var changes = ChangeSet()
        changes.fields = fields.map { RecordField(record: $0.record, field: $0.field) }
        return Commit(generation: generation, changes: changes, position: ChangePosition(epoch: 0, number: 0))
    }
}

private final class Counter: Sendable {
    private let numbers = Mutex<[UInt32]>([])

    func add(_ number: UInt32) { numbers.withLock { $0.append(number) } }

    /// What was added since this was asked last, in ascending order.
    var taken: [UInt32] {
        numbers.withLock { numbers in
            defer { numbers = [] }
            return numbers.sorted()
        }
    }
}
