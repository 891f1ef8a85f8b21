import Foundation
import Larder
import LarderTestSupport
import Testing

private let albumSchema = """
    type Photo @typePolicy(keyFields: "id") { id: ID! title: String! }
    input S3ObjectInput { bucket: String! key: String! region: String mimeType: String localUri: String }
    input PhotoInput { title: String! file: S3ObjectInput }
    input CoverInput { file: S3ObjectInput }
    input AlbumInput { cover: CoverInput }
    type Query { photo(id: ID!): Photo }
    type Mutation { addPhoto(input: PhotoInput!): Photo! addAlbum(album: AlbumInput): Photo! }
    """

private let addPhoto = GraphQLOperation(
    "mutation Add($input: PhotoInput!) { addPhoto(input: $input) { id title } }",
    variables: ["input": .object(["title": .string("Sea")])])

private let answered = #"{"data":{"addPhoto":{"__typename":"Photo","id":"p1","title":"Sea"}}}"#

@Suite("Mutations with files", .timeLimit(.minutes(10)))
struct MutationFileTests {
    private func withAlbum(
        _ transport: ScriptedServer, _ folder: URL, _ storage: MemoryStorage,
        _ body: (TransferFixture) async throws -> Void
    ) async throws {
        let store = try Store.open(at: folder.appending(path: "store"), schema: try Schema(parsing: albumSchema))
        let app = try store.partition(server: transport)
        try await body(TransferFixture(folder: folder, store: store, app: app, storage: storage))
        try store.close()
    }

    private func withAlbum(
        _ server: ScriptedServer = ScriptedServer { _ in answered }, _ storage: MemoryStorage = MemoryStorage(),
        _ body: (TransferFixture) async throws -> Void
    ) async throws {
        try await withTemporaryFolder { folder in try await withAlbum(server, folder, storage, body) }
    }

    private static func file(of request: GraphQLRequest) throws -> [String: String] {
        let variables = try JSONSerialization.jsonObject(with: Data(request.variables)) as? [String: Any]
        return (variables?["input"] as? [String: Any])?["file"] as? [String: String] ?? [:]
    }

    @Test("drain sends mutations and files, and mutations that wait for files after these, and then returns")
    func drained() async throws {
        let storage = MemoryStorage()
        let server = ScriptedServer { _ in
            #expect(storage.object(TransferFixture.location) != nil)
            return answered
        }
        try await withAlbum(server, storage) { fixture in
            let upload = try await fixture.upload(bytes: 10_000).upload
            let receipt = try await fixture.app.enqueue(
                addPhoto, options: .init(files: [MutationFile(upload, in: "input.file")]))
            try await fixture.app.drain(RunOptions(storage: storage))
            #expect(try upload.status().state == .done)
            #expect(try receipt.status()?.state == .applied)
            #expect(server.requests.count == 1)
            // Nothing is left to be done.
            try await fixture.app.drain()
        }
    }

    @Test("A mutation with a file is not lost on restart, and is sent when the file is there, with its location")
    func restart() async throws {
        try await withTemporaryFolder { folder in
            let storage = MemoryStorage()
            let transport = ScriptedServer { _ in
                #expect(storage.object(TransferFixture.location) != nil)
                return answered
            }
            var id: MutationID?
            try await withAlbum(transport, folder, storage) { fixture in
                let (file, _) = try fixture.file(bytes: 10_000)
                let upload = try await fixture.app.transfers.upload(
                    file, to: TransferFixture.location, options: .init(attributes: .init(contentType: "image/png")))
                let receipt = try await fixture.app.enqueue(
                    addPhoto, options: .init(files: [MutationFile(upload, in: "input.file")]))
                id = receipt.id
                let runner = MutationRunner(fixture.app)
                let task = Task { try await runner.run() }
                try await Task.sleep(for: .milliseconds(300))
                task.cancel()
                try await task.value
                #expect(transport.requests.isEmpty)
                #expect(try receipt.status()?.state == .pending)
            }
            try await withAlbum(transport, folder, storage) { fixture in
                let runner = MutationRunner(fixture.app)
                let task = Task { try await runner.run() }
                try await fixture.drain()
                let receipt = try fixture.app.mutation(#require(id))
                _ = try await receipt.outcome(within: .seconds(20))
                let status = try #require(try receipt.status())
                #expect(status.state == .applied)
                task.cancel()
                try await task.value
            }
            let request = try #require(transport.requests.first)
            #expect(transport.requests.count == 1)
            #expect(
                try Self.file(of: request) == [
                    "bucket": "media", "key": "v/1.mov", "region": "eu-west-1", "mimeType": "image/png",
                ])
        }
    }

