import Larder
import Synchronization

/// Another transport, with a stopwatch.
final class MeasuredTransport: GraphQLTransport {
    struct Exchange: Sendable {
        var bytes: Int
        /// From sending to the last byte of the answer.
        var duration: Duration
        /// When the answer was whole.
        var arrival: SuspendingClock.Instant
    }

    private let transport: any GraphQLTransport
    private let exchange = Mutex<Exchange?>(nil)

    init(_ transport: any GraphQLTransport) { self.transport = transport }

    var idempotency: Idempotency? { transport.idempotency }

    /// The latest exchange that had an answer.
    var last: Exchange? { exchange.withLock { $0 } }

    func send(
        _ request: GraphQLRequest, within time: Duration
    ) async throws(TransportError) -> GraphQLAnswer {
        let deadline = SuspendingClock.now + time
        let start = SuspendingClock.now
        let answer = try await transport.send(request, within: .until(deadline))
        let arrival = SuspendingClock.now
        exchange.withLock { exchange in
            exchange = Exchange(bytes: answer.body.count, duration: start.duration(to: arrival), arrival: arrival)
        }
        return answer
    }
}
