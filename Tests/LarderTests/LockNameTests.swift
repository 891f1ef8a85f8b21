import Foundation
import LarderFiles
import LarderTestSupport
import Testing

@testable import Larder

@Suite("Names of the locks of a store", .timeLimit(.minutes(10)))
struct LockNameTests {
    @Test("A session refreshes no cloud credentials while another process holds the lock PARTITION.refresh-cloud")
    func cloudCredentials() async throws {
        try await withSessions { bench in
            let session = bench.session()
            var mine = bench.provider.signIn("ada")
            mine.cloud?.expires = .distantPast
            try await session.signIn(mine, within: soon)
            let lock = try await HeldLock.acquire(
                "main.refresh-cloud", in: bench.locks, FileSystem(), for: "a test", label: "other", until: .now + soon)
            await expectCode(.timedOut) { _ = try await session.cloudCredentials(within: .milliseconds(300)) }
            lock.release()
            #expect(try await session.cloudCredentials(within: soon) != mine.cloud)
        }
    }

    @Test("A session makes no key for a partition while another process holds the lock keys")
    func keys() async throws {
        try await withSessions { bench in
            let session = bench.session()
            let lock = try await HeldLock.acquire(
                "keys", in: bench.locks, FileSystem(), for: "a test", label: "other", until: .now + soon)
            await expectCode(.timedOut) {
                try await session.signIn(bench.provider.signIn("ada"), within: .milliseconds(300))
            }
            lock.release()
            try await session.signIn(bench.provider.signIn("ada"), within: soon)
            #expect(session.state == .signedIn)
        }
    }

    @Test("A runner of mutations stands by while another process holds the lock PARTITION.runner")
    func runner() async throws {
        try await withStoreFixture(ScriptedServer.rating()) { (app) throws in
            _ = try app.core.operationsStore.database()
            let locks = app.core.folder.appending(path: "locks")
            let lock = try LockFile(making: locks.appending(path: "main.runner").path)
            try #require(try lock.tryLock(.exclusive))
            let runner = quickRunner(app)
            let running = Task { try await runner.run() }
            try await eventually { runner.state != .stopped }
            #expect(runner.state == .standingBy)
            lock.close()
            try await eventually { runner.state == .running }
            running.cancel()
            try await running.value
        }
    }

    @Test("A caller that has waited in vain for a lock says which lock that was")
    func named() async throws {
        try await withSessions { bench in
            let lock = try await HeldLock.acquire(
                "keys", in: bench.locks, FileSystem(), for: "a test", label: "other", until: .now + soon)
            let error = await larderError {
                try await HeldLock.acquire(
                    "keys", in: bench.locks, FileSystem(), for: "a test", label: "this", until: .now)
            }
            #expect(error?.code == .timedOut)
            #expect(error?.message.contains("waited for the lock keys,") == true, "\(error?.message ?? "none")")
            lock.release()
        }
    }
}