    @Test("A transfer that fails sets the mutation aside with the reason, and one that is retried brings it back")
    func failed() async throws {
        try await withAlbum { fixture in
            let upload = try await fixture.upload(bytes: 10_000).upload
            let receipt = try await fixture.app.enqueue(
                addPhoto,
                options: .init(
                    files: [MutationFile(upload, in: "input.file")],
                    optimisticResponse: .object([
                        "addPhoto": .object([
                            "__typename": .string("Photo"), "id": .string("p1"), "title": .string("Sea"),
                        ])
                    ])))
            let fragment = GraphQLFragment("fragment F on Photo { title }")
            #expect(try fixture.app.read("Photo:p1", fragment)["title"]?.string == "Sea")
            let failures = Countdown(1)
            fixture.storage.onCall { call throws(ObjectError) in
                if case .putPart(3) = call, failures.take() { throw ObjectError(.accessDenied, "for a test") }
            }
            try await fixture.drain()
            let status = try #require(try receipt.status())
            #expect(status.state == .deadLetter && status.failure?.code == .objectAccessDenied)
            await expectCode(.miss) { _ = try fixture.app.read("Photo:p1", fragment) }
            try await upload.retry()
            #expect(try receipt.status()?.state == .pending)
            #expect(try fixture.app.read("Photo:p1", fragment)["title"]?.string == "Sea")
            try await fixture.drain()
            try await MutationRunner(fixture.app).drain()
            #expect(try receipt.status()?.state == .applied)
        }
    }

    @Test("When the cancelling of an upload returns, what the mutation was expected to do is not shown any more")
    func cancelled() async throws {
        try await withAlbum { fixture in
            let fragment = GraphQLFragment("fragment F on Photo { title }")
            // More than once: after one commit the store shows its queue anew by itself, which would hide that
            // `cancel` does not. Of commits that follow each other quickly it waits a moment.
            for _ in 0..<4 {
                let upload = try await fixture.upload(bytes: 10).upload
                try await fixture.app.enqueue(
                    addPhoto,
                    options: .init(
                        files: [MutationFile(upload, in: "input.file")],
                        optimisticResponse: ["addPhoto": ["__typename": "Photo", "id": "p1", "title": "Sea"]]))
                #expect(try fixture.app.read("Photo:p1", fragment)["title"]?.string == "Sea")
                try await upload.cancel()
                await expectCode(.miss) { _ = try fixture.app.read("Photo:p1", fragment) }
            }
        }
    }

    @Test("A cancelled upload sets the mutation aside; what cannot be filled in is refused before it is queued")
    func refused() async throws {
        try await withAlbum { fixture in
            let upload = try await fixture.upload(bytes: 10).upload
            let receipt = try await fixture.app.enqueue(
                addPhoto, options: .init(files: [MutationFile(upload, in: "input.file")]))
            for (variable, code) in [
                ("input.title.file", LarderError.Code.variables), ("", .variables), ("input.none", .variables),
            ] {
                await expectCode(code) {
                    _ = try await fixture.app.enqueue(
                        addPhoto, options: .init(files: [MutationFile(upload, in: variable)]))
                }
            }
            try await upload.cancel()
            let status = try #require(try receipt.status())
            #expect(status.state == .deadLetter && status.failure?.code == .cancelledTransfer)
            await expectCode(.init(rawValue: "operations.wrongState")) {
                _ = try await fixture.app.enqueue(
                    addPhoto, options: .init(files: [MutationFile(upload, in: "input.file")]))
            }
            #expect(try fixture.app.mutations().count == 1)
        }
    }

    @Test("A mutation with the file of an upload that is not known is refused, and not queued")
    func unknownUpload() async throws {
        try await withAlbum { (fixture) async throws in
            let none = fixture.app.transfers[TransferID(UUID())]
            await expectCode(.unknownTransfer) {
                _ = try await fixture.app.enqueue(
                    addPhoto, options: .init(files: [MutationFile(none, in: "input.file")]))
            }
            #expect(try fixture.app.mutations().isEmpty)
        }
    }

    @Test("Of many that are queued at once each waits for its own file; with one whose upload is over none is queued")
    func many() async throws {
        try await withAlbum { fixture in
            let (upload, file, _) = try await fixture.upload(bytes: 10)
            let cancelled = try await fixture.app.transfers.upload(
                file, to: ObjectLocation(bucket: "media", key: "v/2.mov", region: "eu-west-1"))
            try await cancelled.cancel()
            let withFile = MutationOptions(lane: "files", files: [MutationFile(upload, in: "input.file")])
            await expectCode(.init(rawValue: "operations.wrongState")) {
                try await fixture.app.enqueue([
                    (addPhoto, withFile), (addPhoto, .init(files: [MutationFile(cancelled, in: "input.file")])),
                ])
            }
            #expect(try fixture.app.mutations().count == 0)
            let receipts = try await fixture.app.enqueue([(addPhoto, withFile), (addPhoto, .init())])
            let runner = MutationRunner(fixture.app)
            let task = Task { try await runner.run() }
            #expect(try await receipts[1].outcome(within: .seconds(20)).isApplied)
            #expect(try receipts[0].status()?.state == .pending)
            try await fixture.drain()
            #expect(try await receipts[0].outcome(within: .seconds(20)).isApplied)
            task.cancel()
            try await task.value
        }
    }

