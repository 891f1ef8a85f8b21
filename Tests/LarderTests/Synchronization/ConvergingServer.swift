import Foundation
import Larder
import LarderTestSupport
import LarderTesting
import Synchronization

/// A server that changes at random, behind a network that cuts, delays, repeats and drops, until it is quiet.
final class ConvergingServer: GraphQLTransport, SubscriptionTransport {
    private struct State {
        var numbers: SeededNumbers
        var isQuiet = false
        /// The connections that are open, with the ids of their subscriptions.
        var lines: [Int: (events: AsyncStream<Delivery>.Continuation, id: String)] = [:]
        var lineCount = 0
        var told: [String] = []
    }

    private enum Delivery {
        case event(String)
        case cut
    }

    let server = SyncServer()
    private let queries: ScriptedServer
    /// Whether events may come in another order, and twice.
    private let isVersioned: Bool
    private let state: Mutex<State>

    init(seed: UInt64, isVersioned: Bool) {
        queries = server.transport
        self.isVersioned = isVersioned
        state = Mutex(State(numbers: SeededNumbers(seed: seed)))
    }

    var pacing: SubscriptionPacing { .quick }
    var nullsInEvents: NullsInEvents { isVersioned ? .ignore : .trust }

    private func random(_ limit: Int) -> Int { state.withLock { Int.random(in: 0..<limit, using: &$0.numbers) } }

    /// One in so many, until it is quiet.
    private func happens(oneIn count: Int) -> Bool {
        state.withLock { !$0.isQuiet && Int.random(in: 0..<count, using: &$0.numbers) == 0 }
    }

    /// From now on nothing changes and nothing is lost.
    func quieten() {
        state.withLock { $0.isQuiet = true }
    }

    // MARK: Changes

    /// Creates, changes or deletes an object at random, and tells the subscriptions.
    func change() {
        let id = "\(random(12))"
        let isThere = server.todos[id].map { !$0.isDeleted } ?? false
        if isVersioned, isThere, random(4) == 0 {
            server.delete(id)
        } else {
            server.put(id, "title \(random(1_000_000))")
        }
        if isVersioned, random(60) == 0 { server.wait(31 * 60_000) }
        guard let event = server.event(id) else { return }
        let lines = state.withLock { $0.lines.values.map(\.events) }
        for line in lines {
            // What a cut has swallowed is a gap, and nothing else is.
            if happens(oneIn: 25) { line.yield(.cut) } else { line.yield(.event(event)) }
            // Events that come again, and so late that newer ones have overtaken them.
            if isVersioned, happens(oneIn: 3), let old = state.withLock({ $0.told.randomElement(using: &$0.numbers) }) {
                line.yield(.event(old))
            }
        }
        state.withLock { $0.told = $0.told.suffix(20) + [event] }
    }

    // MARK: The network

    func send(
        _ request: GraphQLRequest, within time: Duration
    ) async throws(TransportError) -> GraphQLAnswer {
        let deadline = SuspendingClock.now + time
        if happens(oneIn: 8) { throw TransportError(.unreachable, "away") }
        for _ in 0..<random(20) { await Task.yield() }
        let answer = try await queries.send(request, within: .until(deadline))
        for _ in 0..<random(20) { await Task.yield() }
        if happens(oneIn: 8) { throw TransportError(.interrupted, "cut") }
        return answer
    }

    func carry(_ line: SubscriptionLine, openedWithin time: Duration) async throws(TransportError) {
        if happens(oneIn: 6) { throw TransportError(.unreachable, "away") }
        await line.take(.opened)
        let (deliveries, delivering) = AsyncStream.makeStream(of: Delivery.self)
        let number = state.withLock { state in
            state.lineCount += 1
            return state.lineCount
        }
        let commands = Task { [self] in
            for await together in line.commands {
                for case .start(let id, _) in together {
                    // From here on an event comes of each change.
                    state.withLock { $0.lines[number] = (delivering, id) }
                    await line.take(.started(id: id))
                }
            }
            delivering.finish()
        }
        defer {
            state.withLock { $0.lines[number] = nil }
            commands.cancel()
        }
        for await delivery in deliveries {
            guard case .event(let event) = delivery, let id = state.withLock({ $0.lines[number]?.id }) else {
                throw TransportError(.interrupted, "cut")
            }
            for _ in 0..<random(8) { await Task.yield() }
            await line.take(.event(id: id, response: Array(event.utf8)))
        }
    }
}
