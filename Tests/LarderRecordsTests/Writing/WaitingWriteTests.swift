import Foundation
import LarderFiles
import LarderGraphQL
import LarderLMDB
import LarderTestSupport
import Synchronization
import Testing

@testable import LarderRecords

@Suite("Writes that wait for the writer's thread", .timeLimit(.minutes(10)))
struct WaitingWriteTests {
    /// Holds the writer's thread once, until a test opens the gate or a minute has passed.
    private final class Gate: Sendable {
        private let arrival = AsyncStream.makeStream(of: Void.self)
        private let semaphore = DispatchSemaphore(value: 0)

        /// Called by the writer's thread.
        func hold() {
            arrival.continuation.yield()
            _ = semaphore.wait(timeout: .now() + 60)
        }

        /// Waits until the writer's thread is held.
        func arrived() async { for await _ in arrival.stream { break } }
        func open() { semaphore.signal() }
    }

    /// An update that holds the writer's thread until the gate is opened.
    private func heldUpdate(of sample: SampleCache, by gate: Gate) async throws -> Task<Void, any Error> {
        let (cache, operation) = (sample.cache, try sample.operation("{ count }"))
        let update = Task<Void, any Error> {
            _ = try await cache.update(operation) { _ in
                gate.hold()
                return nil
            }
        }
        await gate.arrived()
        return update
    }

