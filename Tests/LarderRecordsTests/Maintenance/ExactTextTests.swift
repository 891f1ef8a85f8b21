import Foundation
import LarderGraphQL
import LarderTestSupport
import Testing

@testable import LarderRecords

/// Swift finds two texts equal that differ in how they compose a character; servers need not.
@Suite("Texts that differ in their bytes alone", .timeLimit(.minutes(10)))
struct ExactTextTests {
    static let composed = "caf\u{E9}"
    static let decomposed = "cafe\u{301}"

    @Test("The forms are one text to Swift and two to the cache")
    func forms() {
        #expect(Self.composed == Self.decomposed)
        #expect(!Self.composed.hasSameBytes(as: Self.decomposed))
        #expect(ExactText(Self.composed) != ExactText(Self.decomposed))
        #expect(Value.string(Self.composed) != .string(Self.decomposed))
        #expect(Value.object([Self.composed: 1]) != .object([Self.decomposed: 1]))
        #expect(Value.object([Self.composed: 1, "b": 2]) == .object(["b": 2, Self.composed: 1]))
        #expect(Literal.string(Self.composed) != .string(Self.decomposed))
        #expect(Set([Literal.string(Self.composed), .string(Self.decomposed)]).count == 2)
        #expect(RecordCache.Root.object(key: Self.composed) != .object(key: Self.decomposed))
        #expect(PolicyTarget.object([Self.composed]) != .object([Self.decomposed]))
        #expect(PolicyTarget.list([[Self.composed]]) != .list([[Self.decomposed]]))
        #expect(PolicyTarget.list([[Self.composed], []]) == .list([[Self.composed], []]))
    }

    @Test("As arguments in a document they are two fields, each with its own answer")
    func literals() async throws {
        try await withLibraryCache { library in
            let operation = try library.operation(
                """
                { a: books(search: "\(Self.composed)") { __typename id }
                  b: books(search: "\(Self.decomposed)") { __typename id } }
                """)
            #expect(operation.layout.plan.keys.count == 3)
            try await library.write(
                #"{"data":{"a":[{"__typename":"Book","id":"1"}],"b":[{"__typename":"Book","id":"2"}]}}"#, operation)
            let answer = try library.cache.read(operation).response
            #expect(answer["a"]?[0]?["id"]?.string == "1")
            #expect(answer["b"]?[0]?["id"]?.string == "2")
        }
    }

    @Test("As variables they are two fields, in the process that wrote them and in the next")
    func variables() async throws {
        try await withTemporaryFolder { folder in
            let library = try LibraryCache(folder)
            let first = try library.operation(LibraryCache.query, ["search": .string(Self.composed)])
            let second = try library.operation(LibraryCache.query, ["search": .string(Self.decomposed)])
            try await library.write(LibraryCache.books(0..<1), first)
            #expect(try library.cache.read(second).response.isComplete == false)
            try await library.write(LibraryCache.books(1..<3), second)
            #expect(try library.cache.read(first).response["books"]?.count == 1)
            #expect(try library.cache.read(second).response["books"]?.count == 2)
            try expectSound(library.cache)
            try library.cache.close()
            let again = try LibraryCache(folder)
            #expect(try again.cache.read(second).response["books"]?.count == 2)
            #expect(try again.cache.read(first).response["books"]?.count == 1)
            _ = try await again.cache.remove(field: #"books({"search":"\#(Self.composed)"})"#, of: "QUERY_ROOT")
            #expect(try again.cache.read(first).response.isComplete == false)
            #expect(try again.cache.read(second).response["books"]?.count == 2)
            try expectSound(again.cache)
        }
    }

    @Test("As ids they are two objects")
    func ids() async throws {
        try await withLibraryCache { library in
            let operation = try library.operation("{ books { __typename id title } }")
            let books = [Self.composed, Self.decomposed].enumerated().map { index, id in
                #"{"__typename":"Book","id":"\#(id)","title":"\#(index)"}"#
            }
            try await library.write(#"{"data":{"books":[\#(books.joined(separator: ","))]}}"#, operation)
            let answer = try library.cache.read(operation).response
            #expect(answer["books"]?[0]?["title"]?.string == "0")
            #expect(answer["books"]?[1]?["title"]?.string == "1")
            #expect(try library.cache.inspect.keys(type: "Book").count == 2)
            _ = try await library.cache.remove(keys: ["Book:\(Self.composed)"], as: .deleted)
            #expect(try library.cache.read(operation).response["books"]?.count == 1)
        }
    }

    @Test("As response keys they are no GraphQL names, and a field under them is passed over")
    func responseKeys() async throws {
        try await withLibraryCache { library in
            let operation = try library.operation("{ shelf { label } }")
            let others = #""\#(Self.composed)":1,"\#(Self.decomposed)":2"#
            try await library.write(#"{"data":{\#(others),"shelf":{"label":"\#(Self.decomposed)"}}}"#, operation)
            let label = try library.cache.read(operation).response["shelf"]?["label"]?.string
            #expect(label?.hasSameBytes(as: Self.decomposed) == true)
            // The other form is another value.
            let other = try await library.write(#"{"data":{"shelf":{"label":"\#(Self.composed)"}}}"#, operation)
            #expect(!other.changes.isEmpty)
        }
    }
}
