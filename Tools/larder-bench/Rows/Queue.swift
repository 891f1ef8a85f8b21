import Foundation
import Larder
import LarderOperations
import LarderRecords
import Synchronization

extension Bench {
    /// One mutation, until it is on disk.
    func enqueue() async throws -> [BenchRow] {
        try await withQueue { database, bare in
            let times = try await Measurement.times(
                rounds: rounds * 10,
                [
                    {
                        let draft = Self.draft()
                        return try await Measurement.time { keep(try await database.mutations.enqueue(draft)) }
                    },
                    {
                        let draft = Self.draft()
                        return try Measurement.time { try bare.insert(draft) }
                    },
                ])
            return [
                BenchRow(
                    name: "enqueue", what: "one mutation queued, durable", times,
                    floorName: "one INSERT of the same row",
                    reach: .ratio(1.5))
            ]
        }
    }

    /// Many mutations from several tasks: each queues all of its own in one call; or it waits for one before it queues
    /// the next, and those of a moment share a commit.
    func enqueueMany() async throws -> [BenchRow] { try await [enqueueTogether(), enqueueEach()] }

    private func enqueueEach() async throws -> BenchRow {
        try await withQueue { database, bare in
            let times = try await Measurement.times(
                rounds: max(rounds / 3, 3),
                [
                    {
                        // As those of the floor, made before; in turns, so that ids ascend as they do where each is
                        // made when it is queued.
                        let drafts = (0..<1_000).map { _ in Self.draft() }
                        let shares = (0..<8).map { task in stride(from: task, to: 1_000, by: 8).map { drafts[$0] } }
                        return try await Measurement.time {
                            try await withThrowingTaskGroup(of: Void.self) { group in
                                for share in shares {
                                    group.addTask {
                                        for draft in share { keep(try await database.mutations.enqueue(draft)) }
                                    }
                                }
                                try await group.waitForAll()
                            }
                        }
                    },
                    {
                        let drafts = (0..<1_000).map { _ in Self.draft() }
                        return try Measurement.time { for draft in drafts { try bare.insert(draft) } }
                    },
                    {
                        let groups = (0..<125).map { _ in (0..<8).map { _ in Self.draft() } }
                        return try Measurement.time { for group in groups { try bare.insert(group) } }
                    },
                ])
            // It has no reach: a queue whose eight tasks wait for each commit cannot go below this.
            let shared = String(format: "the INSERTs, eight to a commit: %.2f x", times[2].median / times[1].median)
            return BenchRow(
                name: "enqueue-each", what: "1,000 mutations from 8 tasks, one by one, durable", times,
                floorName: "1,000 INSERTs, a commit each", reach: nil, note: shared)
        }
    }

    private func enqueueTogether() async throws -> BenchRow {
        let times = try await Measurement.times(
            rounds: max(rounds / 3, 3),
            [
                {
                    try await withFreshPath("together") { path in
                        let (store, app) = try RatingDesk.reopen(at: path)
                        // Makes the tables, which a program has by then.
                        try await app.enqueue([RatingDesk.mutation(1_000)])
                        let mutations = (0..<8).map { task in (0..<125).map { RatingDesk.mutation(task * 125 + $0) } }
                        let time = try await Measurement.time {
                            try await withThrowingTaskGroup(of: Void.self) { group in
                                for share in mutations { group.addTask { try await app.enqueue(share) } }
                                try await group.waitForAll()
                            }
                        }
                        try store.close()
                        return time
                    }
                },
                {
                    try await withFreshPath("bare") { path in
                        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
                        let bare = try BareQueue(file: "\(path)/bare.sqlite")
                        try bare.insert(RatingDesk.draft(1_000))
                        let drafts = (0..<1_000).map(RatingDesk.draft)
                        return try Measurement.time { for draft in drafts { try bare.insert(draft) } }
                    }
                },
            ])
        return BenchRow(
            name: "enqueue-many", what: "1,000 mutations from 8 tasks, each its 125 in one call, durable", times,
            floorName: "1,000 INSERTs, a commit each", reach: .ratio(0.2))
    }