    @Test("What stands in the variables of a file's location and media type is what the program makes of them")
    func ownValue() async throws {
        let server = ScriptedServer { _ in answered }
        try await withAlbum(server) { fixture in
            let (file, _) = try fixture.file(bytes: 10)
            let upload = try await fixture.app.transfers.upload(
                file, to: TransferFixture.location, options: .init(attributes: .init(contentType: "video/mp4")))
            let given = MutationFile(upload, in: "input.title") { location, contentType in
                .string("\(location.key) \(contentType ?? "")")
            }
            try await fixture.app.enqueue(addPhoto, options: .init(files: [given]))
            try await fixture.app.drain(RunOptions(storage: fixture.storage))
            #expect(server.requests.map(\.variableValues) == [["input": ["title": "v/1.mov video/mp4"]]])
        }
    }

    @Test("What is not known of a file's place, or of its type, is left out of the variables")
    func leftOut() async throws {
        let server = ScriptedServer { _ in answered }
        try await withAlbum(server) { fixture in
            let (file, _) = try fixture.file(bytes: 10)
            let upload = try await fixture.app.transfers.upload(
                file, to: ObjectLocation(bucket: "media", key: "v/2.mov"))
            try await fixture.app.enqueue(addPhoto, options: .init(files: [MutationFile(upload, in: "input.file")]))
            try await fixture.app.drain(RunOptions(storage: fixture.storage))
            let expected: [String: Value] = [
                "input": ["title": "Sea", "file": ["bucket": "media", "key": "v/2.mov"]]
            ]
            #expect(server.requests.map(\.variableValues) == [expected])
        }
    }

    @Test("Input objects on the way to a file are made where there is nothing, or null")
    func madeOnTheWay() async throws {
        let answer = #"{"data":{"addAlbum":{"__typename":"Photo","id":"p1"}}}"#
        let server = ScriptedServer { _ in answer }
        try await withAlbum(server) { fixture in
            let upload = try await fixture.upload(bytes: 10).upload
            let place = MutationFile(upload, in: "album.cover.file") { location, _ in
                ["bucket": "b", "key": .string(location.key), "region": "r"]
            }
            for variables in [[:], ["album": .null], ["album": ["cover": .null]]] as [[String: Value]] {
                let add = GraphQLOperation(
                    "mutation Add($album: AlbumInput) { addAlbum(album: $album) { id } }", variables: variables)
                try await fixture.app.enqueue(add, options: .init(files: [place]))
            }
            try await fixture.app.drain(RunOptions(storage: fixture.storage))
            let expected: [String: Value] = [
                "album": ["cover": ["file": ["bucket": "b", "key": "v/1.mov", "region": "r"]]]
            ]
            #expect(server.requests.map(\.variableValues) == [expected, expected, expected])
        }
    }

    @Test(
        "A place of a file in which a name is empty is refused as that, and nothing is queued",
        arguments: ["", "input.", "input..file", ".file"])
    func namelessPlace(_ place: String) async throws {
        try await withAlbum { fixture in
            let upload = try await fixture.upload(bytes: 10).upload
            let error = await larderError {
                try await fixture.app.enqueue(addPhoto, options: .init(files: [MutationFile(upload, in: place)]))
            }
            #expect(error?.code == .variables)
            #expect(error?.message.contains("names no variable") == true, "\(error?.message ?? "none")")
            #expect(try fixture.app.mutations().isEmpty)
        }
    }

    @Test("A mutation with two files is sent when both have arrived, with the place of each in its variables")
    func twoFiles() async throws {
        let (archive, server) = (MemoryStorage(), ScriptedServer { _ in answered })
        try await withAlbum(server) { fixture in
            let (photo, file, _) = try await fixture.upload(bytes: 10)
            let copy = try await fixture.app.transfers.upload(
                file, to: ObjectLocation(bucket: "media", key: "kept", region: "eu-west-1", storage: "archive"))
            let files = [
                MutationFile(photo, in: "input.file"),
                MutationFile(copy, in: "input.title") { location, _ in .string(location.key) },
            ]
            try await fixture.app.enqueue(addPhoto, options: .init(files: files))
            try await fixture.drain()
            #expect(try photo.status().state == .done)
            #expect(try !fixture.app.hasWork(storages: [nil]))
            var options = RunOptions(storage: fixture.storage)
            options.namedStorages = ["archive": archive]
            try await fixture.app.drain(options)
            let expected: [String: Value] = [
                "input": ["title": "kept", "file": ["bucket": "media", "key": "v/1.mov", "region": "eu-west-1"]]
            ]
            #expect(server.requests.map(\.variableValues) == [expected])
        }
    }

    @Test("A mutation is refused, and not queued, where its file would take the place of what is no input object")
    func occupiedPlace() async throws {
        try await withAlbum { fixture in
            let upload = try await fixture.upload(bytes: 10).upload
            for album in [Value.string("mine"), .int(7), .list([.string("mine")])] {
                let add = GraphQLOperation(
                    "mutation Add($album: AlbumInput) { addAlbum(album: $album) { id } }",
                    variables: ["album": album])
                let place = MutationFile(upload, in: "album.cover.file")
                await expectCode(.variables) {
                    _ = try await fixture.app.enqueue(add, options: .init(files: [place]))
                }
            }
            #expect(try fixture.app.mutations().isEmpty)
        }
    }
}
