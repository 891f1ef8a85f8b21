import Foundation
import LarderTestSupport
import MetricsTestKit
import Testing

@testable import Larder

@Suite("Pages that a synchronization fetches ahead", .timeLimit(.minutes(5)))
struct SyncAheadTests {
    @Test(
        "Pages are fetched ahead until those beyond the first would be more than a megabyte, or than 4,096 objects",
        arguments: [(1, 600_000), (2_100, 1)])
    func room(objectsPerPage count: Int, bytesPerObject length: Int) async throws {
        let server = SyncServer()
        server.change { $0.pageSize = count }
        let title = String(repeating: "x", count: length)
        for number in 0..<(5 * count) { server.put("\(number)", title) }
        try await withStoreFixture(server.transport, schema: SyncServer.schema) { app in
            var sync = SyncServer.sync
            sync.pageSize = count
            let first = SyncPages(of: try SyncQuery(sync, app), since: nil)
            let (answers, pages) = await first.goingOn(upTo: .max) { true }
            #expect(answers.count == 2)
            #expect(!pages.hasEnded)
            #expect(server.requests.count == 2)
        }
    }

    @Test("Pages that come while another is being stored share one commit")
    func sharedCommit() async throws {
        let server = SyncServer()
        for number in 0..<20 { server.put("\(number)", "t") }
        let metrics = TestMetrics()
        var options = Store.Options()
        options.metrics = metrics
        try await withOpenStore(server.transport, schema: SyncServer.schema, options: options) { _, _, app in
            let fragment = GraphQLFragment("fragment F on Todo { title }")
            try await app.write("Todo:x", fragment, json: Array(#"{"title": "held"}"#.utf8))
            func commits() -> Int {
                metrics.timers(label: "larder.commit.duration").map(\.values.count).reduce(0, +)
            }
            let before = commits()
            let isHeld = Flag()
            async let holding: Void = app.update("Todo:x", fragment) { _ in
                // No page can be stored until this returns.
                isHeld.set()
                let deadline = SuspendingClock.now + .seconds(10)
                while server.requests.count < 20, .now < deadline { Thread.sleep(forTimeInterval: 0.001) }
            }
            try await eventually { isHeld.isSet }
            var sync = SyncServer.sync
            sync.pageSize = 1
            #expect(try await app.sync(sync).pageCount == 20)
            try await holding
            // The commits are of the update, the first page, all other pages, and the removal at the end.
            #expect(commits() - before < 10)
        }
    }
}
