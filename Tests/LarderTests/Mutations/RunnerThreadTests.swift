import LarderTestSupport
import Synchronization
import Testing

@testable import Larder

@Suite("The threads of a runner", .timeLimit(.minutes(10)))
struct RunnerThreadTests {
    /// What runs the functions that the current task calls and that belong to no actor.
    private static func executor() -> UnownedTaskExecutor? { withUnsafeCurrentTask { $0?.unownedTaskExecutor } }

    @Test("A runner calls a transport that belongs to no actor on threads of its own, and not on Swift's")
    func ownThreads() async throws {
        let executors = Mutex<[UnownedTaskExecutor?]>([])
        let server = ScriptedServer(ScriptedServer.key) { _, request in
            executors.withLock { $0.append(Self.executor()) }
            return ScriptedServer.done(request)
        }
        try await withStoreFixture(server) { app in
            for stars in 1...2 { try await app.enqueue(giveStars("1", stars)) }
            let runner = MutationRunner(app)
            try await runner.drain()
            let own = runner.executor.asUnownedTaskExecutor()
            let used = executors.withLock { $0 }
            #expect(used == [own, own])
        }
    }

    @Test("A runner asks the program's checks on threads of its own, which they may block")
    func threadsOfChecks() async throws {
        let executors = Mutex<[UnownedTaskExecutor?]>([])
        let server = ScriptedServer.rating(tellsRepeats: false) {
            $0 == 0 ? (TransportError(.timedOut, "late"), true) : nil
        }
        try await withStoreFixture(server) { app in
            let receipt = try await app.enqueue(giveStars("1", 5), options: .init(check: "rated"))
            let runner = quickRunner(app) { options in
                options.checks["rated"] = { _ in
                    executors.withLock { $0.append(Self.executor()) }
                    return .tookEffect(response: nil)
                }
            }
            try await runner.drain()
            #expect(try receipt.status()?.state == .applied)
            let own = runner.executor.asUnownedTaskExecutor()
            let used = executors.withLock { $0 }
            #expect(used == [own])
        }
    }
}
