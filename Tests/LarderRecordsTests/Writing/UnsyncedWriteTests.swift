import Foundation
import LarderFiles
import LarderGraphQL
import LarderTestSupport
import Synchronization
import Testing

@testable import LarderRecords

@Suite("Writes that could not be synced", .timeLimit(.minutes(10)))
struct UnsyncedWriteTests {
    /// Makes taking the writer's lock fail where it is taken a second time, which a sync does.
    private final class Fault: Sendable {
        private let locks = Mutex<Int?>(nil)

        func arm() { locks.withLock { $0 = 0 } }

        func failure(_ call: FileCall) -> FileFault? {
            guard call.kind == .lock, call.path.hasSuffix("write.lock") else { return nil }
            return locks.withLock { locks in
                guard let count = locks else { return nil }
                locks = count + 1
                return count == 1 ? .failure(EIO) : nil
            }
        }
    }

    @Test("A commit that could not be synced fails for its caller, at each try, and observers hear of it all the same")
    func told() async throws {
        try await withTemporaryFolder { folder in
            let fault = Fault()
            var options = RecordCache.Options()
            options.files = FileSystem(injecting: fault.failure)
            let sample = try SampleCache(SchemaIndex(parsing: movieSchema), path: folder.path, options: options)
            try await sample.writeMovie("1", title: "Old")
            let told = Mutex<[Commit]>([])
            sample.cache.observe { commit in told.withLock { $0.append(commit) } }
            let operation = try sample.operation("{ movie(id: 1) { id title } }")
            let text = #"{"data":{"movie":{"__typename":"Movie","id":"1","title":"New"}}}"#
            let answer = try ParsedResponse.parse(Array(text.utf8), along: operation.layout)
            let key = try #require(AppliedKey("k"))
            // The same answer again relies on what was not synced.
            for _ in 0..<2 {
                fault.arm()
                await #expect(throws: RecordError.self) {
                    _ = try await sample.cache.write(answer, of: operation, applying: key, synchronizing: true)
                }
                #expect(try sample.title("1") == #"{"title":"New"}"#)
                #expect(told.withLock { $0.count } == 1)
            }
            let again = try await sample.cache.write(answer, of: operation, applying: key, synchronizing: true)
            #expect(again.earlier?.kind == .applied)
            try sample.cache.close()
        }
    }
}
