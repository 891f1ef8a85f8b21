import Foundation
import Larder
import LarderFiles
import LarderTestSupport
import Testing

@Suite("Forgotten caches that cannot be removed", .timeLimit(.minutes(10)))
struct UnremovedCacheTests {
    @Test("An environment that succeeds the unnamed one takes over no cache that is marked as forgotten")
    func marked() async throws {
        try await withTemporaryFolder { folder in
            let title = GraphQLFragment("fragment F on Recipe { title }")
            let schema = try Schema(parsing: fixtureSchema)
            let store = try Store.open(at: folder, schema: schema)
            try await store.partition().write("Recipe:1", title, ["title": "Soup"])
            try store.close()
            // As a process leaves it that is killed while it forgets the partition.
            let mark = folder.appending(path: "records/main/forgotten")
            try #require(FileManager.default.createFile(atPath: mark.path, contents: nil))
            let again = try Store.open(at: folder, schema: schema)
            let app = try again.partition(of: backend("a", succeeds: .unnamed))
            let current = try #require(try again.current())
            #expect(current.name != "main")
            await expectCode(.miss) { _ = try app.read("Recipe:1", title) }
            try again.close()
        }
    }

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

    #if os(Linux)
    @Test("Forgetting closes the cache of a partition that this process has open")
    func closed() async throws {
        try await withTemporaryFolder { folder in
            let store = try Store.open(at: folder, schema: try Schema(parsing: fixtureSchema))
            let title = GraphQLFragment("fragment F on Recipe { title }")
            let app = try store.partition(of: backend("a"))
            try await app.write("Recipe:1", title, ["title": "Soup"])
            _ = try await store.switch(to: backend("b"))
            let current = try #require(try store.current()).name
            func others() throws -> [String] {
                try openFiles(below: folder.appending(path: "records")).filter { !$0.contains(current) }
            }
            #expect(try !others().isEmpty)
            try await store.forget(environment: "a")
            #expect(try others() == [])
            withExtendedLifetime(app) {}
            try store.close()
        }
    }
    #endif
}
