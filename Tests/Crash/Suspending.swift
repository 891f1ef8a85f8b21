import Foundation
import Larder
import LarderTestSupport

/// Queues mutations and sends them, and suspends and resumes the store again and again meanwhile.
enum Suspending {
    /// - Parameters:
    ///   - count: How many mutations are queued first.
    ///   - rounds: How often the store is suspended and resumed; the process is killed by itself at a moment of the last
    ///     that the seed chooses. With none it is suspended once, and waits to be killed.
    static func run(
        in folder: URL, server: LedgerServer, accepting count: Int, rounds: Int, seed: UInt64
    ) async throws {
        var random = SeededNumbers(seed: seed)
        let store = try Store.open(at: folder, schema: try Schema(parsing: Mutations.schema))
        let app = try store.partition(server: server)
        guard rounds > 0 else {
            for _ in 0..<count { try await Mutations.accept(app, &random) }
            try await app.write(
                GraphQLOperation("{ recipe(id: 1) { id stars } }"),
                json: Array(#"{"recipe":{"id":"1","stars":1}}"#.utf8))
            try await store.suspend()
            say("suspended")
            while true { try await Task.sleep(for: .seconds(3600)) }
        }
        let service = Task { try await Mutations.runner(app, nil).run() }
        for round in 0..<rounds {
            for _ in 0..<count { try await Mutations.accept(app, &random) }
            if round == rounds - 1 { killSoon(after: UInt32(random.next() % 20_000)) }
            try await store.suspend()
            say("suspended")
            try await Task.sleep(for: .milliseconds(Int(random.next() % 4)))
            try store.resume()
            say("resumed")
            try await Task.sleep(for: .milliseconds(Int(random.next() % 12)))
        }
        try await service.value
    }

    private static func killSoon(after microseconds: UInt32) {
        Thread.detachNewThread {
            usleep(microseconds)
            kill(getpid(), SIGKILL)
        }
    }
}
