import Foundation
import LarderTestSupport
import Testing

@testable import LarderOperations

@Suite("Transfers on a disk that fails in SQLite's own calls", .timeLimit(.minutes(10)))
struct FailingDiskTransferTests {
    /// How many steps of a script are acknowledged, and whether the next one may be there.
    private struct Told: Hashable {
        var done: Int
        var isUnknown = false
    }

    private typealias Step = @Sendable (OperationsDatabase) async throws -> Void

    /// All that is stored of a transfer, and of the mutation that waits for it.
    private struct Stored: Equatable {
        var transfer: StoredTransfer?
        var parts: [StoredPart]?
        var mutation: MutationState?
    }

    /// A transfer, and what is done with it in order.
    private struct Script: Sendable {
        let transfer: TransferDraft
        let mutation: MutationDraft
        let steps: [Step]

        init(_ transfer: TransferDraft, steps: [Step]) {
            var mutation = MutationDraft(partition: app, lane: transfer.key, content: rename, created: noon)
            mutation.transfers = [transfer.id]
            let waiter = mutation
            (self.transfer, self.mutation) = (transfer, mutation)
            self.steps =
                [
                    { database in try await database.transfers.enqueue([transfer]) },
                    { database in _ = try await database.mutations.enqueue(waiter) },
                ] + steps
        }

        func stored(in database: OperationsDatabase) throws -> Stored {
            var transfer = try database.transfers.find(transfer.id)
            // Of no matter here, and another one where an earlier transfer was refused.
            transfer?.sequence = 0
            let parts = try transfer.map { try database.transfers.parts(of: $0.id) }
            return Stored(transfer: transfer, parts: parts, mutation: try database.state(mutation.id))
        }
    }

    private static func new(of kind: TransferDraft.Kind, _ key: String) -> TransferDraft {
        TransferDraft(
            partition: app, kind: kind, bucket: "media", key: key, path: "/\(key)",
            source: kind == .upload ? FileIdentity(device: 1, inode: 2, size: 10_000, modified: 3) : nil, created: noon)
    }

    private static let failure = TransferFailure(code: "object.accessDenied", message: "no", time: noon)

    private static func attempt(_ id: UUID, _ number: Int = 1) -> TransferAttempt {
        TransferAttempt(transfer: id, number: number)
    }

    private static func begin(_ id: UUID) -> Step {
        { database in _ = try await database.transfers.begin(id, owner: "me", now: noon) }
    }

    private static func note(_ id: UUID, _ notes: [TransferNote], attempt number: Int = 1) -> Step {
        { database in try await database.transfers.note(attempt(id, number), notes) }
    }

    private static func finished() -> Script {
        let draft = new(of: .upload, "finished")
        let id = draft.id
        return Script(
            draft,
            steps: [
                begin(id), note(id, [.partSize(4096), .uploadAsked(before: ["other"])]), note(id, [.upload("u")]),
                note(id, [.parts([.init(number: 1, size: 4096, etag: "\"1\"", crc32c: 1)])]),
                note(id, [.parts([2, 3].map { .init(number: $0, size: $0 == 2 ? 4096 : 1808, etag: "\"\($0)\"") })]),
                note(id, [.lost([2])]), note(id, [.parts([.init(number: 2, size: 4096, etag: "\"2\"", crc32c: 2)])]),
                { db in
                    try await db.transfers.noteDoubt(of: id, until: after(60), now: noon)
                },
                { db in
                    try await db.transfers.finish(attempt(id), etag: "\"e\"", version: "v", crc32c: 7, now: noon)
                },
            ])
    }

    private static func cancelled() -> Script {
        let draft = new(of: .upload, "cancelled")
        let id = draft.id
        return Script(
            draft,
            steps: [
                begin(id), note(id, [.partSize(4096), .upload("c")]),
                { db in _ = try await db.transfers.cancel(id, now: noon) },
                { db in try await db.transfers.cleared(id, now: noon) },
            ])
    }

