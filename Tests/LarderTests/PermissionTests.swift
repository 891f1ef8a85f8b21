import Foundation
import LarderRecords
import LarderTestSupport
import Testing

@testable import Larder

private let schemaText = """
    type Book { id: ID! title: String! pages: [Page!]! }
    type Page { text: String! }
    type Query { books: [Book!]! }
    """
private let shelf = GraphQLOperation("{ books { id title pages { text } } }")

private func books(_ number: Int) -> [UInt8] {
    let books = (0..<20).map {
        #"{"id":"\#($0)","title":"\#(number)","pages":[{"text":"\#(number) "},{"text":"\#(number)"}]}"#
    }
    return Array(#"{"books":[\#(books.joined(separator: ","))]}"#.utf8)
}

/// Runs `body` with a store's folder in which nobody may write, and everybody may read.
private func withForeignFolder(keepingOpen: Bool = false, _ body: (URL, Partition) async throws -> Void) async throws {
    try await withTemporaryFolder { folder in
        let place = folder.appending(path: "store")
        let store = try Store.open(at: place, schema: try Schema(parsing: schemaText))
        let app = try store.partition()
        try await app.write(shelf, json: books(1))
        if !keepingOpen { try store.close() }
        try setPermissions(of: folder, isWritable: false)
        defer { try? setPermissions(of: folder, isWritable: true) }
        try await body(place, app)
        if keepingOpen { try store.close() }
    }
}

private func setPermissions(of folder: URL, isWritable: Bool) throws {
    let manager = FileManager.default
    func set(_ path: String) throws {
        var isFolder: ObjCBool = false
        guard manager.fileExists(atPath: path, isDirectory: &isFolder) else { return }
        let permissions = (isFolder.boolValue ? 0o555 : 0o444) | (isWritable ? 0o200 : 0)
        try manager.setAttributes([.posixPermissions: permissions], ofItemAtPath: path)
    }
    try set(folder.path)
    for name in try manager.subpathsOfDirectory(atPath: folder.path) {
        try set(folder.appending(path: name).path)
    }
}

private func names(in folder: URL) throws -> Set<String> {
    Set(try FileManager.default.subpathsOfDirectory(atPath: folder.path))
}

@Suite(
    "A folder that belongs to another user", .enabled(if: ChildProgram.isBuilt, "\(ChildProgram.requirement)"),
    .timeLimit(.minutes(10)))
struct PermissionTests {
    @Test("Opened read-only it is read, and nothing is made in it")
    func reading() async throws {
        try await withForeignFolder { place, _ in
            let before = try names(in: place)
            #expect(try await ChildProgram.run(place, "stranger", "read") == ["reads 1"])
            #expect(try names(in: place) == before)
        }
    }

    @Test("It is read also where its lock files did not come with it")
    func readingWithoutLocks() async throws {
        try await withForeignFolder { place, _ in
            let generation = place.appending(path: "records/main/1")
            try setPermissions(of: generation, isWritable: true)
            for name in ["lock.mdb", "open.lock", "write.lock"] {
                try FileManager.default.removeItem(at: generation.appending(path: name))
            }
            try setPermissions(of: generation, isWritable: false)
            let before = try names(in: place)
            #expect(try await ChildProgram.run(place, "stranger", "read") == ["reads 1"])
            #expect(try names(in: place) == before)
        }
    }

    @Test("Opening it for writing is a typed error that says what would help, and makes nothing")
    func writing() async throws {
        try await withForeignFolder { place, _ in
            let before = try names(in: place)
            let said = try await ChildProgram.run(place, "stranger", "write")
            #expect(said.count == 1)
            #expect(said.first?.hasPrefix("refused records.notWritable") == true)
            #expect(said.first?.contains("access") == true)
            #expect(try names(in: place) == before)
        }
    }

    @Test("No store is made where none may be")
    func making() async throws {
        try await withForeignFolder { place, _ in
            let absent = place.appending(path: "absent")
            let said = try await ChildProgram.run(absent, "stranger", "write")
            #expect(said.first?.hasPrefix("refused records.notWritable") == true)
            #expect(!FileManager.default.fileExists(atPath: absent.path))
        }
    }

    @Test("A folder that may not be looked into is no missing store")
    func unreadable() async throws {
        try await withForeignFolder { place, _ in
            let cache = place.appending(path: "records/main").path
            try FileManager.default.setAttributes([.posixPermissions: 0o000], ofItemAtPath: cache)
            let said = try await ChildProgram.run(place, "stranger", "read")
            #expect(said.first?.hasPrefix("refused records.notWritable") == true)
            try FileManager.default.setAttributes([.posixPermissions: 0o555], ofItemAtPath: cache)
        }
    }

    @Test("A reader whom writers cannot see sees whole commits, waits for the one that writes, and is waited for")
    func unseen() async throws {
        try await withForeignFolder(keepingOpen: true) { place, app in
            try await withTemporaryFolder { folder in
                let (input, said) = (Pipe.uninherited(), folder.appending(path: "said"))
                let child = try ChildProgram.start(place, "stranger", "linger", input: input, output: said)
                defer {
                    kill(child.processIdentifier, SIGKILL)
                    child.waitUntilExit()
                }
                /// The child's answer to a line, which comes as one more of its own.
                let answer: @Sendable (String) throws -> String? = { line in
                    let count = try ChildProgram.lines(of: said).count
                    input.fileHandleForWriting.write(Data((line + "\n").utf8))
                    for _ in 0..<2_000 {
                        let lines = try ChildProgram.lines(of: said)
                        if lines.count > count { return lines.last }
                        usleep(5_000)
                    }
                    return nil
                }
                for _ in 0..<2_000 where try ChildProgram.lines(of: said).isEmpty { usleep(5_000) }
                #expect(try ChildProgram.lines(of: said) == ["reads 1"])
                for number in 2..<30 {
                    try await app.write(shelf, json: books(number))
                    #expect(try answer("then") == "then \(number)")
                }
                try await app.update(shelf) { (_) throws in
                    #expect(try answer("meanwhile") == "meanwhile records.busy")
                }
                #expect(try answer("after") == "after 29")
                try input.fileHandleForWriting.close()
                await child.ended()
                #expect(child.terminationStatus == 0)
                #expect(try app.records.check().isSound)
            }
        }
    }
}
