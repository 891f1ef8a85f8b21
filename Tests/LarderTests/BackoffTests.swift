import Foundation
import LarderOperations
import LarderTestSupport
import Testing

@testable import Larder

@Suite("Pauses between attempts", .timeLimit(.minutes(10)))
struct BackoffTests {
    @Test("A pause is any time from none to its bound, which doubles up to the cap")
    func jitter() {
        let backoff = Backoff(first: .seconds(1), cap: .seconds(300))
        for (attempt, bound) in [(1, 1.0), (2, 2), (3, 4), (9, 256), (10, 300), (1_000, 300)] {
            #expect(backoff.pause(after: attempt, fraction: 0) == .zero)
            #expect(backoff.pause(after: attempt, fraction: 0.5) == .seconds(bound / 2))
            #expect(backoff.pause(after: attempt, fraction: 1) == .seconds(bound))
        }
        #expect(backoff.pause(after: 1, fraction: -1) == .zero)
        #expect(backoff.pause(after: 1, fraction: 2) == .seconds(1))
    }

    @Test("A request sent before a server asked for a pause neither lengthens the pause nor ends it")
    func serverPause() {
        var pause = ServerPause()
        let now = Date(timeIntervalSince1970: 1_000)
        for _ in 0..<3 { pause.begin(at: now, inTurn: 0) { .seconds($0) } }
        #expect(pause.count == 1)
        #expect(pause.end(at: now) == now.addingTimeInterval(1))
        pause.end(inTurn: 0)
        #expect(pause.count == 1)
        pause.begin(at: now, inTurn: 1) { .seconds($0) }
        #expect(pause.end(at: now) == now.addingTimeInterval(2))
        pause.end(inTurn: 2)
        #expect(pause.count == 0)
        #expect(pause.end(at: now) == nil)
    }

    @Test(
        "The greater of the pause that was asked for and the one that grows",
        arguments: [
            (1, nil, 1), (3, nil, 4), (3, 0, 4), (3, 2, 4), (3, 9, 9), (60, nil, 300), (1, 1_000_000, 86_400),
        ] as [(Int, Int?, Int)])
    func greater(attempt: Int, asked: Int?, seconds: Int) {
        let pause = Backoff().pause(after: attempt, asked: asked.map { .seconds($0) }, fraction: 1)
        #expect(pause == .seconds(seconds))
    }

    @Test("No pause is longer than a day, whatever the cap")
    func longest() {
        let pause = Backoff(first: .seconds(1_000_000), cap: .seconds(1_000_000)).pause(after: 9, fraction: 1)
        #expect(pause == .seconds(86_400))
    }

    /// Queues a mutation and runs the queue by a clock that stands still, with pauses of ten seconds at first.
    private func running(
        _ server: ScriptedServer, _ mutation: MutationOptions = MutationOptions(),
        _ change: (inout MutationRunner.Options) -> Void = { _ in },
        _ body: (MutationReceipt, MutationQueue, TestClock) async throws -> Void
    ) async throws {
        let clock = TestClock()
        var options = Store.Options()
        options.now = { clock.now }
        try await withTemporaryFolder { [options] folder in
            let store = try Store.open(at: folder, schema: try Schema(parsing: fixtureSchema), options: options)
            let app = try store.partition(server: server)
            let receipt = try await app.enqueue(giveStars("1", 5), options: mutation)
            let runner = quickRunner(app) { options in
                options.backoff = Backoff(first: .seconds(10), cap: .seconds(3600))
                options.random = { 1 }
                change(&options)
            }
            let service = Task { try await runner.run() }
            try await body(receipt, try store.operationsDatabase().mutations, clock)
            service.cancel()
            try await service.value
            try store.close()
        }
    }

    @Test("A mutation that finds no server waits for a longer pause after each attempt")
    func growing() async throws {
        try await running(ScriptedServer.away) { receipt, queue, clock in
            try await expectGrowingPauses(of: receipt, queue, clock)
        }
    }

    /// Lets three attempts pass, and looks at how long the mutation waits after each.
    private func expectGrowingPauses(
        of receipt: MutationReceipt, _ queue: MutationQueue, _ clock: TestClock
    ) async throws {
        for (attempts, pause) in [(1, 10), (2, 20), (3, 40)] {
            try await eventually {
                let status = try receipt.status()
                return status?.attempts == attempts && status?.state == .pending
            }
            let time = clock.now.addingTimeInterval(TimeInterval(pause))
            #expect(try queue.list().map(\.notBefore) == [time])
            clock.advance(by: .seconds(pause))
        }
    }

    private struct Away: Error {}

    @Test("A check that does not answer is asked again after a longer pause each time")
    func growingForCheck() async throws {
        let server = ScriptedServer { _, _ in .failure(TransportError(.interrupted, "lost")) }
        try await running(server, .init(check: "rated")) { options in
            options.checks["rated"] = { _ in throw Away() }
        } _: { receipt, queue, clock in
            try await expectGrowingPauses(of: receipt, queue, clock)
            #expect(server.requests.count == 1)
        }
    }

    @Test("A mutation whose resolver does not answer is sent again after a longer pause each time")
    func growingForSilentResolver() async throws {
        let server = ScriptedServer { _, _ in ScriptedServer.status(409) }
        try await running(server, .init(resolver: "merge")) { options in
            options.resolvers["merge"] = { _ in throw Away() }
        } _: { receipt, queue, clock in
            try await expectGrowingPauses(of: receipt, queue, clock)
        }
    }

    @Test("A mutation that its resolver has sent again waits for a longer pause after each refusal")
    func growingForResolver() async throws {
        let server = ScriptedServer(ScriptedServer.key) { _, _ in ScriptedServer.status(409) }
        try await running(server, .init(resolver: "merge")) { options in
            options.resolvers["merge"] = { _ in .retry(variables: ["recipe": "1", "stars": 4]) }
        } _: { receipt, queue, clock in
            try await expectGrowingPauses(of: receipt, queue, clock)
        }
    }

    @Test("A mutation waits as long as its failed server asks, when that is longer than its own pause")
    func asked() async throws {
        let server = ScriptedServer(ScriptedServer.key) { _, _ in
            ScriptedServer.status(500, retryAfter: .seconds(600))
        }
        try await running(server) { receipt, queue, clock in
            try await eventually { try receipt.status()?.failure != nil }
            #expect(try queue.list().map(\.notBefore) == [clock.now.addingTimeInterval(600)])
        }
    }
}
