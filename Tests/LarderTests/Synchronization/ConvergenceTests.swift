import Foundation
import Larder
import LarderTestSupport
import LarderTesting
import Testing

@Suite("Convergence with a server that changes", .timeLimit(.minutes(10)))
struct ConvergenceTests {
    private static let changed = GraphQLOperation("subscription { changed { id title } }")
    private static let all = GraphQLOperation("query { todos { id title } }")

    /// The objects of the server that the cache has otherwise, with what both have.
    private func differences(_ app: Partition, _ server: SyncServer) -> [String] {
        server.todos.compactMap { id, todo -> String? in
            let cached = try? app.read("Todo:\(id)", GraphQLFragment("fragment F on Todo { title }"))["title"]?.string
            let expected = todo.isDeleted ? nil : todo.title
            return cached == expected ? nil : "\(id): \(cached ?? "-") for \(expected ?? "-")"
        }
    }

    private func converge(seed: UInt64, isVersioned: Bool) async throws {
        let server = ConvergingServer(seed: seed, isVersioned: isVersioned)
        var numbers = SeededNumbers(seed: seed, "client")
        var sync = SyncServer.sync
        sync.pageSize = 3
        let options = isVersioned ? SubscriptionOptions(sync: sync) : SubscriptionOptions(catchUp: Self.all)
        let schema = try Schema(parsing: isVersioned ? SyncServer.schema : SyncServer.unversionedSchema)
        try await withTemporaryFolder { folder in
            // The client is started again with its store, and has missed what happened meanwhile.
            for life in 0..<3 {
                let store = try Store.open(at: folder, schema: schema)
                let app = try store.partition(server: server)
                let subscription = try await app.subscribe(Self.changed, options: options)
                for _ in 0..<Int.random(in: 5...25, using: &numbers) {
                    server.change()
                    for _ in 0..<Int.random(in: 0...30, using: &numbers) { await Task.yield() }
                }
                if life == 2 {
                    server.quieten()
                    let end = SuspendingClock.now + .seconds(60)
                    while .now < end, !differences(app, server.server).isEmpty {
                        try await Task.sleep(for: .milliseconds(2))
                    }
                    #expect(differences(app, server.server) == [], "seed \(seed)")
                }
                withExtendedLifetime(subscription) {}
                try store.close()
                for _ in 0..<Int.random(in: 0...4, using: &numbers) { server.change() }
            }
            try expectSound(folder)
        }
    }

    @Test("After quiet, a cache that is kept by delta synchronization equals the server, object by object")
    func deltaSync() async throws {
        for round in 0..<100 {
            try await converge(seed: TestSeed.of("convergence by delta queries", round), isVersioned: true)
        }
    }

    @Test("After quiet, a cache that fetches anew after each gap equals the server, object by object")
    func refetch() async throws {
        for round in 0..<100 {
            try await converge(seed: TestSeed.of("convergence by queries", round), isVersioned: false)
        }
    }
}