    private func expectBusy(_ sample: SampleCache, deadline: SuspendingClock.Instant) async throws {
        let operation = try sample.operation("{ count }")
        let parsed = try ParsedResponse.parse(Array(#"{"data":{"count":2}}"#.utf8), along: operation.layout)
        let error = await #expect(throws: RecordError.self) {
            try await sample.cache.write(parsed, of: operation, deadline: deadline)
        }
        try requireNear(deadline)
        #expect(error?.code == .busy)
    }

    @Test("A write behind a compaction of its own process ends at its deadline, and is not made afterwards")
    func behindCompaction() async throws {
        try await withSampleCache(movieSchema) { sample in
            try await sample.write("{ count }", data: #"{"count":1}"#)
            let (cache, gate) = (sample.cache, Gate())
            let before = try cache.position.number
            let compaction = Task { try await cache.compact { step in if step == .written { gate.hold() } } }
            await gate.arrived()
            try await expectBusy(sample, deadline: .now + .milliseconds(100))
            gate.open()
            _ = try await compaction.value
            // The writer's thread comes to the late write before this one.
            try await sample.write("{ count }", data: #"{"count":3}"#)
            #expect(try cache.position.number == before + 1)
            #expect(try sample.json("{ count }") == #"{"count":3}"#)
        }
    }

    @Test("Answers of mutations wait behind a compaction for longer than other writes, and are stored")
    func answersBehindCompaction() async throws {
        let schema = try SchemaIndex(parsing: movieSchema)
        try await withTemporaryFolder { folder in
            var options = RecordCache.Options()
            options.lockTimeout = .milliseconds(50)
            let sample = try SampleCache(schema, path: folder.path, options: options)
            try await sample.write("{ count }", data: #"{"count":1}"#)
            let rate = try sample.operation("mutation { rate(id: 1, stars: 3) { stars } }")
            let parsed = try ParsedResponse.parse(
                Array(#"{"data":{"rate":{"stars":3}}}"#.utf8), along: rate.layout)
            let key = try #require(AppliedKey("k"))
            let answer = MutationAnswer(parsed, of: rate, key: key, edits: [])
            let (cache, gate) = (sample.cache, Gate())
            let compaction = Task {
                try await cache.compact(deadline: .now + .seconds(300)) { step in if step == .written { gate.hold() } }
            }
            await gate.arrived()
            let storing = Task { try await cache.write([answer], deadline: .now + .seconds(300)) }
            // Other writes have given up twice when the compaction goes on.
            for _ in 0..<2 { try await expectBusy(sample, deadline: .now + .milliseconds(100)) }
            gate.open()
            _ = try await compaction.value
            let outcomes = try await storing.value
            _ = try outcomes.first?.get()
            #expect(try outcomes.count == 1 && sample.cache.isApplied(key))
            try sample.cache.close()
        }
    }

    @Test("A write behind an update whose closure takes long ends at its deadline")
    func behindUpdate() async throws {
        try await withSampleCache(movieSchema) { sample in
            let gate = Gate()
            let update = try await heldUpdate(of: sample, by: gate)
            try await expectBusy(sample, deadline: .now + .milliseconds(100))
            gate.open()
            try await update.value
        }
    }

    /// Runs `body` with a cache and a count of its commits.
    private func withCounted(_ body: (SampleCache, () -> Int) async throws -> Void) async throws {
        let schema = try SchemaIndex(parsing: movieSchema)
        try await withTemporaryFolder { folder in
            let commits = Mutex(0)
            var options = RecordCache.Options.patient
            options.committed = { _ in commits.withLock { $0 += 1 } }
            let sample = try SampleCache(schema, path: folder.path, options: options)
            try await body(sample) { commits.withLock { $0 } }
            try sample.cache.close()
        }
    }

    @Test("Writes that wait together share one commit")
    func oneCommit() async throws {
        try await withCounted { sample, commits in
            let (cache, gate) = (sample.cache, Gate())
            let holding = Task { try await cache.writer.betweenWrites(until: .now + .seconds(300)) { gate.hold() } }
            await gate.arrived()
            try await withThrowingTaskGroup(of: Void.self) { group in
                for number in 0..<5 {
                    let operation = try sample.operation("{ note(text: \"\(number)\") }")
                    let parsed = try ParsedResponse.parse(
                        Array(#"{"data":{"note":"N\#(number)"}}"#.utf8), along: operation.layout)
                    group.addTask { _ = try await cache.write(parsed, of: operation) }
                }
                try await eventually { cache.writer.waitingCount >= 5 }
                gate.open()
                try await group.waitForAll()
            }
            try await holding.value
            #expect(commits() == 1)
            for number in 0..<5 {
                #expect(try sample.json("{ note(text: \"\(number)\") }") == "{\"note\":\"N\(number)\"}")
            }
        }
    }

    @Test("Answers of mutations that are stored together share one commit")
    func answersTogether() async throws {
        try await withCounted { sample, commits in
            let rate = try sample.operation("mutation { rate(id: 1, stars: 3) { stars } }")
            let answers = try (0..<3).map { number in
                let parsed = try ParsedResponse.parse(
                    Array(#"{"data":{"rate":{"stars":3}}}"#.utf8), along: rate.layout)
                return MutationAnswer(parsed, of: rate, key: try #require(AppliedKey("\(number)")), edits: [])
            }
            for outcome in try await sample.cache.write(answers) { _ = try outcome.get() }
            #expect(commits() == 1)
            #expect(try sample.cache.applied().map(\.key) == ["0", "1", "2"])
        }
    }

    @Test("A part of a shared commit that fails after it has written leaves nothing, and the others are stored")
    func failedPart() async throws {
        struct GivenUp: Error {}
        try await withSampleCache(movieSchema) { sample in
            func store(_ id: Int) throws -> WriteStep {
                let operation = try sample.operation("{ movie(id: \(id)) { title } }")
                let text = #"{"data":{"movie":{"__typename":"Movie","id":"\#(id)","title":"T"}}}"#
                let parsed = try ParsedResponse.parse(Array(text.utf8), along: operation.layout)
                return .store(parsed, of: operation, at: .query)
            }
            let failing = WriteStep.update(try sample.operation("{ count }"), at: .query, { _ in throw GivenUp() })
            let parts = try [[store(1)], [store(2), failing], [store(3)]]
            let outcomes = try await sample.cache.writer.write(parts, deadline: .now + .seconds(60))
            #expect(outcomes.map { outcome in (try? outcome.get()) != nil } == [true, false, true])
            let presences = try (1...3).map { try sample.cache.presence(of: "Movie:\($0)").presence }
            #expect(presences == [.present, .absent, .present])
        }
    }

    @Test("Large writes that wait together share commits of 4,096 objects at most, and each is made")
    func boundedSharing() async throws {
        try await withCounted { sample, commits in
            let (cache, movies) = (sample.cache, try sample.operation("{ movies { id title } }"))
            let gate = Gate()
            let update = try await heldUpdate(of: sample, by: gate)
            let before = commits()
            try await withThrowingTaskGroup(of: Void.self) { group in
                for part in 0..<40 {
                    let list = (0..<500).map { #"{"__typename":"Movie","id":"\#(part)-\#($0)","title":"t"}"# }
                    let text = #"{"data":{"movies":[\#(list.joined(separator: ","))]}}"#
                    let parsed = try ParsedResponse.parse(Array(text.utf8), along: movies.layout)
                    group.addTask { _ = try await cache.write(parsed, of: movies, deadline: .now + .seconds(300)) }
                }
                // Those that have not come by then have commits of their own.
                for _ in 0..<1000 { await Task.yield() }
                gate.open()
                try await group.waitForAll()
            }
            try await update.value
            #expect(commits() - before >= 5)
            #expect(try CacheDump(cache).records.count > 40 * 500)
        }
    }

    @Test("Writes of long texts that wait together share no commit that changes more than 4,096 pages")
    func boundedTexts() async throws {
        try await withCounted { sample, commits in
            let (cache, movies) = (sample.cache, try sample.operation("{ movies { id title } }"))
            // Any two of them fill more than 4,096 pages of 4 KiB.
            let title = String(repeating: "t", count: 8_500_000)
            let parsed = try (0..<3).map { number in
                let movie = #"{"__typename":"Movie","id":"\#(number)","title":"\#(title)"}"#
                return try ParsedResponse.parse(Array(#"{"data":{"movies":[\#(movie)]}}"#.utf8), along: movies.layout)
            }
            let gate = Gate()
            let update = try await heldUpdate(of: sample, by: gate)
            let before = commits()
            try await withThrowingTaskGroup(of: Void.self) { group in
                for parsed in parsed {
                    group.addTask { _ = try await cache.write(parsed, of: movies, deadline: .now + .seconds(300)) }
                }
                let deadline = SuspendingClock.now + .seconds(60)
                while cache.writer.waitingCount < 3, .now < deadline { try await Task.sleep(for: .milliseconds(2)) }
                gate.open()
                try await group.waitForAll()
            }
            try await update.value
            #expect(commits() - before >= 3)
        }
    }

    @Test("A write that changes more than the writes of one commit may together is made, and what waits behind it")
    func beyondSharing() async throws {
        try await withSampleCache(movieSchema) { sample in
            let (cache, movies) = (sample.cache, try sample.operation("{ movies { id title } }"))
            let parsed = try [0..<5_000, 5_000..<5_001].map { ids in
                let list = ids.map { #"{"__typename":"Movie","id":"\#($0)","title":"t"}"# }
                return try ParsedResponse.parse(
                    Array(#"{"data":{"movies":[\#(list.joined(separator: ","))]}}"#.utf8), along: movies.layout)
            }
            try await withThrowingTaskGroup(of: Void.self) { group in
                for parsed in parsed {
                    group.addTask { _ = try await cache.write(parsed, of: movies, deadline: .now + .seconds(60)) }
                }
                try await group.waitForAll()
            }
            #expect(try CacheDump(cache).records.count == 5_002)
        }
    }

    @Test("A write behind one that waits longer for another process ends at its own deadline")
    func behindPatientWrite() async throws {
        try await withSampleCache(movieSchema) { sample in
            let operation = try sample.operation("{ count }")
            let parsed = try ParsedResponse.parse(Array(#"{"data":{"count":1}}"#.utf8), along: operation.layout)
            let lock = try LockFile(path: sample.path + "/1/write.lock", mustWrite: true)
            try #require(try lock.tryLock(.exclusive))
            let cache = sample.cache
            let patient = Task { try await cache.write(parsed, of: operation, deadline: .now + .seconds(120)) }
            // Until it waits for the lock, what comes may be made with it in one commit, which fails at once for both.
            try await Task.sleep(for: .milliseconds(200))
            try await expectBusy(sample, deadline: .now + .milliseconds(100))
            lock.unlock()
            _ = try await patient.value
            #expect(try sample.json("{ count }") == #"{"count":1}"#)
        }
    }

    @Test("A write that has had its turn leaves the deadline of another that waits", .timeLimit(.minutes(1)))
    func deadlineBeside() async {
        let deadlines = TurnDeadlines()
        let (ends, continuation) = AsyncStream.makeStream(of: Int.self)
        let first = deadlines.add(.now + .seconds(300)) { continuation.yield(1) }
        _ = deadlines.add(.now) { continuation.yield(2) }
        deadlines.remove(first)
        for await end in ends {
            #expect(end == 2)
            break
        }
        withExtendedLifetime(deadlines) {}
    }
}
