import Foundation
import Larder
import LarderFiles
import LarderTestSupport
import Testing

@Suite("Temporary stores", .timeLimit(.minutes(5)))
struct TemporaryStoreTests {
    private func exists(_ folder: URL) -> Bool { FileManager.default.fileExists(atPath: folder.path) }

    /// What lies where temporary stores are made, and belongs to this one.
    private func leftovers(of store: URL) throws -> [String] {
        let own = store.deletingLastPathComponent().lastPathComponent
        return try FileManager.default.contentsOfDirectory(atPath: TemporaryFolder.parent.path).filter {
            $0.hasPrefix(own)
        }
    }

    @Test("A temporary store is empty, works as any other, and its files and keys are gone once it is closed")
    func closed() async throws {
        let store = try Store.temporary(schemaText: [fixtureSchema])
        let app = try store.partition()
        try await app.write(recipeList, json: soupAndBread("Soup"))
        #expect(try app.read(recipeList)["recipes"]?[0]?["title"]?.string == "Soup")
        // The first sign-in makes a key, beside the store's folder.
        try await app.session.signIn(InMemoryIdentityProvider().signIn("ann"), within: soon)
        #expect(exists(store.folder) && exists(store.folder.appendingPathExtension("key")))
        let other = try Store.temporary(schemaText: [fixtureSchema])
        #expect(throws: LarderError.self) { try other.partition().read(recipeList) }
        try other.close()
        #expect(exists(store.folder))
        try store.close()
        #expect(try leftovers(of: store.folder) == [])
    }

    #if os(Linux)
    @Test(
        "A temporary store is in memory where the system has a writable /dev/shm",
        .enabled(if: FileManager.default.isWritableFile(atPath: "/dev/shm"), "needs a writable /dev/shm"))
    func inMemory() throws {
        let store = try Store.temporary(schemaText: [fixtureSchema])
        _ = try store.partition()
        #expect(store.folder.path.hasPrefix("/dev/shm/") && exists(store.folder))
        try store.close()
    }
    #endif

    @Test("A temporary store that is never closed lives as long as a partition of it is held, and no longer")
    func released() async throws {
        let folder: URL
        do {
            let app: Partition
            do {
                let store = try Store.temporary(schemaText: [fixtureSchema])
                folder = store.folder
                app = try store.partition()
            }
            try await app.write(recipeList, json: soupAndBread("Soup"))
            #expect(exists(folder))
            #expect(try app.read(recipeList)["recipes"]?[0]?["title"]?.string == "Soup")
        }
        try await eventually { try leftovers(of: folder) == [] }
    }

    @Test("What a killed process left is removed by the next temporary store, and no store that is in use")
    func killed() async throws {
        try await withTemporaryFolder { parent in
            let used = try TemporaryFolder(in: parent)
            // A process that is gone holds no lock.
            let left = parent.appending(path: "larder-temporary-of-a-killed-process")
            try FileManager.default.createDirectory(
                at: left.appending(path: "store"), withIntermediateDirectories: true)
            try Data().write(to: left.appendingPathExtension("lock"))
            try Data("mine".utf8).write(to: parent.appending(path: "larder-notes.lock"))
            let next = try TemporaryFolder(in: parent)
            #expect(exists(used.url) && exists(next.url) && !exists(left))
            used.remove()
            next.remove()
            #expect(try FileManager.default.contentsOfDirectory(atPath: parent.path) == ["larder-notes.lock"])
        }
    }

    @Test("Where no folder can be made the error says where")
    func refused() async throws {
        try await withTemporaryFolder { parent in
            let file = parent.appending(path: "file")
            try Data().write(to: file)
            let error = #expect(throws: LarderError.self) { try TemporaryFolder(in: file) }
            #expect(error?.code == .recordsNotWritable && error?.message.contains(file.path) == true)
        }
    }

    @Test("A temporary store is opened with the options that it is given")
    func options() async throws {
        let clock = TestClock()
        var options = Store.Options()
        options.now = { clock.now }
        let store = try Store.temporary(schemaText: [fixtureSchema], options: options)
        let app = try store.partition()
        try await app.write(recipeList, json: soupAndBread("Soup"))
        clock.advance(by: .seconds(100))
        #expect(try app.read(recipeList).age == .seconds(100))
        try store.close()
    }

    @Test("The error of opening a temporary store again names the place that is said to have opened it first")
    func openingPlace() throws {
        let store = try Store.temporary(schemaText: [fixtureSchema], file: "Kitchen/Preview.swift", line: 7)
        _ = try store.partition()
        let error = #expect(throws: LarderError.self) {
            _ = try Store.open(at: store.folder, schemaText: [fixtureSchema]).partition()
        }
        #expect(error?.message.contains("Kitchen/Preview.swift:7") == true)
        try store.close()
    }
}
