import Foundation
import LarderFiles
import LarderTestSupport
import Testing

@testable import LarderOperations

@Suite("Copies of a database", .timeLimit(.minutes(10)))
struct CopiedDatabaseTests {
    @Test("A copy is one file, which needs no log beside it")
    func oneFile() async throws {
        try await withOperations { database in
            let id = try await database.enqueue(draft())
            let folder = database.file.deletingLastPathComponent().appending(path: "copies")
            try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
            let file = folder.appending(path: OperationsDatabase.fileName)
            try database.copy(to: file)
            #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path) == [OperationsDatabase.fileName])
            // How it is written and read: 1 is with a journal, 2 with a log (https://www.sqlite.org/fileformat2.html).
            #expect(try Array(Data(contentsOf: file)[18..<20]) == [1, 1])
            let copied = try await OperationsDatabase.using(folder) { try $0.mutation(id) }
            #expect(copied != nil)
        }
    }

    @Test("What killed processes have staged is removed, and what lies beside it, and nothing else")
    func staged() async throws {
        try await withTemporaryFolder { folder in
            let staged = ["", "-wal", "-shm", "-journal"].map { "restored-1.sqlite\($0)" }
            let others = ["larder.sqlite", "restored-1", "unrestored-1.sqlite"]
            for name in staged + others { try Data([1]).write(to: folder.appending(path: name)) }
            OperationsDatabase.removeStaged(in: folder)
            #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path).sorted() == others)
        }
    }

    /// What a device keeps of the stores on it.
    private final class Device: Sendable {
        private let tokens = Locked<[String: String]>([:])

        var options: OperationsDatabase.Options {
            var options = OperationsDatabase.Options()
            options.device = DeviceMark(
                read: { store in self.tokens.withLock { $0[store] } },
                keep: { token, store in self.tokens.withLock { $0[store] = token } })
            return options
        }

        func forget() { tokens.withLock { $0 = [:] } }
    }

    @Test("In a copy an upload that had failed keeps its reason, others fail because it is a copy, and downloads go on")
    func copiedTransfers() async throws {
        try await withTemporaryFolder { folder in
            let device = Device()
            let original = try OperationsDatabase(folder: folder, options: device.options)
            let kinds: [TransferDraft.Kind] = [.upload, .upload, .download]
            let drafts = kinds.map {
                TransferDraft(partition: app, kind: $0, bucket: "media", key: "k", path: "/file", created: noon)
            }
            try await original.transfers.enqueue(drafts)
            let begun = try #require(try await original.transfers.begin(drafts[0].id, owner: "me", now: noon))
            let refused = TransferFailure(code: "object.accessDenied", message: "no", time: noon)
            try await original.transfers.fail(begun.attempt, refused, now: noon)
            try original.close()
            device.forget()
            let copy = try OperationsDatabase(folder: folder, options: device.options)
            let found = try copy.transfers.list()
            #expect(found.map(\.state) == [.failed, .failed, .pending])
            #expect(found.map(\.failure?.code) == [refused.code, TransferFailure.restored, nil])
            try expectSound(copy)
            try copy.close()
        }
    }

    @Test("In a copy an upload that was under way has failed as restored, and a download goes on")
    func copiedAttempts() async throws {
        try await withTemporaryFolder { folder in
            let device = Device()
            let original = try OperationsDatabase(folder: folder, options: device.options)
            let drafts = [TransferDraft.Kind.upload, .download].map {
                TransferDraft(partition: app, kind: $0, bucket: "media", key: "k", path: "/file", created: noon)
            }
            try await original.transfers.enqueue(drafts)
            for draft in drafts { _ = try await original.transfers.begin(draft.id, owner: "me", now: noon) }
            try original.close()
            device.forget()
            let copy = try OperationsDatabase(folder: folder, options: device.options)
            let found = try copy.transfers.list()
            #expect(found.map(\.state) == [.failed, .running])
            #expect(found.map(\.failure?.code) == [TransferFailure.restored, nil])
            try copy.close()
        }
    }

    @Test("A copy leaves the upload in parts of a failed transfer to its original")
    func failedInParts() async throws {
        try await withTemporaryFolder { folder in
            let device = Device()
            let original = try OperationsDatabase(folder: folder, options: device.options)
            let draft = TransferDraft(
                partition: app, kind: .upload, bucket: "media", key: "k", path: "/file", created: noon)
            try await original.transfers.enqueue([draft])
            let begun = try #require(try await original.transfers.begin(draft.id, owner: "me", now: noon))
            try await original.transfers.note(begun.attempt, [.upload("u")])
            let refused = TransferFailure(code: "object.accessDenied", message: "no", time: noon)
            try await original.transfers.fail(begun.attempt, refused, now: noon)
            #expect(try original.transfers.list().map(\.upload) == ["u"])
            try original.close()
            device.forget()
            let copy = try OperationsDatabase(folder: folder, options: device.options)
            #expect(try copy.transfers.list().map(\.upload) == [nil])
            try copy.close()
        }
    }

    @Test("A device that does not know a database is told of the copy, though it has nothing to be set aside")
    func found() async throws {
        try await withTemporaryFolder { folder in
            let device = Device()
            let told = Locked<[Int]>([])
            var options = device.options
            options.foundCopied = { count in told.withLock { $0.append(count) } }
            for _ in 0..<2 { try OperationsDatabase(folder: folder, options: options).close() }
            #expect(told.withLock { $0 } == [])
            device.forget()
            for _ in 0..<2 { try OperationsDatabase(folder: folder, options: options).close() }
            #expect(told.withLock { $0 } == [0])
        }
    }
}
