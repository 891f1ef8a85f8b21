import Dispatch
import Foundation
import LarderFiles
import LarderGraphQL
import LarderLMDB
import LarderTestSupport
import Synchronization
import Testing

@testable import LarderRecords

@Suite("A cache at rest", .timeLimit(.minutes(10)))
struct RestTests {
    private let schema = "type Query { node(id: ID): Node } type Node { id: ID! a: Int }"
    private let text = #"{ node(id: "1") { id a } }"#

    private func with(_ body: (SampleCache) async throws -> Void) async throws {
        try await withTemporaryFolder { folder in
            let sample = try SampleCache(SchemaIndex(parsing: schema), path: folder.appending(path: "records").path)
            try await sample.write(text, data: #"{"node":{"id":"1","a":1}}"#)
            try await body(sample)
            #expect(try sample.cache.check(.everything).problems == [])
            try sample.cache.close()
        }
    }

    @Test("Reads and writes open it again, and it closes again")
    func goesOn() async throws {
        try await with { sample in
            let operation = try sample.operation(text)
            for value in 1...5 {
                try sample.cache.rest()
                #expect(try sample.cache.read(operation).response["node"]?["a"]?.int == Int64(value))
                try sample.cache.rest()
                try await sample.write(text, data: #"{"node":{"id":"1","a":\#(value + 1)}}"#)
            }
            try sample.cache.rest()
            try sample.cache.rest()
        }
    }

    @Test("What another process has changed meanwhile is read, a new generation too")
    func changedMeanwhile() async throws {
        try await with { sample in
            try sample.cache.rest()
            let other = try SampleCache(SchemaIndex(parsing: schema), path: sample.cache.generations.folder.path)
            try await other.write(text, data: #"{"node":{"id":"1","a":7}}"#)
            try await other.cache.compact()
            try other.cache.close()
            #expect(try sample.cache.read(sample.operation(text)).response["node"]?["a"]?.int == 7)
        }
    }

    @Test("Readers and writers that go on while it rests again and again see whole states")
    func busy() async throws {
        try await with { sample in
            let operation = try sample.operation(text)
            try await withThrowingTaskGroup { group in
                group.addTask {
                    for value in 0..<200 { try await sample.write(text, data: #"{"node":{"id":"1","a":\#(value)}}"#) }
                }
                group.addTask {
                    for _ in 0..<2_000 {
                        let node = try sample.cache.read(operation).response["node"]
                        #expect(node?["a"]?.int != nil)
                        await Task.yield()
                    }
                }
                group.addTask {
                    for _ in 0..<100 {
                        try sample.cache.rest()
                        await Task.yield()
                    }
                }
                try await group.waitForAll()
            }
            #expect(try sample.cache.read(operation).response["node"]?["a"]?.int == 199)
        }
    }

    @Test("A suspension and a close find it at rest")
    func suspended() async throws {
        try await with { sample in
            try sample.cache.rest()
            try await sample.cache.suspend(until: .now + .seconds(300))
            #expect(throws: RecordError.self) { try sample.cache.read(sample.operation(text)) }
            try sample.cache.resume()
            #expect(try sample.cache.read(sample.operation(text)).response["node"]?["a"]?.int == 1)
            try sample.cache.rest()
        }
    }

    @Test("Reads that wait while a cache cannot be suspended find it as it was")
    func givenUp() async throws {
        try await withTemporaryFolder { folder in
            var options = RecordCache.Options()
            options.suspensionWait = .seconds(300)
            let sample = try SampleCache(
                SchemaIndex(parsing: schema), path: folder.appending(path: "records").path, options: options)
            try await sample.write(text, data: #"{"node":{"id":"1","a":1}}"#)
            let cache = sample.cache
            let operation = try sample.operation(text)
            let identity = cache.generations.current.identity
            let hasBegun = Atomic(false)
            let mayEnd = Atomic(false)
            let count = Atomic(0)
            let failures = Mutex<[String]>([])
            let done = DispatchGroup()
            func onThread(_ body: @escaping @Sendable () throws -> Void) {
                done.enter()
                Thread.detachNewThread {
                    do { try body() } catch { failures.withLock { $0.append("\(error)") } }
                    done.leave()
                }
            }
            onThread {
                try cache.generations.withSnapshot { _, _ in
                    hasBegun.store(true, ordering: .relaxed)
                    while !mayEnd.load(ordering: .relaxed) { usleep(1_000) }
                }
            }
            try await eventually { hasBegun.load(ordering: .relaxed) }
            for _ in 0..<2 {
                onThread {
                    while !mayEnd.load(ordering: .relaxed) {
                        let value = try cache.read(operation).response["node"]?["a"]?.int
                        if value != 1 { failures.withLock { $0.append("read \(value as Any)") } }
                        count.add(1, ordering: .relaxed)
                    }
                }
            }
            for _ in 0..<20 {
                let before = count.load(ordering: .relaxed)
                while count.load(ordering: .relaxed) == before, failures.withLock(\.isEmpty) {
                    try await Task.sleep(for: .milliseconds(1))
                }
                await #expect(throws: RecordError.self) { try await cache.suspend(until: .now + .milliseconds(20)) }
            }
            mayEnd.store(true, ordering: .relaxed)
            await withCheckedContinuation { continuation in done.notify(queue: .global()) { continuation.resume() } }
            #expect(failures.withLock { $0 } == [])
            #expect(cache.generations.current.identity == identity)
            #expect(try cache.read(operation).response["node"]?["a"]?.int == 1)
            #expect(try cache.check(.everything).problems == [])
            try cache.close()
        }
    }

    @Test("A limit of the system has a code of its own", arguments: [EMFILE, ENFILE, ENOMEM])
    func systemLimit(status: Int32) {
        #expect(RecordError.translated(FileError(status, doing: "opening", path: "x")).code == .systemLimit)
    }

    @Test("The errors of a damaged cache and of a full disk have the error of the layer below as their cause")
    func causes() {
        for code in [LMDBError.Code.damaged, .diskFull] {
            let cause = RecordError.translated(LMDBError(code, "LMDB's own words", path: "x")).cause as? LMDBError
            #expect(cause?.code == code && cause?.path == "x", "\(code)")
        }
        let other = RecordError.translated(CancellationError())
        #expect(other.code == .storage && other.cause is CancellationError)
    }

    @Test("A change that is too large for one commit says so, and a table of another kind is damage")
    func translations() {
        let full = RecordError.translated(LMDBError(.transactionFull, "LMDB's own words"))
        #expect((full.code, full.message.hasSuffix("write less at a time")) == (.full, true))
        #expect(RecordError.translated(LMDBError(.tableMismatch, "")).code == .damaged)
    }

    @Test("A volume that takes no writes is told as missing rights are, and a file that is cut short as damage is")
    func translatedCodes() {
        for status in [EROFS, EACCES] {
            let error = RecordError.translated(FileError(status, doing: "opening", path: "x"))
            #expect(error.code == .notWritable, "\(status)")
        }
        #expect(RecordError.translated(LMDBError(.truncated, "")).code == .damaged)
    }

    @Test("A cache that was closed says that, also where it was open to be read only")
    func closedReader() async throws {
        try await with { sample in
            try sample.cache.close()
            var options = RecordCache.Options()
            options.isReadOnly = true
            let reader = try RecordCache(folder: sample.path, stamp: "sample", options: options)
            let codes = try [false, true].map { isClosed -> RecordError.Code? in
                if isClosed { try reader.close() }
                let error = #expect(throws: RecordError.self) { try reader.checkWritable() }
                return error?.code
            }
            #expect(codes == [.notWritable, .closed])
            try sample.reopen()
        }
    }
}
