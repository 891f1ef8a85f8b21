import Foundation
import Larder
import LarderOperations
import LarderRecords
import LarderTestSupport

// A program that the tests start, stop and kill while it migrates, backs up or restores a store. It ends when its
// standard input does.
//
//     larder-migrate-crash STORE hold             takes the migration lock, says so, and keeps it
//     larder-migrate-crash STORE up [STEP]        migrates, and kills itself at a step
//     larder-migrate-crash STORE backup TO [STEP]
//     larder-migrate-crash STORE restore FROM [STEP]
//     larder-migrate-crash STORE repair [STEP]
//     larder-migrate-crash STORE forget NAME [STEP]
//     larder-migrate-crash STORE use              reads and writes, and says what it reads; fails at any error

@Sendable func say(_ line: String) { FileHandle.standardOutput.write(Data((line + "\n").utf8)) }

let arguments = CommandLine.arguments
guard arguments.count >= 3 else { exit(2) }
endWithStandardInput()
let store = URL(filePath: arguments[1])

func argument(_ index: Int) -> String { arguments.count > index ? arguments[index] : "" }

/// Kills the program, as nobody can prevent it, where the step is the one that was asked for.
func reached(_ step: Any, _ wanted: String) {
    let name = "\(step)".replacing("LarderRecords.ReplacementStep.", with: "")
    say(name)
    guard name == wanted else { return }
    kill(getpid(), SIGKILL)
    sleep(3600)
}

func withLock<Result>(_ body: (MigrationLock) throws -> Result) throws -> Result {
    let lock = try MigrationLock.take(in: store, for: arguments[2], within: .seconds(10))
    defer { lock.release() }
    return try body(lock)
}

switch arguments[2] {
case "hold":
    try withLock { _ in
        say("holding")
        sleep(3600)
    }
case "up":
    try withLock { lock in
        let backups = MigrationPlan.backupFolder(of: store)
        _ = try MigrationPlan.carryOut(on: store, backingUpInto: backups, holding: lock) { reached($0, argument(3)) }
    }
    say("done")
case "backup":
    _ = try withLock { _ in
        try StoreBackup.make(of: store, into: URL(filePath: argument(3))) { reached($0, argument(4)) }
    }
    say("done")
case "restore":
    _ = try withLock { lock in
        try StoreRestoration.bringBack(
            StoreBackup(at: URL(filePath: argument(3))), to: store, backingUpInto: nil, holding: lock
        ) { reached($0, argument(4)) }
    }
    say("done")
case "repair":
    _ = try withLock { lock in
        try OperationsDatabase.repair(folder: store, holding: lock) { reached($0, argument(3)) }
    }
    say("done")
case "forget":
    let lock = try MigrationLock.take(in: store, for: "forget", within: .seconds(10))
    let database = try OperationsDatabase(folder: store)
    _ = try await EnvironmentForgetting.forget(
        argument(3), in: store, database, discarding: true, holding: lock, reached: { reached($0, argument(4)) })
    say("done")
case "use":
    let shelf = GraphQLOperation("{ number(key: 1) }")
    let schema = try Schema(parsing: "type Query { number(key: Int!): Int }")
    let app = try Store.open(at: store, schema: schema).partition()
    let database = try OperationsDatabase(folder: store)
    var rounds = 0
    while true {
        let number = try app.read(shelf, allowsPartial: true)["number"]?.int ?? 0
        say("reads \(number)")
        rounds += 1
        try await app.write(GraphQLOperation("{ number(key: 2) }"), json: Array(#"{"number":\#(rounds)}"#.utf8))
        let content = MutationContent(document: "mutation { note }", variables: Array("{}".utf8))
        let id = try await database.mutations.enqueue(
            MutationDraft(partition: Store.unnamedPartition, lane: "others", content: content, created: Date())
        ).id
        say("queued \(id.uuidString)")
        try await Task.sleep(for: .milliseconds(5))
    }
default: exit(2)
}
