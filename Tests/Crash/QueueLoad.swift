import Foundation
import LarderOperations

/// Queues mutations in a database without a store around it.
struct QueueLoad {
    private let database: OperationsDatabase

    init(folder: URL) throws { database = try OperationsDatabase(folder: folder) }

    private func draft(lane: String) -> MutationDraft {
        let text = String(repeating: "x", count: Int.random(in: 0..<3000))
        let content = MutationContent(
            document: "mutation { note }", variables: Array(#"{"text":"\#(text)"}"#.utf8))
        return MutationDraft(partition: "app", lane: lane, content: content, created: Date())
    }

    /// From eight tasks, until the program is killed.
    func enqueue() async throws {
        try await withThrowingTaskGroup(of: Void.self) { group in
            for lane in 0..<8 {
                group.addTask {
                    while true { say(try await database.mutations.enqueue(draft(lane: "\(lane)")).id.uuidString) }
                }
            }
            try await group.waitForAll()
        }
    }

    /// So many, and carries each of them out.
    func drain(_ count: Int) async throws {
        let owner = "\(getpid())"
        for _ in 0..<count {
            let id = try await database.mutations.enqueue(draft(lane: owner)).id
            let attempt = try await database.mutations.begin(id, owner: owner, now: Date()).attempt
            try await database.mutations.answer(attempt, Array("{}".utf8), now: Date())
            try await database.mutations.settle(id, now: Date())
            say(id.uuidString)
        }
        try database.close()
    }
}
