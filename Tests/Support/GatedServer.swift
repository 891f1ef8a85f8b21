package import Larder
import Synchronization

/// Holds every mutation until a test says what becomes of it; questions are answered at once.
package final class GatedServer: GraphQLTransport {
    private struct Held {
        var request: GraphQLRequest
        var continuation: CheckedContinuation<Result<GraphQLAnswer, TransportError>, Never>
    }

    private struct State {
        var next = 0
        var held: [Int: Held] = [:]
        var isClosed = false
        var isCut = false
        var listAnswer: [UInt8] = []
    }

    package let idempotency: Idempotency?
    private let state = Mutex(State())

    package init(tellsRepeats: Bool) { idempotency = tellsRepeats ? .header(name: "Idempotency-Key") : nil }

    /// What is held, the first that came first.
    package var held: [(number: Int, request: GraphQLRequest)] {
        state.withLock { $0.held.sorted { $0.key < $1.key }.map { ($0.key, $0.value.request) } }
    }

    package func setListAnswer(_ body: [UInt8]) { state.withLock { $0.listAnswer = body } }

    /// Lets the request of this number end.
    package func end(_ number: Int, _ result: Result<GraphQLAnswer, TransportError>) {
        state.withLock { $0.held.removeValue(forKey: number) }?.continuation.resume(returning: result)
    }

    package func send(
        _ request: GraphQLRequest, within time: Duration
    ) async throws(TransportError) -> GraphQLAnswer {
        guard request.kind == .mutation else {
            // A runner asks whether the server is there.
            if !request.document.contains("recipes") {
                return GraphQLAnswer(body: Array(#"{"data":{"__typename":"Query"}}"#.utf8), status: 200)
            }
            return GraphQLAnswer(body: state.withLock { $0.listAnswer }, status: 200)
        }
        let number = state.withLock { state in
            state.next += 1
            return state.next
        }
        let result = await withCheckedContinuation { continuation in
            let isLost = state.withLock { state in
                let isLost = state.isClosed || state.isCut
                if !isLost { state.held[number] = Held(request: request, continuation: continuation) }
                return isLost
            }
            if isLost { continuation.resume(returning: .failure(Self.closed)) }
        }
        return try result.get()
    }

    /// Loses the mutations that come from now on: a runner that was told to end may have one on its way here.
    package func cut() { state.withLock { $0.isCut = true } }

    /// Holds mutations again.
    package func mend() { state.withLock { $0.isCut = false } }

    /// Nothing is held any more, and nothing answered.
    package func close() {
        let held = state.withLock { state in
            state.isClosed = true
            defer { state.held = [:] }
            return state.held.values
        }
        for request in held { request.continuation.resume(returning: .failure(Self.closed)) }
    }

    private static let closed = TransportError(.interrupted, "the test is over")
}
