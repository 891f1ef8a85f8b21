import Foundation
import LarderTestSupport
import Synchronization
import Testing

@testable import Larder

/// What a queued mutation shows is seen for as long as the mutation may be carried out, whatever ends it.
@Suite("What is shown goes with what is queued", .timeLimit(.minutes(10)))
struct ShownWorkTests {
    private static let schema = """
        type Photo @typePolicy(keyFields: "id") { id: ID! title: String! }
        input S3ObjectInput { bucket: String! key: String! region: String! mimeType: String localUri: String }
        input PhotoInput { title: String! file: S3ObjectInput }
        type Query { photo(id: ID!): Photo }
        type Mutation { addPhoto(input: PhotoInput!): Photo! }
        """
    private static let add = GraphQLOperation(
        "mutation Add($input: PhotoInput!) { addPhoto(input: $input) { id title } }",
        variables: ["input": .object(["title": .string("Sea")])])
    private static let fragment = GraphQLFragment("fragment F on Photo { title }")
    private static let refusal = #"{"data":null,"errors":[{"message":"no"}]}"#

    /// A store with one pending mutation that waits for the upload of a file, and is shown.
    private func withShownMutation(
        expires: Duration? = nil, _ body: (TransferFixture, Transfer, MutationReceipt) async throws -> Void
    ) async throws {
        try await withTemporaryFolder { folder in
            let store = try Store.open(
                at: folder.appending(path: "store"), schema: try Schema(parsing: Self.schema))
            let app = try store.partition(server: ScriptedServer { _ in Self.refusal })
            let fixture = TransferFixture(folder: folder, store: store, app: app, storage: MemoryStorage())
            let (file, _) = try fixture.file(bytes: 10)
            var upload = UploadOptions()
            upload.expires = expires.map { Date.now.addingTimeInterval(Double($0.components.seconds)) }
            let transfer = try await app.transfers.upload(file, to: TransferFixture.location, options: upload)
            let receipt = try await queue(app, files: [MutationFile(transfer, in: "input.file")])
            #expect(try isShown(in: app))
            try await body(fixture, transfer, receipt)
            try store.close()
        }
    }

    private func queue(
        _ app: Partition, _ title: String = "Sea", files: [MutationFile] = [], after: [MutationID] = []
    ) async throws -> MutationReceipt {
        try await app.enqueue(
            Self.add,
            options: .init(
                dependencies: after, files: files,
                optimisticResponse: .object([
                    "addPhoto": .object([
                        "__typename": .string("Photo"), "id": .string("p1"), "title": .string(title),
                    ])
                ])))
    }

    private func isShown(in app: Partition) throws -> Bool {
        do { return try app.read("Photo:p1", Self.fragment)["title"] != nil } catch {
            guard error.code == .miss else { throw error }
            return false
        }
    }

    @Test("A mutation whose upload is cancelled is shown no more")
    func cancelled() async throws {
        try await withShownMutation { fixture, upload, receipt in
            try await upload.cancel()
            #expect(try receipt.status()?.state == .deadLetter)
            #expect(try !isShown(in: fixture.app))
        }
    }

    @Test("A mutation whose upload is over its time is shown no more")
    func expired() async throws {
        try await withShownMutation(expires: .seconds(-1)) { fixture, _, receipt in
            try await fixture.drain()
            #expect(try receipt.status()?.state == .deadLetter)
            #expect(try !isShown(in: fixture.app))
        }
    }

    @Test("What is given up with the cache, or with all of a user's, is shown no more", arguments: [false, true])
    func discarded(all: Bool) async throws {
        try await withShownMutation { fixture, upload, receipt in
            if all {
                try await fixture.app.erase(unsent: .discard)
            } else {
                try await fixture.app.clear(unsent: .discard)
            }
            #expect(try !isShown(in: fixture.app))
            #expect(try receipt.status()?.state != .pending)
            if all { await expectCode(.unknownTransfer) { _ = try upload.status() } }
        }
    }

    @Test("A mutation that was set aside is shown again once it is replayed, as it is after an edit before that")
    func replayed() async throws {
        try await withStoreFixture(ScriptedServer { _ in Self.refusal }, schema: Self.schema) { app in
            let first = try await queue(app)
            try await quickRunner(app).drain()
            #expect(try first.status()?.state == .deadLetter)
            #expect(try !isShown(in: app))
            try await app.replayMutation(first.id)
            #expect(try isShown(in: app))
        }
    }

    @Test(
        "Mutations that depend on a discarded one are set aside and shown no more, or go on", arguments: [true, false])
    func dependents(isReleased: Bool) async throws {
        try await withStoreFixture(ScriptedServer { _ in Self.refusal }, schema: Self.schema) { app in
            let first = try await app.enqueue(Self.add)
            let second = try await queue(app, after: [first.id])
            try await quickRunner(app).drain()
            #expect(try first.status()?.state == .deadLetter)
            #expect(try second.status()?.state == .pending)
            try await app.discardMutation(first.id, dependents: isReleased ? .release : .setAside)
            #expect(try second.status()?.state == (isReleased ? .pending : .deadLetter))
            #expect(try isShown(in: app) == isReleased)
        }
    }

    @Test("A mutation that depends on a discarded one is set aside as it is queued, and is not shown")
    func afterDiscarded() async throws {
        try await withStoreFixture(ScriptedServer { _ in Self.refusal }, schema: Self.schema) { app in
            let first = try await app.enqueue(Self.add)
            try await quickRunner(app).drain()
            try await app.discardMutation(first.id, dependents: .release)
            let second = try await queue(app, after: [first.id])
            #expect(try second.status()?.failure?.kind == .dependencyDiscarded)
            #expect(try !isShown(in: app))
        }
    }

    @Test("A mutation takes no download for its file")
    func download() async throws {
        try await withShownMutation { fixture, _, _ in
            let download = try await fixture.app.transfers.download(
                TransferFixture.location, to: fixture.folder.appending(path: "copy"))
            await expectCode(.invalidTransfer) {
                _ = try await queue(fixture.app, files: [MutationFile(download, in: "input.file")])
            }
        }
    }

    @Test("The queue as a sequence ends when the store is closed", .timeLimit(.minutes(2)))
    func sequenceEnds() async throws {
        try await withTemporaryFolder { folder in
            let store = try Store.open(at: folder, schema: try Schema(parsing: Self.schema))
            let app = try store.partition(server: ScriptedServer { _ in Self.refusal })
            try await app.enqueue(Self.add)
            let (counts, told) = AsyncStream.makeStream(of: Int.self)
            let all = Task { [queue = app.queue] in
                for await status in queue { told.yield(status.unsentCount) }
                told.finish()
            }
            var iterator = counts.makeAsyncIterator()
            #expect(await iterator.next() == 1)
            try store.close()
            await all.value
            #expect(await iterator.next() == nil)
        }
    }
}
