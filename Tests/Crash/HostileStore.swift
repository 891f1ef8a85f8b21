import Foundation
import Larder
import LarderOperations

/// A sound store with rows in every table of `larder.sqlite`.
enum HostileStore {
    static func make(in folder: URL) async throws {
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        let database = try OperationsDatabase(folder: folder)
        let source = folder.appending(path: "source")
        try Data(repeating: 1, count: 2_500).write(to: source)
        try await queueTransfers(database, source)
        try await queueMutations(database)
        _ = try await database.watchers.put("watch", in: partition, document: "{ recipe(id: 1) { id } }", now: now)
        try database.close()
        try addTheRest(folder)
        let problems = try OperationsDatabase.check(folder: folder)?.problems ?? []
        guard problems.isEmpty else { throw PlainDatabase.Refusal(message: "the template is not sound: \(problems)") }
    }

    private static let partition = "main"
    private static let now = Date()

    private static func draft(_ recipe: String, _ lane: String) -> MutationDraft {
        MutationDraft(
            partition: partition, lane: lane,
            content: MutationContent(
                document:
                    "mutation Rate($recipe: ID!, $stars: Int!) { rate(recipe: $recipe, stars: $stars) { id stars } }",
                operationName: "Rate", variables: Array(#"{"recipe":"\#(recipe)","stars":5}"#.utf8),
                optimisticResponse: Array(#"{"rate":{"__typename":"Recipe","id":"\#(recipe)","stars":5}}"#.utf8)),
            created: now)
    }

    private static func queueTransfers(_ database: OperationsDatabase, _ source: URL) async throws {
        let file = try FileIdentity(ofSource: source.path)
        func upload(_ key: String) -> TransferDraft {
            TransferDraft(
                partition: partition, kind: .upload, bucket: "bucket", key: key, path: source.path,
                contentType: "text/plain", metadata: Array(#"{"a":"b"}"#.utf8), source: file, created: now)
        }
        let table = database.transfers
        let failure = TransferFailure(code: "object.serverFault", message: "no", time: now)
        let copy = source.deletingLastPathComponent().appending(path: "received").path
        let download = TransferDraft(
            partition: partition, kind: .download, bucket: "bucket", key: "zeros", path: copy, replaces: true,
            created: now, expires: now.addingTimeInterval(100_000))
        let drafts = [
            upload("parts"), download, upload("failed"), upload("cancelled"), upload("asked"), upload("waited"),
        ]
        try await table.enqueue(drafts)
        if let parts = try await table.begin(drafts[0].id, owner: "somebody", now: now) {
            try await table.note(
                parts.attempt,
                [
                    .partSize(1_000), .upload("upload"),
                    .parts([.init(number: 1, size: 1_000, etag: "\"1\"", crc32c: 7), .init(number: 3, size: 500)]),
                ])
        }
        if let begun = try await table.begin(drafts[1].id, owner: "somebody", now: now) {
            try await table.note(
                begun.attempt,
                [
                    .object(etag: "\"zeros\"", size: 2_500, crc32c: nil), .partSize(1_000), .file(file),
                    .parts([.init(number: 2, size: 1_000, crc32c: 9)]),
                ])
            try await table.retryLater(begun.attempt, at: now, failure, now: now)
        }
        if let failed = try await table.begin(drafts[2].id, owner: "somebody", now: now) {
            try await table.fail(failed.attempt, failure, now: now)
        }
        _ = try await table.cancel(drafts[3].id, now: now)
        if let asked = try await table.begin(drafts[4].id, owner: "somebody", now: now) {
            try await table.note(asked.attempt, [.partSize(1_000), .uploadAsked(before: ["x"])])
        }
        var waiting = draft("waiting", "waiting")
        waiting.transfers = [drafts[5].id]
        _ = try await database.mutations.enqueue(waiting)
        try await table.enqueue([upload("control")])
    }

    private static func queueMutations(_ database: OperationsDatabase) async throws {
        let queue = database.mutations
        let failure = MutationFailure(.rejected, code: "NO", message: "no", details: Array("[]".utf8), time: now)
        let settled = try await queue.enqueue(draft("settled", "settled"))
        try await queue.answer(queue.begin(settled.id, owner: "me", now: now).attempt, answer, now: now)
        try await queue.settle(settled.id, result: Array("{}".utf8), now: now)
        let answered = try await queue.enqueue(draft("answered", "answered"))
        try await queue.answer(queue.begin(answered.id, owner: "me", now: now).attempt, answer, now: now)
        let sent = try await queue.enqueue(draft("sent", "sent"))
        _ = try await queue.begin(sent.id, owner: "somebody", now: now)
        let dead = try await queue.enqueue(draft("dead", "dead"))
        try await queue.setAside(dead.id, expecting: .pending, failure, now: now)
        let token = TemporaryID()
        var maker = draft("maker", "maker")
        maker.temporaryIDs = [token]
        maker.expires = now.addingTimeInterval(100_000)
        _ = try await queue.enqueue(maker)
        var user = draft(token.text, "maker")
        user.dependencies = [dead.id]
        _ = try await queue.enqueue(user)
        let later = try await queue.enqueue(draft("later", "later"))
        try await queue.retryLater(
            queue.begin(later.id, owner: "me", now: now).attempt, at: now, failure, now: now)
        _ = try await queue.enqueue(draft("control", "control"))
    }

    private static let answer = Array(#"{"data":{"rate":{"__typename":"Recipe","id":"1","stars":5}}}"#.utf8)

    /// What only switching and signing in would make.
    private static func addTheRest(_ folder: URL) throws {
        let database = try PlainDatabase(folder.appending(path: OperationsDatabase.fileName))
        try database.run(
            """
            INSERT INTO environment (name, definition, identity, data, storage, protected, created, updated)
            VALUES ('other', x'7b7d', 'i', 'd', 's', 0, 1, 1);
            INSERT INTO partition (name, environment, user, created, used) VALUES ('other', 1, 'u', 1, 1);
            INSERT INTO current_partition (only, partition, number, switched)
            SELECT 1, id, 1, 1 FROM partition WHERE name = 'main';
            INSERT INTO partition_key (partition, sealed_with, sealed, created) SELECT id, 'k', x'00', 1 FROM partition;
            INSERT INTO credential (partition, kind, identity, sealed, created, updated)
            SELECT id, 'session', 'i', x'00', 1, 1 FROM partition;
            INSERT INTO quarantined_credential (partition, kind, identity, sealed, reason, quarantined)
            SELECT id, 'session', 'i', x'00', 'r', 1 FROM partition;
            INSERT INTO session (partition, state, reason, changed) SELECT id, 'guest', 'r', 1 FROM partition;
            INSERT INTO forgotten_outcome (partition, sequence) VALUES ('main', 1);
            INSERT INTO pin (partition, name, document, variables, created)
            SELECT id, 'pin', '{ recipe(id: 1) { id } }', x'7b7d', 1 FROM partition WHERE name = 'main';
            PRAGMA wal_checkpoint(TRUNCATE);
            """)
    }
}
