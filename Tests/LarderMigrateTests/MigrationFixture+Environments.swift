import Foundation
import Testing

@testable import LarderOperations

extension MigrationFixture {
    func add(_ name: String, _ more: String...) async throws -> MigrateProcess.Outcome {
        try await MigrateProcess.run(
            [
                "env", "add", name, "--url", "https://\(name.isEmpty ? "x" : "staging").example/graphql",
                "--store", store.path,
            ] + more)
    }

    /// Adds the environments `staging` and `other`, and enters `staging`.
    func startInStaging(_ more: String..., sourceLocation: SourceLocation = #_sourceLocation) async throws {
        for name in ["staging", "other"] { _ = try await add(name) }
        let arguments = ["env", "use", "staging", "--store", store.path] + more
        let entered = try await MigrateProcess.run(arguments, in: folder)
        #expect(entered.status == 0, "\(entered.errors)", sourceLocation: sourceLocation)
    }

    /// Adds the environments `staging` and `other`, and enters each, to store the numbers 0 and 1 in their caches.
    func writeInEach(sourceLocation: SourceLocation = #_sourceLocation) async throws {
        for (number, name) in ["staging", "other"].enumerated() {
            _ = try await add(name)
            #expect(try await migrate("env", "use", name).status == 0, sourceLocation: sourceLocation)
            try await write(number)
        }
    }

    /// Forgets an environment with all that is unsent in it.
    func forget(_ name: String, sourceLocation: SourceLocation = #_sourceLocation) async throws {
        let gone = try await migrate("env", "forget", name, "--confirm", name, "--discard")
        #expect(gone.status == 0, "\(gone.errors)", sourceLocation: sourceLocation)
    }

    /// Queues mutations in the current partition.
    func queueInCurrent(_ count: Int) async throws {
        try await withDatabase { database in
            let partition = try #require(try database.environments.current()?.partition?.name)
            for _ in 0..<count {
                let content = MutationContent(document: "mutation { note }", variables: Array("{}".utf8))
                _ = try await database.mutations.enqueue(
                    MutationDraft(partition: partition, content: content, created: Date()))
            }
        }
    }

    /// Queues downloads in the current partition, and gives their ids.
    @discardableResult
    func queueDownloads(_ keys: String...) async throws -> [UUID] {
        try await withDatabase { database in
            let partition = try #require(try database.environments.current()?.partition?.name)
            let drafts = keys.map { key in
                TransferDraft(
                    partition: partition, kind: .download, bucket: "media", key: key, path: "/file-\(key)",
                    created: Date())
            }
            try await database.transfers.enqueue(drafts)
            return drafts.map(\.id)
        }
    }

    /// Queues an upload in the current partition, begins it and stores `note` for it; sends nothing.
    func beginUpload(
        _ key: String, at storage: String? = nil, region: String? = nil, _ note: TransferNote
    ) async throws {
        try await withDatabase { database in
            let partition = try #require(try database.environments.current()?.partition?.name)
            let draft = TransferDraft(
                partition: partition, kind: .upload, storage: storage, bucket: "media", key: key, region: region,
                path: "/file", source: .init(device: 1, inode: 2, size: 10, modified: 3), created: Date())
            try await database.transfers.enqueue([draft])
            let begun = try await database.transfers.begin(draft.id, owner: "test", now: Date())
            try await database.transfers.note(try #require(begun).attempt, [note])
        }
    }

    /// Gives the current partition a cache.
    func writeInCurrent() async throws { try await write(1) }

    /// A text that a partition's key is made of, easy to find.
    static let key = "the key that is looked for in the files"

    /// Makes a store that has left the environment `staging`, with a cache, a key and a mutation, for another.
    ///
    /// - Returns: The name of the partition that was left.
    func makeParted() async throws -> String {
        try await startInStaging()
        try await queueInCurrent(1)
        try await writeInCurrent()
        let name = try await withDatabase { try $0.environments.current()?.partition?.name }
        try execute(
            """
            INSERT INTO partition_key (partition, sealed_with, sealed, created)
            SELECT id, 'test', CAST('\(Self.key)' AS BLOB), 0 FROM partition
            """)
        #expect(try await migrate("env", "use", "other").status == 0)
        return try #require(name)
    }
}
