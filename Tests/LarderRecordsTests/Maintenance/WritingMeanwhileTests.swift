import Dispatch
import Foundation
import LarderFiles
import LarderGraphQL
import LarderTestSupport
import Synchronization
import Testing

@testable import LarderRecords

/// Runs a task to its end from a thread that is none of Swift's.
private func waiting<Answer: Sendable>(_ body: @escaping @Sendable () async throws -> Answer) throws -> Answer {
    let outcome = Mutex<Result<Answer, any Error>?>(nil)
    let isDone = DispatchSemaphore(value: 0)
    Task.detached {
        let result: Result<Answer, any Error>
        do { result = .success(try await body()) } catch { result = .failure(error) }
        outcome.withLock { $0 = result }
        isDone.signal()
    }
    isDone.wait()
    guard let result = outcome.withLock({ $0 }) else { throw CancellationError() }
    return try result.get()
}

@Suite("Writing while a cache is compacted or checked", .timeLimit(.minutes(10)))
struct WritingMeanwhileTests {
    /// The steps at which the old generation is written to.
    private static let early: [RecordCache.KillPoint] = [.copied, .packed, .followed]

    @Test("What is written while a cache is compacted is in it, whatever it is", arguments: 0..<5)
    func followed(_ number: Int) async throws {
        let seed = TestSeed.of("written meanwhile") &+ UInt64(number)
        try await withTemporaryFolder { base in
            let library = try LibraryCache(base.appending(path: "compacted"))
            let other = try LibraryCache(base.appending(path: "left"))
            let random = Mutex(SeededNumbers(seed: seed))
            for library in [library, other] { try await library.fill(30) }
            let rounds = Mutex(0)
            for _ in 0..<2 {
                _ = try await library.cache.compact { step in
                    guard Self.early.contains(step),
                        rounds.withLock({
                            $0 += 1; return $0
                        }) < 12
                    else { return }
                    try waiting {
                        for _ in 0..<4 {
                            let choice = random.withLock { $0.next() }
                            for library in [library, other] { try await Self.change(library, choice) }
                        }
                    }
                }
            }
            try await Self.compare(library, other, "seed \(seed)")
        }
    }

