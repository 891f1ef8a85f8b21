import Foundation
import Larder
import LarderTestSupport
import Synchronization

/// Queues mutations and sends them to a server that outlives this process, until it is killed at a step.
enum Mutations {
    static let schema = """
        type Recipe { id: ID! stars: Int! note: String }
        type Query { recipe(id: ID!): Recipe }
        type Mutation { rate(recipe: ID!, stars: Int!): Recipe! }
        """

    /// - Parameters:
    ///   - step: After which to end, and after how many of them; nil to go on to the end.
    static func run(
        in folder: URL, server: LedgerServer, accepting count: Int, killedAfter step: (MutationRunner.KillPoint, Int)?,
        seed: UInt64
    ) async throws {
        var random = SeededNumbers(seed: seed)
        let store = try Store.open(at: folder, schema: try Schema(parsing: schema))
        let app = try store.partition(server: server)
        for _ in 0..<count { try await accept(app, &random) }
        try await runner(app, step).drain()
        try store.close()
    }

    /// Does the same beside other processes: of all of them one sends, and the others stand by.
    ///
    /// - Parameter end: A file; when it is there, this ends as soon as nothing is left that could be sent.
    static func share(
        in folder: URL, server: LedgerServer, accepting count: Int, until end: URL,
        killedAfter step: (MutationRunner.KillPoint, Int)?, seed: UInt64
    ) async throws {
        var random = SeededNumbers(seed: seed)
        let store = try Store.open(at: folder, schema: try Schema(parsing: schema))
        let app = try store.partition(server: server)
        let runner = runner(app, step)
        let running = Task { try await runner.run() }
        for _ in 0..<count {
            try await accept(app, &random)
            try await Task.sleep(for: .milliseconds(Int(random.next() % 8)))
        }
        while true {
            let isLast = FileManager.default.fileExists(atPath: end.path)
            if isLast, try app.mutations(in: [.pending, .inFlight, .acknowledged]).isEmpty { break }
            try await Task.sleep(for: .milliseconds(2))
        }
        running.cancel()
        try await running.value
        try store.close()
    }

    static func accept(_ app: Partition, _ random: inout SeededNumbers) async throws {
        let recipe = "r\(random.next() % 1_000_000_000)"
        let operation = GraphQLOperation(
            "mutation Rate($recipe: ID!, $stars: Int!) { rate(recipe: $recipe, stars: $stars) { id stars } }",
            variables: ["recipe": .string(recipe), "stars": 5])
        let lane = random.next() % 2 == 0 ? "a" : "b"
        let receipt = try await app.enqueue(operation, options: MutationOptions(lane: MutationLane(lane)))
        say("accepted \(receipt.id) \(recipe) \(lane)")
    }

    static func runner(_ app: Partition, _ step: (MutationRunner.KillPoint, Int)?) -> MutationRunner {
        let left = Mutex(step?.1 ?? 0)
        var options = MutationRunner.Options()
        options.backoff = Backoff(first: .milliseconds(1), cap: .milliseconds(2))
        options.reached = { done in
            guard done == step?.0 else { return }
            let isLast = left.withLock { left in
                left -= 1
                return left == 0
            }
            if isLast { kill(getpid(), SIGKILL) }
        }
        return MutationRunner(app, options: options)
    }
}

/// A server whose effects are lines of a file: it has them even if this process is killed at the next instruction.
///
/// Requests are lost, and answers, now and then.
final class LedgerServer: GraphQLTransport {
    let idempotency: Idempotency?
    private let ledger: URL
    private let random: Mutex<SeededNumbers>

    init(ledger: URL, tellsRepeats: Bool, seed: UInt64) {
        self.ledger = ledger
        idempotency = tellsRepeats ? .header(name: "Idempotency-Key") : nil
        random = Mutex(SeededNumbers(seed: seed))
    }

    func send(
        _ request: GraphQLRequest, within time: Duration
    ) async throws(TransportError) -> GraphQLAnswer {
        let chance = random.withLock { $0.next() % 12 }
        if chance == 0 { throw TransportError(.unreachable, "the request was lost") }
        let recipe: String
        do {
            guard case .object(let variables) = try Value(json: request.variables),
                case .string(let name)? = variables["recipe"]
            else { throw TransportError(.unusableRequest, "the request has no recipe") }
            recipe = name
            let key = request.headers.first { $0.name == "Idempotency-Key" }?.value ?? "-"
            try note(key, recipe)
        } catch { throw TransportError(.unusableRequest, "\(error)") }
        if chance == 1 { throw TransportError(.interrupted, "the answer was lost") }
        let answer = #"{"data":{"rate":{"__typename":"Recipe","id":"\#(recipe)","stars":5}}}"#
        return GraphQLAnswer(body: Array(answer.utf8), status: 200)
    }

    /// Lanes come side by side. The line is one write, which is there or not.
    private func note(_ key: String, _ recipe: String) throws {
        try random.withLock { _ in
            if !FileManager.default.fileExists(atPath: ledger.path) { try Data().write(to: ledger) }
            let file = try FileHandle(forUpdating: ledger)
            let before = String(decoding: try file.readToEnd() ?? Data(), as: UTF8.self)
            guard idempotency == nil || !before.contains("\(key) ") else { return }
            try file.write(contentsOf: Data("\(key) \(recipe)\n".utf8))
            try file.close()
        }
    }
}
