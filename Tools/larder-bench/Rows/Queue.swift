import Foundation
import LarderOperations
import LarderRecords

extension Bench {
    /// One mutation, until it is on disk.
    func enqueue() async throws -> [BenchRow] {
        try await withQueue { database, bare in
            let times = try await Measurement.times(rounds: rounds * 10, [
                {
                    let draft = draft()
                    return try await Measurement.time { keep(try await database.mutations.enqueue(draft)) }
                },
                {
                    let draft = draft()
                    return try Measurement.time { try bare.insert(draft) }
                },
            ])
            return [BenchRow(
                name: "enqueue", what: "one mutation queued, durable", times, floorName: "one INSERT of the same row",
                reach: .ratio(1.5))]
        }
    }

    /// Many mutations from several tasks, whose commits are shared.
    func enqueueMany() async throws -> [BenchRow] {
        try await withQueue { database, bare in
            let times = try await Measurement.times(rounds: max(rounds / 3, 3), [
                {
                    let drafts = (0..<1_000).map { _ in draft() }
                    return try await Measurement.time {
                        try await withThrowingTaskGroup(of: Void.self) { group in
                            for task in 0..<8 {
                                group.addTask {
                                    for draft in drafts[(task * 125)..<(task * 125 + 125)] {
                                        _ = try await database.mutations.enqueue(draft)
                                    }
                                }
                            }
                            try await group.waitForAll()
                        }
                    }
                },
                {
                    let drafts = (0..<1_000).map { _ in draft() }
                    return try Measurement.time { for draft in drafts { try bare.insert(draft) } }
                },
            ])
            return [BenchRow(
                name: "enqueue-many", what: "1,000 mutations from 8 tasks, durable", times,
                floorName: "1,000 INSERTs, a commit each", reach: .ratio(0.2))]
        }
    }

    /// A read of many objects, a hundred of which a queued mutation has changed.
    func layers() async throws -> [BenchRow] {
        try await withItems(1_000) { shop, cache in
            let path = freshPath("base")
            defer { remove(path) }
            let base = try RecordCache(folder: path, stamp: "bench")
            try await shop.fill(base, 0..<1_000)
            let layers = try (0..<100).map { index in
                let number = index * 10
                let operation = try shop.changing(number)
                let parsed = try ParsedResponse.parse(shop.changed(number, title: "Changed"), along: operation.layout)
                guard let key = AppliedKey("key \(index)") else { throw BenchFailure("a key is none") }
                return OptimisticLayer(key: key, response: .init(parsed, of: operation))
            }
            guard try cache.setLayers(layers).isEmpty else { throw BenchFailure("a layer was left out") }
            let page = try shop.reading(page: 0)
            guard try cache.read(page).isOptimistic else { throw BenchFailure("no layer is seen") }
            let times = try await Measurement.times(rounds: rounds * 3, [
                { try Measurement.time { keep(try cache.read(page)) } },
                { try Measurement.time { keep(try base.read(page)) } },
            ])
            try base.close()
            return [BenchRow(
                name: "layers", what: "1,000 objects read, 100 of them changed by pending mutations", times,
                floorName: "the same without layers", reach: .ratio(1.3))]
        }
    }

    private func draft() -> MutationDraft {
        MutationDraft(
            partition: "app",
            content: MutationContent(
                document: "mutation Rename($id: ID!, $title: String!) { rename(id: $id, title: $title) { id title } }",
                operationName: "Rename",
                variables: Array(#"{"id":"12345","title":"A soup of lentils and a good deal of cumin"}"#.utf8),
                optimisticResponse: Array(
                    #"{"rename":{"__typename":"Item","id":"12345","title":"A soup of lentils and cumin"}}"#.utf8)),
            created: Date())
    }

    private func withQueue<Result>(
        _ body: (OperationsDatabase, BareQueue) async throws -> Result
    ) async throws -> Result {
        let path = freshPath("queue")
        defer { remove(path) }
        let database = try OperationsDatabase(folder: URL(filePath: path))
        let bare = try BareQueue(file: "\(path)/bare.sqlite")
        let result = try await body(database, bare)
        try database.close()
        return result
    }
}