    /// Changes a cache in one of many ways, the same for the same number.
    private static func change(_ library: LibraryCache, _ choice: UInt64) async throws {
        let (kind, number) = (choice % 9, Int(choice >> 8 % 40))
        let cache = library.cache
        switch kind {
        case 0: _ = try await cache.remove(keys: ["Book:\(number % 40)"], as: .deleted)
        case 1: _ = try await cache.remove(keys: ["Author:\(number % 5)"], as: .evicted)
        case 2: _ = try await cache.remove(field: "books", of: "QUERY_ROOT")
        case 3:
            // Names that nothing used before, and fields of a record that is split in the end.
            for search in 0..<40 {
                let text = "\(number % 7)-\(search)"
                let operation = try library.operation(LibraryCache.query, ["search": .string(text)])
                try await library.write(LibraryCache.books(search % 20..<search % 20 + 2), operation)
            }
        case 4:
            if let key = AppliedKey("mutation-\(number % 100)") { try await cache.noteRejected(key) }
        case 5:
            let operation = try library.operation("{ shelf { label covers { color size { width } } } }")
            let cover = #"{"color":"c\#(number % 3)","size":{"width":\#(number % 11)}}"#
            try await library.write(#"{"data":{"shelf":{"label":"l","covers":[[\#(cover),null]]}}}"#, operation)
        case 6: try await library.fill(number % 30 + 1, revision: number % 5)
        default:
            let operation = try library.operation()
            try await library.write(LibraryCache.books(number % 40..<number % 40 + 3, revision: number % 5), operation)
        }
    }

    /// Two caches hold the same, whatever numbers they gave.
    private static func compare(_ one: LibraryCache, _ other: LibraryCache, _ comment: Comment) async throws {
        var operations = [
            try one.operation(), try one.operation("{ shelf { label covers { color size { width } } } }"),
        ]
        for number in 0..<7 {
            for search in 0..<40 {
                operations.append(
                    try one.operation(LibraryCache.query, ["search": .string("\(number)-\(search)")]))
            }
        }
        for operation in operations {
            #expect(try one.cache.read(operation).response == other.cache.read(operation).response, comment)
        }
        for number in 0..<100 {
            guard let key = AppliedKey("mutation-\(number)") else { continue }
            #expect(try one.cache.isApplied(key) == other.cache.isApplied(key), comment)
        }
        #expect(try CacheDump(one.cache).faults == [], comment)
        for library in [one, other] {
            try expectSound(library.cache, comment)
            try library.cache.close()
        }
    }

    @Test("A compaction takes in records written meanwhile that fill more than one transaction")
    func manyFollowed() async throws {
        try await withLibraryCache { library in
            let operation = try library.operation("{ books { __typename id text } }")
            try await library.write(#"{"data":{"books":[]}}"#, operation)
            // Transactions end after 4 MiB: these are more bytes of records, whose texts stay in them.
            let (id, text) = (String(repeating: "i", count: 180), String(repeating: "t", count: 200))
            let books = (0..<14_000).map { #"{"__typename":"Book","id":"\#(id)\#($0)","text":"\#(text)"}"# }
            let response = #"{"data":{"books":[\#(books.joined(separator: ","))]}}"#
            _ = try await library.cache.compact { step in
                guard step == .copied else { return }
                _ = try waiting { try await library.write(response, operation) }
            }
            let read = try library.cache.read(operation).response
            #expect(read.isComplete)
            #expect(read["books"]?.count == 14_000)
            #expect(read["books"]?[13_999]?["id"]?.string == id + "13999")
        }
    }

    @Test("A compaction keeps times and positions, also where they are noted meanwhile", arguments: early)
    func followedNotes(at step: RecordCache.KillPoint) async throws {
        try await withTemporaryFolder { folder in
            let now = Mutex<Int64>(1_800_000_000_000)
            var options = RecordCache.Options.patient
            options.now = { now.withLock { $0 } }
            let library = try LibraryCache(folder, options: options)
            let operation = try await library.fill(3)
            try await library.cache.note(["a": .init(name: "S.a", time: 1), "b": .init(name: "S.b", time: 1)])
            let isNoted = Mutex(false)
            _ = try await library.cache.compact { reached in
                guard reached == step,
                    !isNoted.withLock({ was in
                        defer { was = true }; return was
                    })
                else { return }
                now.withLock { $0 += 3_600_000 }
                try waiting {
                    try await library.fill(3)
                    try await library.cache.note(["a": .init(name: "S.a", time: 2)])
                }
            }
            #expect(try library.cache.read(operation).response.age == .zero)
            #expect(try library.cache.subscriptionPositions().mapValues(\.time) == ["a": 2, "b": 1])
            try expectSound(library.cache)
        }
    }

    @Test("What was acknowledged is there after a crash at any step", arguments: RecordCache.KillPoint.allCases)
    func crash(at step: RecordCache.KillPoint) async throws {
        try await withTemporaryFolder { base in
            let (folder, copy) = (base.appending(path: "cache"), base.appending(path: "crashed"))
            let library = try LibraryCache(folder)
            let operation = try await library.fill()
            let revision = Mutex(0)
            let acknowledged = Mutex(0)
            _ = try await library.cache.compact { reached in
                if reached == step, acknowledged.withLock({ $0 == 0 }) {
                    try crashCopy(of: folder, to: copy)
                    acknowledged.withLock { $0 = revision.withLock { $0 } }
                }
                guard Self.early.contains(reached), revision.withLock({ $0 < 5 }) else { return }
                try waiting {
                    let next = revision.withLock {
                        $0 += 1; return $0
                    }
                    try await library.write(LibraryCache.books(0..<40, revision: next), operation)
                }
            }
            let last = acknowledged.withLock { $0 }
            let crashed = try LibraryCache(copy)
            let text = try crashed.cache.read(operation).response["books"]?[6]?["text"]?.string
            #expect(text?.hasPrefix("Line 6 of revision \(last).") == true)
            try expectSound(crashed.cache)
            // What the crash has left goes.
            try await crashed.cache.compact()
            try crashed.cache.close()
            #expect(try FileManager.default.contentsOfDirectory(atPath: copy.path).count == 1)
            let newest = try library.cache.read(operation).response["books"]?[6]?["text"]?.string
            #expect(newest?.hasPrefix("Line 6 of revision \(revision.withLock { $0 }).") == true)
            try expectSound(library.cache)
        }
    }

    @Test("A cache that is emptied while it is compacted stays empty", arguments: early)
    func cleared(at step: RecordCache.KillPoint) async throws {
        try await withTemporaryFolder { folder in
            let library = try LibraryCache(folder)
            let operation = try await library.fill()
            let isCleared = Mutex(false)
            let report = try await library.cache.compact { reached in
                guard reached == step,
                    !isCleared.withLock({ was in
                        defer { was = true }; return was
                    })
                else { return }
                _ = try waiting { try await library.cache.clear() }
            }
            #expect(report.generation == 3)
            #expect(try library.cache.read(operation).response.isComplete == false)
            try expectSound(library.cache)
            try library.cache.close()
            #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path) == ["3"])
        }
    }

    @Test("A second compaction waits for the first until its deadline, which ends with an error that names the holder")
    func second() async throws {
        try await withLibraryCache { library in
            try await library.fill(5)
            let failure = Mutex<RecordError?>(nil)
            _ = try await library.cache.compact { reached in
                guard reached == .copied else { return }
                do { _ = try waiting { try await library.cache.compact(deadline: .now + .milliseconds(20)) } } catch {
                    failure.withLock { $0 = error as? RecordError }
                }
            }
            let error = failure.withLock { $0 }
            #expect(error?.code == .busy)
            #expect(error?.message.contains("pid \(getpid())") == true)
        }
    }

    @Test(
        "A compaction that fails at any step leaves a cache that works, and no draft",
        arguments: RecordCache.KillPoint.allCases)
    func failure(at step: RecordCache.KillPoint) async throws {
        struct Stop: Error {}
        try await withTemporaryFolder { folder in
            let library = try LibraryCache(folder)
            let operation = try await library.fill()
            let before = try library.cache.read(operation).response
            await #expect(throws: RecordError.self) {
                try await library.cache.compact { reached in if reached == step { throw Stop() } }
            }
            let names = try FileManager.default.contentsOfDirectory(atPath: folder.path)
            #expect(!names.contains { $0.contains("draft") })
            #expect(try library.cache.read(operation).response == before)
            try await library.fill(5)
            try await library.cache.compact()
            #expect(try library.cache.read(operation).response["books"]?.count == 5)
            try expectSound(library.cache)
        }
    }

    @Test("A compaction whose new file cannot be opened leaves nothing of it")
    func unopened() async throws {
        try await withTemporaryFolder { folder in
            let isFailing = Atomic(false)
            var options = RecordCache.Options()
            options.files = FileSystem { call in
                guard isFailing.load(ordering: .relaxed), call.kind == .open, call.path.contains(".draft-"),
                    call.path.hasSuffix("/data.mdb")
                else { return nil }
                return .failure(EIO)
            }
            let library = try LibraryCache(folder, options: options)
            let operation = try await library.fill()
            let before = try library.cache.read(operation).response
            isFailing.store(true, ordering: .relaxed)
            await #expect(throws: RecordError.self) { try await library.cache.compact() }
            #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path) == ["1"])
            #expect(try library.cache.read(operation).response == before)
            isFailing.store(false, ordering: .relaxed)
            try await library.cache.compact()
            #expect(try library.cache.read(operation).response == before)
            try expectSound(library.cache)
        }
    }

    @Test("Writes go on while a cache is checked, and the check sees one snapshot")
    func checked() async throws {
        try await withTemporaryFolder { folder in
            let meanwhile = Mutex<(@Sendable () -> Void)?>(nil)
            let isChecking = Atomic(false)
            let pages = Atomic(0)
            var options = RecordCache.Options()
            options.files = FileSystem { call in
                guard isChecking.load(ordering: .relaxed), call.kind == .read, call.path.hasSuffix("/data.mdb") else {
                    return nil
                }
                // The first reads are those of the meta pages.
                if pages.add(1, ordering: .relaxed).newValue == 6 { meanwhile.withLock { $0 }?() }
                return nil
            }
            let library = try LibraryCache(folder, options: options)
            try await library.fill()
            let failure = Mutex<(any Error)?>(nil)
            let written = Mutex(0)
            meanwhile.withLock {
                $0 = {
                    isChecking.store(false, ordering: .relaxed)
                    do {
                        try waiting {
                            for revision in 1...20 {
                                let operation = try library.operation()
                                let json = LibraryCache.books(0..<40, revision: revision)
                                let parsed = try ParsedResponse.parse(Array(json.utf8), along: operation.layout)
                                _ = try await library.cache.write(
                                    parsed, of: operation, deadline: .now + .milliseconds(100))
                                written.withLock { $0 += 1 }
                            }
                        }
                    } catch { failure.withLock { $0 = error } }
                }
            }
            isChecking.store(true, ordering: .relaxed)
            let report = try await withCheckedThrowingContinuation { continuation in
                DispatchQueue.global().async {
                    continuation.resume(with: Result { try library.cache.check() })
                }
            }
            #expect(report.problems == [])
            #expect(report.counts.changes == 1)
            #expect(failure.withLock { $0 } == nil)
            #expect(written.withLock { $0 } == 20)
            try expectSound(library.cache)
        }
    }
}
