import Foundation
import Larder
import LarderFiles
import LarderTestSupport
import Testing

@Suite("Forgotten caches that cannot be removed", .timeLimit(.minutes(10)))
struct UnremovedCacheTests {
    @Test("Forgetting says that a cache is still on disk where it cannot be removed, and the next one removes it")
    func stillThere() async throws {
        try await withTemporaryFolder { folder in
            let isFailing = Flag()
            var options = Store.Options()
            options.files = FileSystem(injecting: { call in
                let isOfCache = (call.path as NSString).deletingLastPathComponent.hasSuffix("/records")
                return isFailing.isSet && call.kind == .rename && isOfCache ? .failure(EIO) : nil
            })
            let store = try Store.open(at: folder, schema: try Schema(parsing: fixtureSchema), options: options)
            let title = GraphQLFragment("fragment F on Recipe { title }")
            try await store.partition(of: backend("a")).write("Recipe:1", title, ["title": "Soup"])
            let forgotten = try #require(try store.partitionIdentities().first { $0.environment == "a" }).name
            func isThere() -> Bool {
                FileManager.default.fileExists(atPath: folder.appending(path: "records/\(forgotten)").path)
            }
            for name in ["b", "c"] { _ = try await store.switch(to: backend(name)) }
            isFailing.set()
            let error = await #expect(throws: LarderError.self) { try await store.forget(environment: "a") }
            #expect(error?.code == .notRemoved, "\(error.map { "\($0)" } ?? "no error")")
            #expect(error?.cause != nil)
            #expect(isThere())
            #expect(try Set(store.partitionIdentities().map(\.environment)) == ["b", "c"])
            isFailing.set(false)
            try await store.forget(environment: "b")
            #expect(!isThere())
            try store.close()
        }
    }
}
