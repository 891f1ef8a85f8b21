import Foundation
import LarderFiles
import LarderOperations
import LarderTestSupport
import Logging
import Testing

@testable import Larder

@Suite("Looking for what other processes commit", .timeLimit(.minutes(10)))
struct CommitWatchTests {
    private static func open(_ folder: URL, _ server: ScriptedServer? = nil) throws -> (Store, Partition) {
        let store = try Store.open(at: folder, schema: try Schema(parsing: fixtureSchema))
        return (store, try store.partition(transport: server))
    }

    /// Waits until a number has stayed the same for a second. One that a poll raises never does.
    private func requireRest(_ number: () -> Int) async throws {
        var last = -1
        for _ in 0..<120 where last != number() {
            last = number()
            try await Task.sleep(for: .seconds(1))
        }
        #expect(last == number())
        #expect(last > 0)
    }

    private func queue(_ other: OperationsDatabase, _ recipe: String) async throws {
        _ = try await other.mutations.enqueue(
            MutationDraft(
                partition: Store.unnamedPartition, lane: "other",
                content: MutationContent(
                    document:
                        "mutation Rate($recipe: ID!, $stars: Int!) { rate(input: {recipe: $recipe, stars: $stars})"
                        + " { id rating } }",
                    variables: Array(#"{"recipe":"\#(recipe)","stars":1}"#.utf8)),
                created: Date()))
    }

    @Test("A store in which nothing happens looks for nothing, and notices what others queue")
    func idle() async throws {
        try await withTemporaryFolder { folder in
            let other = try OperationsDatabase(folder: folder)
            let (store, app) = try Self.open(folder)
            let partitions = store.partitions
            func looks() -> Int { partitions.lookCount.load(ordering: .relaxed) }
            try await requireRest(looks)
            let before = looks()
            try await queue(other, "1")
            try await eventually { looks() > before }
            try await eventually { try app.mutations(in: [.pending]).count == 1 }
            try await requireRest(looks)
            try await store.suspend()
            try store.resume()
            try await requireRest(looks)
            let resumed = looks()
            try await queue(other, "2")
            try await eventually { looks() > resumed }
            try other.close()
            try store.close()
        }
    }

    @Test("Runners that have nothing to carry out look for nothing, and send what others queue")
    func idleRunners() async throws {
        try await withTemporaryFolder { folder in
            let other = try OperationsDatabase(folder: folder)
            let server = ScriptedServer.rating()
            let (store, app) = try Self.open(folder, server)
            let (mutating, transferring) = (CountedConnectivity(), CountedConnectivity())
            let runner = quickRunner(app) { $0.connectivity = mutating }
            var options = TransferRunner.Options()
            options.connectivity = transferring
            let storage = MemoryStorage()
            let transferRunner = TransferRunner(app, storage: storage, options: options)
            let running = Task { try await runner.run() }
            let carrying = Task { try await transferRunner.run() }
            try await requireRest { mutating.looks }
            try await requireRest { transferring.looks }
            try await queue(other, "1")
            let file = folder.appending(path: "file")
            try Data("bytes".utf8).write(to: file)
            let place = ObjectLocation(bucket: "b", key: "k")
            try await other.transfers.enqueue([
                TransferDraft(
                    partition: Store.unnamedPartition, kind: .upload, bucket: "b", key: "k", path: file.path,
                    source: try FileIdentity(ofSource: file.path), created: Date())
            ])
            try await eventually { server.requests.count == 1 }
            try await eventually { storage.object(place) != nil }
            try await requireRest { mutating.looks }
            try await requireRest { transferring.looks }
            running.cancel()
            carrying.cancel()
            try await running.value
            try await carrying.value
            try other.close()
            try store.close()
        }
    }

    @Test("A runner at rest sends each mutation that another connection queues, one after the other")
    func each() async throws {
        try await withTemporaryFolder { folder in
            let other = try OperationsDatabase(folder: folder)
            let server = ScriptedServer.rating()
            let (store, app) = try Self.open(folder, server)
            let runner = quickRunner(app) { _ in }
            let running = Task { try await runner.run() }
            for round in 1...50 {
                try await queue(other, "1")
                try await eventually { server.requests.count == round }
            }
            running.cancel()
            try await running.value
            try other.close()
            try store.close()
        }
    }

    @Test("Where the system watches no folder a store looks again and again")
    func unwatched() async throws {
        try await withTemporaryFolder { folder in
            let operations = OperationsStore(folder: folder, options: OperationsDatabase.Options())
            let partitions = OpenPartitions(
                folder: folder.path, operationsStore: operations, logger: Logger(label: "test"),
                openWatch: { _, _ in nil })
            partitions.followOthers()
            try await eventually { partitions.lookCount.load(ordering: .relaxed) > 5 }
            await partitions.endFollowing()
            try operations.close()
        }
    }

    #if os(Linux)
    @Test(
        "What another process writes to the cache is told to a watcher, also where that process is killed",
        .enabled(if: ChildProgram.isBuilt, "\(ChildProgram.requirement)"))
    func otherCache() async throws {
        try await withTemporaryFolder { folder in
            let place = folder.appending(path: "store")
            try OperationsDatabase(folder: place).close()
            let schema =
                "type Book { id: ID! title: String! pages: [Page!]! } type Page { text: String! } "
                + "type Query { books: [Book!]! }"
            let store = try Store.open(at: place, schema: try Schema(parsing: schema))
            let app = try store.partition()
            let shelf = GraphQLOperation("{ books { id title pages { text } } }")
            var states = try app.watch(shelf).makeAsyncIterator()
            let said = folder.appending(path: "said")
            var seen: String?
            for round in 0..<5 {
                let child = try ChildProgram.start(place, "count", "\(round)", output: said)
                let lines = try ChildProgram.lines(of: said).count
                try await eventually { try ChildProgram.lines(of: said).count > lines + 3 }
                kill(child.processIdentifier, SIGKILL)
                await child.ended()
                let answer = try app.read(shelf, allowsPartial: true)
                let last = answer["books"]?[0]?["title"]?.string
                // The watcher comes to what is there now.
                while seen != last, let state = try await next(&states) {
                    seen = state.response?["books"]?[0]?["title"]?.string
                }
                #expect(seen == last)
            }
            try store.close()
        }
    }

    @Test("A watch tells of a touched file once, and again after it was armed again")
    func armed() async throws {
        try await withTemporaryFolder { folder in
            let file = folder.appending(path: "file")
            try Data().write(to: file)
            let left = Countdown(1_000)
            let watch = try #require(CommitWatch(folder.path) { _ = left.take() })
            let files = FileSystem()
            watch.arm()
            for _ in 0..<100 { files.touch(file.path) }
            try await eventually { left.count < 1_000 }
            files.touch(file.path)
            // What was touched before is not told of.
            watch.arm()
            files.touch(file.path)
            try await eventually { left.count == 998 }
            await watch.close()
            await watch.close()
            #expect(CommitWatch(folder.appending(path: "missing").path, {}) == nil)
        }
    }
    #endif
}