    private static func downloaded() -> Script {
        let draft = new(of: .download, "downloaded")
        let id = draft.id
        return Script(
            draft,
            steps: [
                begin(id), note(id, [.object(etag: "\"e\"", size: 9000, crc32c: 1), .partSize(4096)]),
                note(
                    id,
                    [.file(.init(device: 8, inode: 9, size: 9000, modified: 1)), .parts([.init(number: 3, size: 808)])]),
                { db in
                    try await db.transfers.retryLater(attempt(id), at: after(1), failure, now: noon)
                },
                { db in try await db.transfers.pause(id) },
                { db in try await db.transfers.resume(id) },
                begin(id), { db in try await db.transfers.release(attempt(id, 2)) },
                begin(id),
                { db in _ = try await db.transfers.fail(attempt(id, 3), failure, now: noon) },
                { db in try await db.transfers.retry(id, source: nil) },
                begin(id), note(id, [.restart], attempt: 4),
            ])
    }

    /// A transfer whose upload's name is left to another transfer.
    private static func left() -> Script {
        let draft = new(of: .upload, "left")
        let id = draft.id
        return Script(draft, steps: [begin(id), note(id, [.upload("l")]), note(id, [.uploadLeft, .restart])])
    }

    @Test(
        "An acknowledged change of a transfer is kept, and one that throws is whole or absent, wherever a call fails",
        arguments: FailingDisk.faults)
    func everywhere(fault: FailingDisk.Fault) async throws {
        try await withTemporaryFolder { folder in
            try OperationsDatabase(folder: folder).close()
            let scripts = [Self.finished(), Self.cancelled(), Self.downloaded(), Self.left()]
            // What a sound store says, by what was told: many places end in the same.
            var possible: [[Told]: [[Stored]]] = [:]
            var count = 0
            // Each place until the work ends before it; later ones are wider apart.
            while try await work(scripts, fault, after: count, on: folder, &possible) { count += 1 + count / 3 }
            #expect(count > 0 || fault.call == .truncate, "nothing has failed")
        }
    }

    /// - Returns: Whether the fault has happened.
    private func work(
        _ scripts: [Script], _ fault: FailingDisk.Fault, after count: Int, on ready: URL,
        _ possible: inout [[Told]: [[Stored]]]
    ) async throws -> Bool {
        let disk = FailingDisk()
        try await withTemporaryFolder { folder in
            let name = OperationsDatabase.fileName
            try FileManager.default.copyItem(
                at: ready.appending(path: name), to: folder.appending(path: name))
            let database = try OperationsDatabase(folder: folder)
            try await database.pool.writeWithoutTransaction { disk.attach($0) }
            try await database.pool.read { disk.attach($0) }
            disk.arm(fault, after: count)
            var told: [Told] = []
            for script in scripts { told.append(await perform(script.steps, on: database)) }
            disk.heal()
            try database.settleCommits()
            let place = "\(fault) after \(count)"
            if possible[told] == nil { possible[told] = try await Self.possible(scripts, told) }
            let expected = try #require(possible[told])
            try expect(expected, of: scripts, in: database, "\(place), \(told)")
            try database.close()

            let after = try OperationsDatabase(folder: folder)
            try expect(expected, of: scripts, in: after, "\(place), \(told)")
            try expectSound(after, "\(place)")
            try after.close()
        }
        return disk.hasFailed
    }

    private func perform(_ steps: [Step], on database: OperationsDatabase) async -> Told {
        for (index, step) in steps.enumerated() {
            do { try await step(database) } catch {
                let code = (error as? OperationsError)?.code
                #expect(code != nil, "\(error)")
                return Told(done: index, isUnknown: code == .commitUnknown)
            }
        }
        return Told(done: steps.count)
    }

    /// What a store may say of each script for which the same was done, and nothing failed.
    private static func possible(_ scripts: [Script], _ told: [Told]) async throws -> [[Stored]] {
        try await withTemporaryFolder { folder in
            let sound = try OperationsDatabase(folder: folder)
            var possible: [[Stored]] = []
            for (script, told) in zip(scripts, told) {
                for step in script.steps.prefix(told.done) { try await step(sound) }
                var states = [try script.stored(in: sound)]
                if told.isUnknown {
                    try await script.steps[told.done](sound)
                    states.append(try script.stored(in: sound))
                }
                possible.append(states)
            }
            try sound.close()
            return possible
        }
    }

    private func expect(
        _ possible: [[Stored]], of scripts: [Script], in database: OperationsDatabase, _ place: String
    ) throws {
        for (script, states) in zip(scripts, possible) {
            #expect(try states.contains(script.stored(in: database)), "\(place): \(script.transfer.key)")
        }
    }
}
