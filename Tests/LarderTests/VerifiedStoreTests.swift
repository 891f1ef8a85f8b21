import Foundation
import Larder
import LarderTestSupport
import Testing

@Suite("Looking at every page of a store that was closed well", .timeLimit(.minutes(5)))
struct VerifiedStoreTests {
    private static let title = Data("unmistakable".utf8)

    private func open(_ folder: URL, verifies: Bool = false) throws -> Store {
        var options = Store.Options()
        options.verifiesAlways = verifies
        return try Store.open(at: folder, schema: try Schema(parsing: fixtureSchema), options: options)
    }

    private func fill(_ folder: URL) async throws {
        let store = try open(folder)
        let app = try store.partition()
        let title = GraphQLFragment("fragment F on Recipe { title }")
        for number in 0..<20 {
            try await app.write(CacheKey(type: "Recipe", id: "\(number)"), title, ["title": "unmistakable"])
        }
        try await app.enqueue((0..<200).map { (giveStars("\($0)", 5), MutationOptions()) })
        try store.close()
    }

    @Test("Damage of the cache is found on opening where the options say so, and not otherwise")
    func cache() async throws {
        try await withTemporaryFolder { folder in
            try await fill(folder)
            let found = FileManager.default.enumerator(
                at: folder.appending(path: "records"), includingPropertiesForKeys: nil)
            var count = 0
            for case let file as URL in found ?? .init() {
                guard var bytes = try? Data(contentsOf: file), bytes.range(of: Self.title) != nil else { continue }
                while let range = bytes.range(of: Self.title) {
                    bytes[range.lowerBound] = 0x78
                    count += 1
                }
                // A file that was written to since the close would be looked at in any case.
                let old = folder.appending(path: "old").path
                try #require(succeeds("cp", "-p", file.path, old))
                try bytes.write(to: file)
                try #require(succeeds("touch", "-r", old, file.path))
            }
            try #require(count > 0)
            let trusting = try open(folder)
            _ = try trusting.partition()
            try trusting.close()
            let verifying = try open(folder, verifies: true)
            await expectCode(.recordsDamaged) { _ = try verifying.partition() }
            try verifying.close()
        }
    }

    @Test("Damage of the queue is found on opening where the options say so, and not otherwise")
    func queue() async throws {
        try await withTemporaryFolder { folder in
            try await fill(folder)
            let file = folder.appending(path: "larder.sqlite")
            let pages = try Data(contentsOf: file).count / 4096
            let handle = try FileHandle(forWritingTo: file)
            try handle.seek(toOffset: UInt64(pages - 1) * 4096)
            try handle.write(contentsOf: Data(count: 4096))
            try handle.close()
            let trusting = try open(folder)
            _ = try trusting.operationsDatabase()
            try? trusting.close()
            let verifying = try open(folder, verifies: true)
            await expectCode(.operationsDamaged) { _ = try verifying.operationsDatabase() }
            let steps = try StoreRepair(of: folder).steps
            #expect(steps.count == 1)
            guard case .salvageDatabase? = steps.first else {
                Issue.record("the database is not to be repaired: \(steps)")
                return
            }
            try? verifying.close()
        }
    }
}
