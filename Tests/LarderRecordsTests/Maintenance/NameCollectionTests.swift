import Foundation
import LarderGraphQL
import LarderTestSupport
import Testing

@testable import LarderRecords

@Suite("Names that nothing uses any more", .timeLimit(.minutes(10)))
struct NameCollectionTests {
    private let search = "query S($search: String) { books(search: $search) { id title } }"

    private func names(_ cache: RecordCache) throws -> Int {
        try cache.inspect.statistics().tables.first { $0.name == "names" }?.entries ?? 0
    }

    private func found(_ search: Int) -> String {
        #"{"data":{"books":[{"__typename":"Book","id":"\#(search % 7)","title":"T\#(search % 7)"}]}}"#
    }

    @Test("Compacting leaves behind the names of removed fields, and keeps all that are in use")
    func collected() async throws {
        try await withTemporaryFolder { folder in
            let library = try LibraryCache(folder)
            let kept = try await library.fill(12)
            for number in 0..<300 {
                try await library.write(found(number), library.operation(search, ["search": .string("s\(number)")]))
            }
            let before = try library.cache.read(kept).response
            #expect(try names(library.cache) > 300)
            for number in 0..<300 where number != 7 {
                _ = try await library.cache.remove(field: "books({\"search\":\"s\(number)\"})", of: "QUERY_ROOT")
            }
            try await library.cache.compact()
            #expect(try names(library.cache) < 50)
            try expectSound(library.cache)
            #expect(try library.cache.read(kept).response == before)
            let seven = try library.operation(search, ["search": "s7"])
            #expect(try library.cache.read(seven).response.isComplete)
            // A name that comes again has another number, and an operation that was bound before finds it.
            let again = try library.operation(search, ["search": "s9"])
            #expect(try library.cache.read(again).response.isComplete == false)
            try await library.write(found(9), again)
            #expect(try library.cache.read(again).response["books"]?[0]?["title"]?.string == "T2")
            #expect(try await library.write(found(9), again).changes.isEmpty)
            try expectSound(library.cache)
            try library.cache.close()
            let reopened = try LibraryCache(folder)
            #expect(try reopened.cache.read(seven).response.isComplete)
            #expect(try reopened.cache.read(again).response.isComplete)
            try expectSound(reopened.cache)
        }
    }

    @Test("The names of parts, and of records of many fields, are kept")
    func keptOfPartsAndSplitRecords() async throws {
        let schema = "type Query { wide: Wide } type Wide { \(ManyFields.declared) inner: Inner } type Inner { x: Int }"
        try await withSampleCache(schema) { sample in
            let (all, values) = (ManyFields.selected, ManyFields.values)
            let query = "{ wide { \(all) inner { x } } }"
            let data = "{\"wide\":{\(values),\"inner\":{\"x\":1}}}"
            try await sample.write(query, data: data)
            try await sample.cache.compact()
            #expect(try sample.json(query) == data)
            try expectSound(sample.cache)
        }
    }

    @Test("A watcher of a field that no record has waits for the whole record: the field may get another number")
    func waitingForForgotten() async throws {
        try await withSampleCache(movieSchema) { sample in
            try await sample.write("{ box { x y } }", data: #"{"box":{"x":1,"y":2}}"#)
            try await sample.write("{ box { x } }", data: #"{"box":{"x":9}}"#)
            let waiting = try sample.cache.read(sample.operation("{ box { x y } }"))
            #expect(waiting.response.missing.map(\.description) == ["box.y"])
            try await sample.cache.compact()
            let commit = try await sample.write("{ box { y } }", data: #"{"box":{"y":5}}"#)
            let box = try #require(commit.changes.fields.first?.record)
            #expect(waiting.dependencies.generation == commit.generation)
            #expect(waiting.dependencies.fieldSet(of: box)?.fields.first == RecordField.any)
        }
    }
}
