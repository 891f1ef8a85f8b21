import Foundation
import LarderOperations
import LarderTestSupport

// A program that the tests start and kill while it works on a store of intent. It ends when its standard input does:
// with the program that started it, in whatever way that ends.
//
//     larder-operations-crash STORE enqueue      queues from eight tasks, and says each id once it is accepted
//     larder-operations-crash STORE drain N      queues and carries out N mutations beside others that do the same

@Sendable func say(_ line: String) { FileHandle.standardOutput.write(Data((line + "\n").utf8)) }

let arguments = CommandLine.arguments
guard arguments.count >= 3 else { exit(2) }
endWithStandardInput()
let database = try OperationsDatabase(folder: URL(filePath: arguments[1]))

@Sendable func draft(lane: String) -> MutationDraft {
    let text = String(repeating: "x", count: Int.random(in: 0..<3000))
    let content = MutationContent(
        document: "mutation { note }", variables: Array(#"{"text":"\#(text)"}"#.utf8))
    return MutationDraft(partition: "app", lane: lane, content: content, created: Date())
}

switch arguments[2] {
case "enqueue":
    try await withThrowingTaskGroup(of: Void.self) { group in
        for lane in 0..<8 {
            group.addTask {
                while true { say(try await database.mutations.enqueue(draft(lane: "\(lane)")).id.uuidString) }
            }
        }
        try await group.waitForAll()
    }
case "drain":
    let owner = "\(getpid())"
    for _ in 0..<(arguments.count > 3 ? Int(arguments[3]) ?? 10 : 10) {
        let id = try await database.mutations.enqueue(draft(lane: owner)).id
        let attempt = try await database.mutations.begin(id, owner: owner, now: Date()).attempt
        try await database.mutations.answer(attempt, Array("{}".utf8), now: Date())
        try await database.mutations.settle(id, now: Date())
        say(id.uuidString)
    }
    try database.close()
default: exit(2)
}