    /// All that is queued, sent and settled; and whether that takes as long for each however many there are.
    func drain() async throws -> [BenchRow] {
        var rows: [BenchRow] = []
        var shortest: (count: Int, each: Measurement.Times)?
        for count in [100, 10_000, 100_000] where count <= max(largest / 10, 100) {
            let rounds = count > 10_000 ? 1 : count > 1_000 ? max(min(rounds / 7, 3), 1) : rounds
            let commits = Mutex(0)
            let times = try await Measurement.times(
                rounds: rounds, warmingUp: count <= 1_000,
                [
                    {
                        try await withFreshPath("drain") { path in
                            let (store, app) = try await RatingDesk.open(at: path, pending: count)
                            let database = try store.operationsDatabase()
                            let before = database.commitCount
                            let time = try await Measurement.time { try await MutationRunner(app).drain() }
                            commits.withLock { $0 = database.commitCount - before }
                            guard try !app.hasUnsentMutations() else { throw BenchFailure("something is still queued") }
                            try store.close()
                            return time
                        }
                    },
                    { try await pass(count, .own, commits: commits.withLock { $0 }) },
                    { try await pass(count, .one, commits: commits.withLock { $0 }) },
                ])
            let each = times.map { $0.dividing(by: Double(count)) }
            rows.append(
                BenchRow(
                    name: "drain-\(count)", what: "one of \(count) queued mutations, sent, answered and settled", each,
                    floorName: "its rows inserted, updated twice and deleted, with as many commits",
                    reach: count == 10_000 ? .ratio(2) : nil,
                    note: String(
                        format: "%d commits; %.2f x of rows without indices and checks", commits.withLock { $0 },
                        each[0].median / each[2].median)))
            guard let shortest else {
                shortest = (count, each[0])
                continue
            }
            rows.append(
                BenchRow(
                    name: "drain-flat", what: "one of \(count), beside one of \(shortest.count)",
                    [each[0], shortest.each],
                    floorName: "one of \(shortest.count)", reach: .ratio(1.1)))
        }
        return rows
    }

    /// Seconds that rows of mutations take through all that becomes of them.
    private func pass(_ count: Int, _ tables: QueueTables, commits: Int) async throws -> Double {
        try await withFreshPath("bare") { path in
            try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
            let bare = try BareQueue(file: "\(path)/bare.sqlite", tables)
            let drafts = (0..<count).map(RatingDesk.draft)
            return try Measurement.time { try bare.pass(drafts, commits: commits) }
        }
    }

    /// A store whose queue is full, opened, and read through all of its layers.
    func openQueue() async throws -> [BenchRow] {
        let count = 10_000
        return try await withFreshPath("pending") { path in
            let (first, _) = try await RatingDesk.open(at: path, pending: count)
            try first.close()
            let bare = try BareQueue(file: "\(path)/bare.sqlite")
            try bare.insert((0..<count).map(RatingDesk.draft))
            let fragment = GraphQLFragment("fragment F on Item { title }")
            let times = try await Measurement.times(
                rounds: max(rounds / 2, 3),
                [
                    {
                        var opened: (Store, Partition)?
                        let time = try Measurement.time { opened = try RatingDesk.reopen(at: path) }
                        guard let (store, app) = opened, try app.read("Item:77", fragment)["title"]?.string != nil
                        else {
                            throw BenchFailure("no layer is seen")
                        }
                        try store.close()
                        return time
                    },
                    { try Measurement.time { keep(try bare.readAll()) } },
                ])
            return [
                BenchRow(
                    name: "open-queue", what: "a store with 10,000 pending mutations opened", times,
                    floorName: "their rows read once", reach: .ratio(3))
            ]
        }
    }

    private func withFreshPath<Result>(_ name: String, _ body: (String) async throws -> Result) async throws -> Result {
        let path = freshPath(name)
        defer { remove(path) }
        return try await body(path)
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
            cache.replaceLayers(layers)
            guard try cache.layerFailures().isEmpty else { throw BenchFailure("a layer was left out") }
            let page = try shop.reading(page: 0)
            guard try cache.read(page).isOptimistic else { throw BenchFailure("no layer is seen") }
            let times = try await Measurement.times(
                rounds: rounds * 3,
                [
                    { try Measurement.time { keep(try cache.read(page)) } },
                    { try Measurement.time { keep(try base.read(page)) } },
                ])
            try base.close()
            return [
                BenchRow(
                    name: "layers", what: "1,000 objects read, 100 of them changed by pending mutations", times,
                    floorName: "the same without layers", reach: .ratio(1.3))
            ]
        }
    }

    private static func draft() -> MutationDraft {
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
