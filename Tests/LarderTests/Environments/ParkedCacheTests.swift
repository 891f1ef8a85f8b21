#if os(Linux)
import Foundation
import Larder
import LarderTestSupport
import Testing

@Suite("Caches of parked partitions", .timeLimit(.minutes(10)))
struct ParkedCacheTests {
    @Test("A store closes the cache of the partition that was parked first, and leaves those open that came after it")
    func parkedFirst() async throws {
        try await withTemporaryFolder { folder in
            let store = try Store.open(at: folder, schema: try Schema(parsing: fixtureSchema))
            var names: [String] = []
            for number in 0..<8 {
                let app =
                    number == 0
                    ? try store.partition(of: backend("e0"))
                    : try await store.switch(to: backend("e\(number)")).partition
                try await app.write(
                    "Recipe:1", GraphQLFragment("fragment F on Recipe { title }"), ["title": "Soup"])
                names.append(try #require(try store.current()).name)
            }
            let all = names
            func openNames() throws -> [String] {
                let files = try openFiles(below: folder)
                return all.filter { name in files.contains { $0.contains("/records/\(name)/") } }
            }
            // The current one's, and those of four that are parked.
            try await eventually { try openNames().count <= 5 }
            #expect(try openNames() == Array(all.suffix(5)))
            try store.close()
        }
    }
}
#endif
