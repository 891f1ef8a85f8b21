import Foundation
import LarderFiles
import LarderGraphQL
import LarderTestSupport
import Synchronization
import Testing

@testable import LarderRecords

@Suite("Caches that are stamped while they are open", .timeLimit(.minutes(10)))
struct StampedCacheTests {
    private static func operation() throws -> BoundOperation {
        let schema = try SchemaIndex(parsing: "type Query { number: Int }")
        return try CompiledOperation(operation: nil, in: Document(parsing: "{ number }"), schema).bound()
    }

    private static func write(_ number: Int, to cache: RecordCache) async throws {
        let operation = try operation()
        let body = Array(#"{"data":{"number":\#(number)}}"#.utf8)
        _ = try await cache.write(try ParsedResponse.parse(body, along: operation.layout), of: operation)
    }

    private static func isStamped(_ folder: URL) -> Bool {
        FileManager.default.fileExists(atPath: folder.appending(path: "1/clean.stamp").path)
    }

    @Test("A cache is stamped some time after its last write, and before that when a caller asks for it")
    func idle() async throws {
        for delay in [Duration.milliseconds(5), .seconds(3600)] {
            try await withTemporaryFolder { folder in
                var options = RecordCache.Options()
                options.idleDelay = delay
                let cache = try RecordCache(folder: folder.path, stamp: "stamping", options: options)
                for number in 1...20 { try await Self.write(number, to: cache) }
                if delay < .seconds(1) {
                    try await eventually { Self.isStamped(folder) }
                } else {
                    #expect(!Self.isStamped(folder))
                    try await cache.stamp()
                }
                #expect(Self.isStamped(folder))
                try cache.close()
                await #expect(throws: RecordError.self) { try await cache.stamp() }
            }
        }
    }

    @Test("A cache is stamped after two seconds without a write by default")
    func standardDelay() {
        #expect(RecordCache.Options().idleDelay == .seconds(2))
    }

    @Test("A second write delays the stamp of a cache by the whole idle delay")
    func writtenAgain() async throws {
        try await withTemporaryFolder { folder in
            let stamps = Mutex<[SuspendingClock.Instant]>([])
            var options = RecordCache.Options()
            options.idleDelay = .milliseconds(300)
            options.files = FileSystem { call in
                if call.kind == .write, call.path.contains("/clean.stamp") { stamps.withLock { $0.append(.now) } }
                return nil
            }
            let cache = try RecordCache(folder: folder.path, stamp: "stamping", options: options)
            try await Self.write(1, to: cache)
            // The first write's wait has begun, and is not over.
            try await Task.sleep(for: .milliseconds(100))
            let again = SuspendingClock.now
            try await Self.write(2, to: cache)
            try await eventually { Self.isStamped(folder) }
            let stamped = try #require(stamps.withLock { $0.last })
            #expect(again.duration(to: stamped) >= .milliseconds(300))
            try cache.close()
        }
    }

    @Test("An answer that comes again within the same second writes nothing to the cache's file")
    func sameAnswer() async throws {
        try await withTemporaryFolder { folder in
            let writes = Mutex(0)
            var options = RecordCache.Options()
            options.idleDelay = .seconds(3600)
            options.now = { 1_800_000_000_000 }
            options.files = FileSystem { call in
                if call.kind == .write, call.path.hasSuffix("/data.mdb") { writes.withLock { $0 += 1 } }
                return nil
            }
            let cache = try RecordCache(folder: folder.path, stamp: "stamping", options: options)
            try await Self.write(1, to: cache)
            try await cache.stamp()
            let before = writes.withLock { $0 }
            try await Self.write(1, to: cache)
            #expect(writes.withLock { $0 } == before)
            #expect(Self.isStamped(folder))
            // Another answer does write.
            try await Self.write(2, to: cache)
            #expect(writes.withLock { $0 } > before)
            try cache.close()
        }
    }

    @Test("A cache that was stamped is stamped again after each later write")
    func idleAgain() async throws {
        try await withTemporaryFolder { folder in
            var options = RecordCache.Options()
            options.idleDelay = .milliseconds(5)
            let cache = try RecordCache(folder: folder.path, stamp: "stamping", options: options)
            for number in 1...3 {
                try await Self.write(number, to: cache)
                try await eventually { Self.isStamped(folder) }
            }
            try cache.close()
        }
    }

    @Test(
        "A process that is killed before any call of the system, while it writes and stamps, leaves what it has written",
        .enabled(if: ChildProgram.isBuilt, "\(ChildProgram.requirement)"))
    func killed() async throws {
        try await withTemporaryFolder { folder in
            let (place, said) = (folder.appending(path: "records"), folder.appending(path: "said"))
            let operation = try Self.operation()
            var (call, isWhole, written) = (0, false, 0)
            while !isWhole {
                call += 1
                try await ChildProgram.start(place, "stamp", "\(call)", output: said).ended()
                let lines = try ChildProgram.lines(of: said)
                isWhole = lines.count { $0 == "stamped" } == 3
                written = lines.last { $0.hasPrefix("wrote") }.flatMap { Int($0.dropFirst(6)) } ?? written
                let cache = try RecordCache(folder: place.path, stamp: "stamping")
                #expect(try cache.check().problems == [], "killed before call \(call)")
                let number = try cache.read(operation).response["number"]?.int ?? 0
                #expect(number == written || number == written + 1, "killed before call \(call)")
                written = Int(number)
                // Nothing was written after the last stamp, by a process that did not close the cache.
                if isWhole { #expect(!cache.generations.current.environment.wasVerified) }
                try cache.close()
            }
            // So many calls are made at least; a program that makes fewer does not do what it is to do.
            #expect(call > 20)
        }
    }
}
