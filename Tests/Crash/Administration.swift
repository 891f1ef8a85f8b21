import Foundation
import Larder
import LarderOperations
import LarderRecords

/// Migrates, backs up, restores, repairs or forgets, and kills the program at the step that is asked for.
struct Administration {
    let store: URL
    let words: Words

    func run() async throws {
        switch words.verb {
        case "hold":
            try withLock { _ in
                say("holding")
                sleep(3600)
            }
        case "up":
            try withLock { lock in
                let backups = MigrationPlan.backupFolder(of: store)
                _ = try MigrationPlan.carryOut(on: store, backingUpInto: backups, holding: lock) { reached($0, 0) }
            }
        case "backup":
            _ = try withLock { _ in try StoreBackup.make(of: store, into: words.file(0)) { reached($0, 1) } }
        case "restore":
            _ = try withLock { lock in
                try StoreRestoration.bringBack(
                    StoreBackup(at: words.file(0)), to: store, backingUpInto: nil, holding: lock
                ) { reached($0, 1) }
            }
        case "repair":
            _ = try withLock { lock in
                try OperationsDatabase.repair(folder: store, holding: lock) { reached($0, 0) }
            }
        case "forget":
            let lock = try MigrationLock.take(in: store, for: "forget", within: .seconds(10))
            let database = try OperationsDatabase(folder: store)
            _ = try await EnvironmentForgetting.forget(
                words.text(0), in: store, database, discarding: true, holding: lock, reached: { reached($0, 1) })
        default: try await use()
        }
        say("done")
    }

    /// Kills the program, as nothing can prevent it, where the step is the one that was asked for.
    private func reached(_ step: Any, _ index: Int) {
        let name = "\(step)".replacing("LarderRecords.CacheFolder.KillPoint.", with: "")
        say(name)
        guard words.has(index), name == words.text(index) else { return }
        kill(getpid(), SIGKILL)
        sleep(3600)
    }

    private func withLock<Result>(_ body: (MigrationLock) throws -> Result) throws -> Result {
        let lock = try MigrationLock.take(in: store, for: words.verb, within: .seconds(10))
        defer { lock.release() }
        return try body(lock)
    }

    private func use() async throws {
        let shelf = GraphQLOperation("{ number(key: 1) }")
        let schema = try Schema(parsing: "type Query { number(key: Int!): Int }")
        let app = try Store.open(at: store, schema: schema).partition()
        let database = try OperationsDatabase(folder: store)
        let isReader = words.has(0) && words.text(0) == "reading"
        var rounds = 0
        while true {
            try await Task.sleep(for: .milliseconds(5))
            let number = try app.read(shelf, allowsPartial: true)["number"]?.int ?? 0
            say("reads \(number)")
            if isReader { continue }
            rounds += 1
            try await app.write(GraphQLOperation("{ number(key: 2) }"), json: Array(#"{"number":\#(rounds)}"#.utf8))
            let content = MutationContent(document: "mutation { note }", variables: Array("{}".utf8))
            let id = try await database.mutations.enqueue(
                MutationDraft(partition: Store.unnamedPartition, lane: "others", content: content, created: Date())
            ).id
            say("queued \(id.uuidString)")
        }
    }
}
