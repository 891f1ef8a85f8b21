import Foundation
import LarderTestSupport
import Synchronization
import Testing

@testable import Larder

@Suite("A suspension breaks off what the runner asks, and that counts for nothing", .timeLimit(.minutes(10)))
struct SuspendedQuestionTests {
    /// Questions that are not answered until they are broken off, the first three times.
    private final class Questions: Sendable {
        private let asked = Mutex(0)
        var count: Int { asked.withLock { $0 } }

        func ask() async throws {
            let count = asked.withLock { asked in
                asked += 1
                return asked
            }
            if count <= 3 { try await Task.sleep(for: .seconds(600)) }
        }
    }

    /// As `suspend` and `resume` do, but that the work is waited for however slow the machine is.
    private func breakOffWork(of store: Store) async throws {
        let number = try await store.suspension.ask()
        store.operationsStore.changeSignal.notify()
        while try await !store.suspension.workHasEnded(number, within: .milliseconds(20)) {}
        try store.resume()
    }

    /// Has a mutation sent, and breaks off three questions, more than would set it aside.
    ///
    /// - Returns: How it ended, and how often the server was looked for in vain.
    private func run(
        _ server: ScriptedServer, _ questions: Questions, _ options: MutationOptions = .init(),
        _ change: (inout MutationRunner.Options) -> Void = { _ in }
    ) async throws -> (isApplied: Bool, failedSearches: Int) {
        try await withTemporaryFolder { folder in
            let store = try Store.open(at: folder, schema: try Schema(parsing: fixtureSchema))
            let app = try store.partition(server: server)
            let receipt = try await app.enqueue(giveStars("1", 5), options: options)
            let runner = quickRunner(app) {
                $0.maximumFaults = 2
                change(&$0)
            }
            let service = Task { try await runner.run() }
            for count in 1...3 {
                try await eventually { try questions.count >= count || receipt.status()?.isEnded == true }
                try await breakOffWork(of: store)
            }
            let isApplied = try await receipt.outcome(within: .seconds(300)).isApplied
            let failedSearches = runner.progress.withLock { $0.failedSearches }
            service.cancel()
            try await service.value
            try store.close()
            try expectSound(folder)
            return (isApplied, failedSearches)
        }
    }

    @Test("A resolver that suspensions break off is asked again, and its mutation is not set aside")
    func resolver() async throws {
        let questions = Questions()
        let server = ScriptedServer { number, request in
            number < 4 ? ScriptedServer.status(409) : ScriptedServer.done(request)
        }
        let end = try await run(server, questions, .init(resolver: "merge")) { options in
            options.resolvers["merge"] = { _ in
                try await questions.ask()
                return .retry(variables: ["recipe": "1", "stars": 3])
            }
        }
        #expect(end.isApplied)
        #expect(server.requests.count == 5)
    }

    @Test("A check that suspensions break off is asked again, and its mutation is neither set aside nor sent")
    func check() async throws {
        let questions = Questions()
        let server = ScriptedServer { number, request in
            number == 0 ? .failure(TransportError(.interrupted, "cut")) : ScriptedServer.done(request)
        }
        let end = try await run(server, questions, .init(check: "look")) { options in
            options.checks["look"] = { _ in
                try await questions.ask()
                return .hadNoEffect
            }
        }
        #expect(end.isApplied)
        #expect(questions.count == 4)
        #expect(server.requests.count == 2)
    }

    @Test("A probe that suspensions break off does not tell that the server is missing")
    func probe() async throws {
        let questions = Questions()
        let server = ScriptedServer(ScriptedServer.key) { _, _ in
            do { try await questions.ask() } catch { return .failure(TransportError(.cancelled, "broken off")) }
            return ScriptedServer.found
        } _: { number, request in
            number == 0 ? ScriptedServer.status(500) : ScriptedServer.done(request)
        }
        let end = try await run(server, questions)
        #expect(end.isApplied)
        #expect(end.failedSearches == 0)
    }
}
