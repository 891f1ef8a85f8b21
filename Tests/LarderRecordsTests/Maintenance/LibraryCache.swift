import Foundation
import LarderGraphQL
import LarderTestSupport
import Testing

@testable import LarderRecords

/// A small cache of books that the tests of maintenance work on.
struct LibraryCache {
    static let schemaText = """
        type Query {
          book(id: ID!): Book
          books(search: String, first: Int): [Book]
          shelf: Shelf
          numbers(of: String): [[Float]]
        }
        type Book { id: ID!, title: String, text: String, author: Author, notes: [Note!], cover: Cover, meta: JSON }
        type Author { id: ID!, name: String }
        type Note { text: String, marks: [Mark] }
        type Mark { page: Int }
        type Cover { color: String, size: Size }
        type Size { width: Int, height: Int }
        type Shelf { label: String, covers: [[Cover]] }
        scalar JSON
        """

    static let query = """
        query Books($search: String) {
          books(search: $search) {
            __typename id title text author { __typename id name }
            notes { text marks { page } } cover { color size { width height } } meta
          }
        }
        """

    let schema: SchemaIndex
    let cache: RecordCache

    init(_ folder: URL, options: RecordCache.Options = .patient) throws {
        schema = try SchemaIndex(parsing: Self.schemaText)
        cache = try RecordCache(folder: folder.path, stamp: "library", options: options)
    }

    func operation(_ text: String = query, _ variables: [String: Value] = [:]) throws -> BoundOperation {
        try CompiledOperation(operation: nil, in: Document(parsing: text), schema).bound(variables)
    }

    @discardableResult
    func write(_ json: String, _ operation: BoundOperation) async throws -> Commit {
        try await cache.write(ParsedResponse.parse(Array(json.utf8), along: operation.layout), of: operation)
    }

    /// Books with parts, long and short texts, and authors that they share.
    static func books(_ range: Range<Int>, revision: Int = 0) -> String {
        let books = range.map { number in
            let text = String(repeating: "Line \(number) of revision \(revision). ", count: number % 7 * 20)
            let notes = (0..<number % 4).map { note in
                #"{"text":"note \#(note) of \#(number)","marks":[{"page":\#(note)},null,{"page":\#(number)}]}"#
            }
            return """
                {"__typename":"Book","id":"\(number)","title":"Book \(number)","text":"\(text)",
                "author":{"__typename":"Author","id":"\(number % 5)","name":"Author \(number % 5)"},
                "notes":[\(notes.joined(separator: ","))],
                "cover":{"color":"c\(number)","size":{"width":\(number),"height":\(number * 1_000_000_007)}},
                "meta":{"n":[\(number),1.5],"deep":{"text":"\(text.prefix(300))"}}}
                """
        }
        return #"{"data":{"books":[\#(books.joined(separator: ","))]}}"#
    }

    @discardableResult
    func fill(_ count: Int = 40, revision: Int = 0) async throws -> BoundOperation {
        let operation = try operation()
        try await write(Self.books(0..<count, revision: revision), operation)
        return operation
    }
}

/// Runs `body` with an empty cache of books, and checks all of it afterwards.
func withLibraryCache(
    sourceLocation: SourceLocation = #_sourceLocation, _ body: (LibraryCache) async throws -> Void
) async throws {
    try await withTemporaryFolder { folder in
        let library = try LibraryCache(folder)
        try await body(library)
        try expectSound(library.cache, sourceLocation: sourceLocation)
    }
}

/// Every test that wrote ends with this: the whole cache is as it must be.
func expectSound(
    _ cache: RecordCache, _ comment: Comment? = nil, sourceLocation: SourceLocation = #_sourceLocation
) throws {
    let report = try cache.check()
    #expect(report.problems == [], comment, sourceLocation: sourceLocation)
    #expect(report.isSound, comment, sourceLocation: sourceLocation)
}

/// What a crash at this moment would leave: the pages that a process wrote belong to the kernel.
func crashCopy(of folder: URL, to copy: URL) throws {
    try FileManager.default.copyItem(at: folder, to: copy)
}

func dataFile(in folder: URL) throws -> URL {
    let numbers = try FileManager.default.contentsOfDirectory(atPath: folder.path).compactMap(Int.init).sorted()
    return folder.appending(path: "\(try #require(numbers.last))/data.mdb")
}
