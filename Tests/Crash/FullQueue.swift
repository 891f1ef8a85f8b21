import Foundation
import Larder
import LarderRecords
import Synchronization

/// Queues mutations and sends them while the disk is full from a step of theirs on, and again when there is room.
struct FullQueue {
    enum Step: String {
        /// Nothing more can be queued.
        case enqueue
        /// Full before the first attempt, before its answer is noted, before it is stored, before it is settled.
        case begin, answer, apply, settle
        /// Full after as much as is left, wherever that is.
        case drain

        /// After which the room is taken; nil where that is before the first.
        var previous: MutationRunner.KillPoint? {
            switch self {
            case .enqueue, .begin, .drain: nil
            case .answer: .received
            case .apply: .acknowledged
            case .settle: .stored
            }
        }
    }

    let folder: URL
    let step: Step
    let room: ScarceRoom
    let tellsRepeats: Bool

    func run() async throws {
        let server = FleetingServer(tellsRepeats: tellsRepeats)
        let store = try Store.open(at: folder, schema: try Schema(parsing: Mutations.schema))
        let app = try store.partition(server: server)
        var receipts: [(name: String, receipt: MutationReceipt)] = []
        func queue(_ name: String) async throws {
            let operation = GraphQLOperation(
                "mutation Rate($recipe: ID!, $stars: Int!) { rate(recipe: $recipe, stars: $stars) { id stars note } }",
                variables: ["recipe": .string(name), "stars": 5])
            receipts.append((name, try await app.enqueue(operation)))
        }
        for number in 0..<(step == .drain ? 20 : 2) { try await queue("r\(number)") }
        if step == .enqueue {
            try room.take()
            await attempt { try await queue("late") }
            say("queued \(try app.mutations().count)")
            try room.giveBack()
            try await queue("late")
        } else {
            try await send(app)
        }
        try await MutationRunner(app).drain()
        let tally = server.tally
        for (name, receipt) in receipts {
            let status = try receipt.status()
            let failure = status?.failure.map { " \($0.kind.rawValue)" } ?? ""
            say("\(name) \(status?.state.rawValue ?? "lost")\(failure) \(tally.effects[name] ?? 0) \(read(name, app))")
        }
        say("order \(tally.order == tally.order.sorted { number($0) < number($1) })")
        let report = try app.records.check()
        say(report.isSound ? "sound" : "unsound: \(report.problems)")
        try store.close()
    }

    private func send(_ app: Partition) async throws {
        let isTaken = Mutex(false)
        var options = MutationRunner.Options()
        options.reached = { [room, step] done in
            guard done == step.previous,
                !isTaken.withLock({ taken in
                    defer { taken = true }
                    return taken
                })
            else { return }
            do { try room.take() } catch { say("no room was taken: \(error)") }
        }
        if step.previous == nil { try room.take() }
        await attempt { try await MutationRunner(app, options: options).drain() }
        // Again while nothing has changed.
        await attempt { try await MutationRunner(app).drain() }
        try room.giveBack()
    }

    private func attempt(_ body: () async throws -> Void) async {
        do {
            try await body()
            say("done")
        } catch {
            say("refused " + ((error as? LarderError)?.code.rawValue ?? "\(error)"))
        }
    }

    private func read(_ name: String, _ app: Partition) -> String {
        let stored = try? app.read("Recipe:\(name)", GraphQLFragment("fragment F on Recipe { stars }"))
        return stored?["stars"]?.int.map(String.init) ?? "-"
    }

    private func number(_ name: String) -> Int { Int(name.dropFirst()) ?? .max }
}

/// A server in memory that counts its effects. Its answers are too large for what is left in any page.
private final class FleetingServer: GraphQLTransport {
    struct Tally {
        var keys: Set<String> = []
        var effects: [String: Int] = [:]
        var order: [String] = []
    }

    let idempotency: Idempotency?
    private let counted = Mutex(Tally())

    init(tellsRepeats: Bool) { idempotency = tellsRepeats ? .header(name: "Idempotency-Key") : nil }

    var tally: Tally { counted.withLock { $0 } }

    func send(
        _ request: GraphQLRequest, within time: Duration
    ) async throws(TransportError) -> GraphQLAnswer {
        guard case .object(let variables)? = try? Value(json: request.variables),
            case .string(let name)? = variables["recipe"]
        else { throw TransportError(.unusableRequest, "the request has no recipe") }
        let key = request.headers.first { $0.name == "Idempotency-Key" }?.value
        counted.withLock { tally in
            if let key, !tally.keys.insert(key).inserted { return }
            tally.effects[name, default: 0] += 1
            tally.order.append(name)
        }
        let note = String(repeating: "x", count: 100_000)
        let answer = #"{"data":{"rate":{"__typename":"Recipe","id":"\#(name)","stars":5,"note":"\#(note)"}}}"#
        return GraphQLAnswer(body: Array(answer.utf8), status: 200)
    }
}
