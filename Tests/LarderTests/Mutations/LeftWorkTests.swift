import Foundation
import Larder
import LarderOperations
import LarderTestSupport
import Synchronization
import Testing

@Suite("What is left for runners to do", .timeLimit(.minutes(5)))
struct LeftWorkTests {
    private let schema = """
        type Photo @typePolicy(keyFields: "id") { id: ID! title: String! }
        input S3ObjectInput { bucket: String! key: String! region: String! mimeType: String localUri: String }
        input PhotoInput { title: String! file: S3ObjectInput }
        type Query { photo(id: ID!): Photo }
        type Mutation { addPhoto(input: PhotoInput!): Photo! }
        """
    private let addPhoto = GraphQLOperation(
        "mutation Add($input: PhotoInput!) { addPhoto(input: $input) { id title } }",
        variables: ["input": .object(["title": .string("Sea")])])

    private func withStore(_ body: (TransferFixture) async throws -> Void) async throws {
        try await withTemporaryFolder { folder in
            let store = try Store.open(at: folder.appending(path: "store"), schema: try Schema(parsing: schema))
            let app = try store.partition(server: ScriptedServer { _ in "{}" })
            try await body(TransferFixture(folder: folder, store: store, app: app, storage: MemoryStorage()))
            try store.close()
        }
    }

    @Test("A file of a storage that no runner has is no work, nor is a mutation that waits for it, by whatever way")
    func waiting() async throws {
        try await withStore { fixture in
            let app = fixture.app
            #expect(try !app.hasWork(storages: []))
            // Asking makes no queue.
            let database = fixture.folder.appending(path: "store/larder.sqlite")
            #expect(try app.mutations().isEmpty && !FileManager.default.fileExists(atPath: database.path))
            let (file, _) = try fixture.file(bytes: 10)
            let place = ObjectLocation(bucket: "media", key: "a", region: "eu-west-1", storage: "archive")
            let upload = try await app.transfers.upload(file, to: place)
            func hasWork() throws -> [Bool] {
                let storages: [Set<String?>] = [[], [nil], ["photos"], ["archive"]]
                return try storages.map { try app.hasWork(storages: $0) }
            }
            #expect(try hasWork() == [false, false, false, true])
            let first = try await app.enqueue(
                addPhoto, options: .init(lane: "photos", files: [MutationFile(upload, in: "input.file")]))
            #expect(try hasWork() == [false, false, false, true])
            // Behind it in its lane, and in another lane after it.
            try await app.enqueue(addPhoto, options: .init(lane: "photos"))
            let second = try await app.enqueue(addPhoto, options: .init(lane: "other", dependencies: [first.id]))
            try await app.enqueue(addPhoto, options: .init(lane: "third", dependencies: [second.id]))
            #expect(try hasWork() == [false, false, false, true])
            try await app.enqueue(addPhoto, options: .init(lane: "fourth"))
            #expect(try hasWork() == [true, true, true, true])
        }
    }

    @Test("What waits for a mutation that was set aside is no work until that is queued again")
    func stalled() async throws {
        let server = ScriptedServer { _ in #"{"data":null,"errors":[{"message":"no such recipe"}]}"# }
        try await withStoreFixture(server) { app in
            let bad = try await app.enqueue(giveStars("9", 1))
            try await app.enqueue(giveStars("9", 2), options: .init(lane: "other", dependencies: [bad.id]))
            #expect(try app.hasWork(storages: []))
            try await quickRunner(app).drain()
            #expect(try bad.status()?.state == .deadLetter)
            #expect(try !app.hasWork(storages: []))
            try await app.replayMutation(bad.id)
            #expect(try app.hasWork(storages: []))
        }
    }

    @Test(
        "A runner sets aside an earlier runner's mutation whose row is damaged, and sends the others",
        arguments: [false, true])
    func damagedRow(isAnswered: Bool) async throws {
        var options = Store.Options()
        options.silence()
        try await withOpenStore(ScriptedServer.rating(), options: options) { folder, store, app in
            let damaged = try await app.enqueue(giveStars("1", 5))
            let other = try await app.enqueue(giveStars("2", 3))
            let queue = try store.operationsDatabase().mutations
            let begun = try await queue.begin(damaged.id.uuid, owner: "gone", now: Date())
            if isAnswered { try await queue.answer(begun.attempt, Array(rated("1", 5).utf8), now: Date()) }
            try OtherProgram(folder).damageFirstMutation()
            try await quickRunner(app).drain()
            #expect(try damaged.status()?.failure?.kind == .damaged)
            #expect(try other.status()?.state == .applied)
        }
    }

    @Test("Two runners of one process have different names beside the mutations that they send")
    func owners() async throws {
        let queue = Mutex<MutationQueue?>(nil)
        let owners = Mutex<[String]>([])
        let server = ScriptedServer(ScriptedServer.key) { request in
            let sent = try queue.withLock { $0 }?.list(MutationFilter(states: [.inFlight])) ?? []
            owners.withLock { $0 += sent.compactMap(\.owner) }
            return rated(request.values["recipe"] as? String ?? "", 5)
        }
        try await withOpenStore(server) { _, store, app in
            for recipe in ["1", "2"] {
                try await app.enqueue(giveStars(recipe, 5))
                let stored = try store.operationsDatabase().mutations
                queue.withLock { $0 = stored }
                try await quickRunner(app).drain()
            }
            let names = owners.withLock { $0 }
            #expect(names.count == 2 && Set(names).count == 2, "\(names)")
        }
    }

    @Test("What a cancelled transfer has left at its storage is work for a runner that has the storage")
    func cancelled() async throws {
        try await withStore { fixture in
            let app = fixture.app
            let (file, _) = try fixture.file(bytes: 20_000)
            let upload = try await fixture.failedUpload(of: file)
            try await upload.cancel()
            #expect(try upload.status().state == .cancelling)
            #expect(try app.hasWork(storages: [nil]) && !app.hasWork(storages: ["archive"]))
            fixture.storage.onCall { _ in }
            try await fixture.drain()
            #expect(try upload.status().state == .cancelled)
            #expect(try !app.hasWork(storages: [nil]))
        }
    }
}
