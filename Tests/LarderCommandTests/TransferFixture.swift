import Foundation
import Larder
import LarderOperations
import LarderTestSupport
import Testing

/// A folder with a store, whose transfers are brought into the states in which they are wanted, and files for them.
struct TransferFixture {
    let folder: URL

    static let schema = """
        type Photo { id: ID! title: String! }
        input S3ObjectInput { bucket: String! key: String! region: String! mimeType: String localUri: String }
        type Query { photo(id: ID!): Photo }
        type Mutation { add(title: String!, file: S3ObjectInput): Photo! }
        """
    static let size = 300_000
    static let location = ObjectLocation(bucket: "media", key: "v/1 a.mov", region: "eu-west-1")

    /// Runs `body` with a fixture at which nothing is queued.
    static func run(_ body: (TransferFixture) async throws -> Void) async throws {
        try await withTemporaryFolder { folder in
            let fixture = TransferFixture(folder: folder)
            try await fixture.withPartition { _ in }
            try await body(fixture)
        }
    }

    var store: String { folder.appending(path: "store").path }
    var source: URL { folder.appending(path: "source.bin") }

    func larder(_ arguments: String..., environment: [String: String] = [:]) async throws -> Outcome {
        try await LarderProcess.run(arguments + ["--store", store], environment: environment)
    }

    /// As a program that uses the store.
    func withPartition<Result>(_ body: (Partition) async throws -> Result) async throws -> Result {
        var options = Store.Options()
        options.silence()
        let store = try Store.open(at: URL(filePath: store), schemaText: [Self.schema], options: options)
        do {
            let result = try await body(try store.partition())
            try store.close()
            return result
        } catch {
            try? store.close()
            throw error
        }
    }

    /// As its runner.
    func withTable<Result>(_ body: (TransferTable) async throws -> Result) async throws -> Result {
        try await OperationsDatabase.using(URL(filePath: store)) { try await body($0.transfers) }
    }

    /// Opens the store as a program that keeps a token on its device, in the folder `tokens`.
    func keepDeviceToken() throws {
        var options = Store.Options()
        options.deviceTokens = FileDeviceTokens(folder: folder.appending(path: "tokens"))
        let store = try Store.open(at: URL(filePath: store), schemaText: [Self.schema], options: options)
        _ = try store.partition()
        try store.close()
    }

    // MARK: Transfers

    func upload(_ options: UploadOptions = UploadOptions(), to location: ObjectLocation = location) async throws -> UUID
    {
        if !FileManager.default.fileExists(atPath: source.path) {
            try Data(repeating: 7, count: Self.size).write(to: source)
        }
        return try await withPartition { try await $0.transfers.upload(source, to: location, options: options).id.uuid }
    }

    func download(to name: String = UUID().uuidString) async throws -> UUID {
        try await withPartition {
            try await $0.transfers.download(Self.location, to: folder.appending(path: name)).id.uuid
        }
    }

    /// Pending to running, with so many bytes of it arrived.
    @discardableResult
    func begin(
        _ id: UUID, arrived: Int64 = 0, upload: String? = nil, isAsked: Bool = false
    ) async throws -> TransferAttempt {
        try await withTable { table in
            guard let begun = try await table.begin(id, owner: "a test", now: Date()) else { throw NotBegun() }
            var notes: [TransferNote] = []
            if arrived > 0 {
                if begun.kind == .download {
                    notes.append(.object(etag: "\"whole\"", size: Int64(Self.size), crc32c: nil))
                }
                notes += [.partSize(arrived), .parts([StoredPart(number: 1, size: arrived, etag: "\"1\"", crc32c: 1)])]
            }
            if isAsked { notes.append(.uploadAsked(before: [])) }
            if let upload { notes.append(.upload(upload)) }
            try await table.note(begun.attempt, notes)
            return begun.attempt
        }
    }

    func fail(_ attempt: TransferAttempt) async throws {
        try await withTable { table in
            _ = try await table.fail(
                attempt, TransferFailure(code: "object.accessDenied", message: "not\nallowed", time: Date()),
                now: Date())
        }
    }

    func state(of id: UUID) async throws -> TransferState? { try await withTable { try $0.find(id)?.state } }

    /// Makes a partial file of a transfer, as a runner does.
    @discardableResult
    func partialFile(of name: String) throws -> String {
        let transfers = URL(filePath: store).appending(path: "transfers")
        try FileManager.default.createDirectory(at: transfers, withIntermediateDirectories: true)
        let file = transfers.appending(path: name + ".part")
        try Data(repeating: 1, count: 5_000).write(to: file)
        return file.path
    }

    @discardableResult
    func partialFile(of id: UUID) throws -> String { try partialFile(of: id.text) }

    struct NotBegun: Error {}
}

extension OperationsDatabase {
    /// Sets a pending mutation aside, rejected by the server.
    func setAside(_ id: UUID) async throws {
        let failure = MutationFailure(.rejected, message: "no", time: Date())
        try await mutations.setAside(id, expecting: .pending, failure, now: Date())
    }

    /// Carries a mutation out.
    func settle(_ id: UUID, result: [UInt8]? = nil, now: Date = Date()) async throws {
        let attempt = try await mutations.begin(id, owner: "test", now: now).attempt
        try await mutations.answer(attempt, Array("{}".utf8), now: now)
        try await mutations.settle(id, result: result, now: now)
    }
}

extension BackendEnvironment {
    /// An environment whose API is at a place of its name.
    static func example(_ name: String) throws -> BackendEnvironment {
        BackendEnvironment(name: name, api: .init(url: try #require(URL(string: "https://\(name).example/graphql"))))
    }
}

extension Store {
    /// Makes a store in which the environment `staging` is the current one, and gives the name of its partition.
    static func makeStaging(at place: URL, schema: String, user: PartitionUser? = nil) async throws -> String {
        let store = try Store.open(at: place, schemaText: [schema])
        _ = try await store.switch(to: .example("staging"), user: user)
        let name = try #require(try store.current()).name
        try store.close()
        return name
    }
}

extension UUID {
    var text: String { uuidString.lowercased() }
}
