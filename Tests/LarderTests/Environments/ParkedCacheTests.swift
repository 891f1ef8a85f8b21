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

    @Test("The caches of two partitions stay open while the program goes to and fro between them")
    func toAndFro() async throws {
        try await withTemporaryFolder { folder in
            let store = try Store.open(at: folder, schema: try Schema(parsing: fixtureSchema))
            var names: Set<String> = []
            for number in 0..<12 {
                let destination = backend(number.isMultiple(of: 2) ? "a" : "b")
                let app =
                    number == 0
                    ? try store.partition(of: destination)
                    : try await store.switch(to: destination).partition
                try await app.write(
                    "Recipe:1", GraphQLFragment("fragment F on Recipe { title }"), ["title": "Soup"])
                names.insert(try #require(try store.current()).name)
                let files = try openFiles(below: folder)
                for name in names {
                    #expect(files.contains { $0.contains("/records/\(name)/") }, "switch \(number)")
                }
            }
            #expect(names.count == 2)
            try store.close()
        }
    }

    @Test("A suspended store has no file of a parked partition open, which is whole again after resume")
    func suspended() async throws {
        try await withTemporaryFolder { folder in
            let title = GraphQLFragment("fragment F on Recipe { title }")
            let store = try Store.open(at: folder, schema: try Schema(parsing: fixtureSchema))
            let a = try store.partition(of: backend("a"))
            try await a.write("Recipe:1", title, ["title": "Soup"])
            let b = try await store.switch(to: backend("b")).partition
            try await b.write("Recipe:1", title, ["title": "Stew"])
            try await store.suspend(within: .seconds(300))
            #expect(try openFiles(below: folder) == [])
            try store.resume()
            #expect(try b.read("Recipe:1", title)["title"]?.string == "Stew")
            let back = try await store.switch(to: backend("a")).partition
            #expect(try back.read("Recipe:1", title)["title"]?.string == "Soup")
            try store.close()
        }
    }
}
#endif
