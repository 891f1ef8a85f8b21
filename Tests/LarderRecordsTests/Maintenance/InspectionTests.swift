import Foundation
import LarderGraphQL
import LarderTestSupport
import Testing

@testable import LarderRecords

@Suite("Inspection and changes", .timeLimit(.minutes(10)))
struct InspectionTests {
    @Test("Keys are listed by type and prefix, up to a limit")
    func keys() async throws {
        try await withLibraryCache { library in
            try await library.fill(12)
            let inspect = library.cache.inspect
            #expect(try inspect.keys(type: "Author") == (0..<5).map { "Author:\($0)" })
            #expect(try inspect.keys(prefix: "Book:1") == ["Book:1", "Book:10", "Book:11"])
            #expect(try inspect.keys(type: "Book", limit: 2) == ["Book:0", "Book:1"])
            #expect(try inspect.keys(type: "Nothing") == [])
            #expect(try inspect.keys().last == "QUERY_ROOT")
            _ = try await library.cache.remove(keys: ["Book:1"], as: .deleted)
            #expect(try inspect.keys(prefix: "Book:1") == ["Book:10", "Book:11"])
            #expect(try inspect.keys(prefix: "Book:1", includingTombstones: true).count == 3)
        }
    }

    @Test("Keys are listed by a prefix of any length")
    func longPrefixes() async throws {
        try await withLibraryCache { library in
            let operation = try library.operation("{ book(id: 1) { id } }")
            let start = String(repeating: "long ", count: 100)
            for id in ["\(start)a", "\(start)b", String(start.dropLast(20))] {
                try await library.write(#"{"data":{"book":{"__typename":"Book","id":"\#(id)"}}}"#, operation)
            }
            let inspect = library.cache.inspect
            #expect(try inspect.keys(prefix: "Book:\(start.prefix(450))").count == 3)
            #expect(try Set(inspect.keys(prefix: "Book:\(start)")) == ["Book:\(start)a", "Book:\(start)b"])
            #expect(try inspect.keys(prefix: "Book:\(start)b") == ["Book:\(start)b"])
        }
    }

    @Test("A deleted object is shown as a tombstone, and is none once it is evicted")
    func tombstone() async throws {
        try await withTemporaryFolder { folder in
            let library = try LibraryCache(folder)
            try await library.fill(8)
            _ = try await library.cache.remove(keys: ["Book:6"], as: .deleted)
            #expect(try library.cache.inspect.record(key: "Book:6")?.kind == .tombstone)
            #expect(try library.cache.inspect.record(key: "Book:5")?.kind == .entity)
            _ = try await library.cache.remove(keys: ["Book:6"], as: .evicted)
            #expect(try library.cache.inspect.record(key: "Book:6") == nil)
            let root = try #require(try library.cache.inspect.record(key: "QUERY_ROOT"))
            guard case .list(let books)? = root.fields.first?.value, case .reference(let gone) = books[6] else {
                Issue.record("\(root.fields)")
                return
            }
            #expect(books[5] == .reference("Book:5"))
            #expect(gone.first == "#" && UInt64(gone.dropFirst()) != nil, "\(gone)")
        }
    }

    @Test("A record shows its fields, and the ways to what it holds", arguments: [false, true])
    func record(isCompacted: Bool) async throws {
        try await withLibraryCache { library in
            try await library.fill(8)
            if isCompacted { try await library.cache.compact() }
            let inspect = library.cache.inspect
            let book = try #require(try inspect.record(key: "Book:6"))
            #expect(book.kind == .entity)
            #expect(book.type == "Book")
            #expect(book.fields.map(\.name) == ["author", "cover", "id", "meta", "notes", "text", "title"])
            let fields = Dictionary(uniqueKeysWithValues: book.fields.map { ($0.name, $0.value) })
            #expect(fields["title"] == .string("Book 6"))
            #expect(fields["author"] == .reference("Author:1"))
            #expect(fields["cover"] == .part("Book:6.cover"))
            #expect(fields["notes"] == .list([.part("Book:6.notes[0]"), .part("Book:6.notes[1]")]))
            let mark = try #require(try inspect.record(key: "Book:6.notes[1].marks[2]"))
            #expect(mark.kind == .part)
            #expect(mark.type == "Mark")
            #expect(mark.fields == [.init(name: "page", value: .int(6))])
            #expect(mark.key == "Book:6.notes[1].marks[2]")
            let size = try #require(try inspect.record(key: "Book:6.cover.size"))
            #expect(size.fields.first == .init(name: "height", value: .int(6_000_000_042)))
            let root = try #require(try inspect.record(key: "QUERY_ROOT"))
            #expect(root.fields.map(\.name) == ["books"])
            let json = String(decoding: fields["notes"]?.json ?? [], as: UTF8.self)
            #expect(json == #"[{"$part":"Book:6.notes[0]"},{"$part":"Book:6.notes[1]"}]"#)
            #expect(try inspect.record(key: "Book:99") == nil)
            #expect(try inspect.record(key: "Book:6.notes[9]") == nil)
            #expect(try inspect.record(key: "Book:6.title") == nil)
        }
    }

    @Test("A part is found by its path where the path begins with the key of another object as well")
    func pathBeginningWithAnotherKey() async throws {
        try await withLibraryCache { library in
            try await library.fill(8)
            let operation = try library.operation("{ book(id: 1) { id title } }")
            try await library.write(
                #"{"data":{"book":{"__typename":"Book","id":"6.cover","title":"Other"}}}"#, operation)
            #expect(try library.cache.inspect.record(key: "Book:6.cover")?.kind == .entity)
            let size = try #require(try library.cache.inspect.record(key: "Book:6.cover.size"))
            #expect(size.fields.first == .init(name: "height", value: .int(6_000_000_042)))
        }
    }

    @Test("Types are counted with what they take, tables with their entries")
    func statistics() async throws {
        try await withLibraryCache { library in
            try await library.fill(8)
            let types = try library.cache.inspect.types()
            #expect(types.map(\.type) == ["Author", "Book", "Cover", "Mark", "Note", "Query", "Size"])
            #expect(types.map(\.entities) == [5, 8, 0, 0, 0, 1, 0])
            #expect(types.first { $0.type == "Cover" }?.parts == 8)
            #expect(types.allSatisfy { $0.bytes > 0 })
            let statistics = try library.cache.inspect.statistics()
            let tables = Dictionary(uniqueKeysWithValues: statistics.tables.map { ($0.name, $0.entries) })
            #expect(tables["keys"] == 14)
            #expect(tables["records"] == types.reduce(0) { $0 + $1.entities + $1.parts })
            #expect(tables["names"] == tables["texts"])
            #expect(try statistics.position == library.cache.position)
            #expect(statistics.fileSize > 0)
        }
    }

    @Test("The statistics say how long the data file is")
    func fileSize() async throws {
        try await withTemporaryFolder { folder in
            let library = try LibraryCache(folder)
            try await library.fill(8)
            let file = try Data(contentsOf: dataFile(in: folder))
            #expect(try library.cache.inspect.statistics().fileSize == Int64(file.count))
        }
    }

    @Test("Changes since a position are told one by one, each once")
    func changes() async throws {
        try await withLibraryCache { library in
            let start = try library.cache.position
            let operation = try library.operation()
            let first = try await library.write(LibraryCache.books(0..<2), operation)
            let second = try await library.write(LibraryCache.books(0..<3), operation)
            guard case .changes(let all) = try library.cache.changes(since: start) else {
                Issue.record("everything")
                return
            }
            #expect(all.map(\.number) == [first.position.number, second.position.number])
            #expect(all.map(\.set.fields) == [first.changes.fields, second.changes.fields])
            guard case .changes(let rest) = try library.cache.changes(since: first.position) else {
                Issue.record("everything")
                return
            }
            #expect(rest.map(\.number) == [second.position.number])
            let future = ChangePosition(epoch: start.epoch, number: 100)
            #expect(try library.cache.changes(since: future) == .everything)
            let other = ChangePosition(epoch: start.epoch &+ 1, number: 0)
            #expect(try library.cache.changes(since: other) == .everything)
        }
    }

    @Test("A position older than the log reads as everything")
    func tail() async throws {
        try await withLibraryCache { library in
            let start = try library.cache.position
            let operation = try library.operation("{ shelf { label } }")
            for number in 0..<1100 {
                try await library.write(#"{"data":{"shelf":{"label":"\#(number)"}}}"#, operation)
            }
            #expect(try library.cache.changes(since: start) == .everything)
            let late = ChangePosition(epoch: start.epoch, number: 1000)
            guard case .changes(let rest) = try library.cache.changes(since: late) else {
                Issue.record("everything")
                return
            }
            #expect(rest.count == 100)
        }
    }
}
