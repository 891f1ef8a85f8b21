import LarderOperations
import Metrics
import Tracing

/// What a store counts and times, and the spans of its requests, where the program gave it a place for them.
///
/// Where it gave none there are no instruments: what would be measured then asks whether there are, and nothing more.
final class Instruments: Sendable {
    private let factory: (any MetricsFactory)?
    private let tracer: (any Tracer)?
    private let reading: Timed?
    private let (hits, misses): (Counter?, Counter?)
    private let committing: Timer?
    private let refreshing: Timed?
    private let (depth, age): (Meter?, Meter?)

    /// A timer for what succeeds, and one for what fails.
    private struct Timed: Sendable {
        let success: Timer
        let failure: Timer

        init(_ label: String, _ factory: any MetricsFactory) {
            success = .init(label: label, dimensions: [("outcome", "success")], factory: factory)
            failure = .init(label: label, dimensions: [("outcome", "failure")], factory: factory)
        }
    }

    /// Nil where there is nothing to measure with.
    init?(_ metrics: (any MetricsFactory)?, _ tracer: (any Tracer)?) {
        guard metrics != nil || tracer != nil else { return nil }
        factory = metrics
        self.tracer = tracer
        reading = metrics.map { Timed("larder.read.duration", $0) }
        hits = metrics.map { Counter(label: "larder.read.hits", factory: $0) }
        misses = metrics.map { Counter(label: "larder.read.misses", factory: $0) }
        committing = metrics.map { .init(label: "larder.commit.duration", factory: $0) }
        refreshing = metrics.map { Timed("larder.refresh.duration", $0) }
        depth = metrics.map { Meter(label: "larder.queue.depth", factory: $0) }
        age = metrics.map { Meter(label: "larder.queue.age", factory: $0) }
    }

    /// Whether anything is counted or timed.
    var measures: Bool { factory != nil }

    /// Times a read of the cache; a miss is no failure of it.
    ///
    /// - Parameter isHit: Whether the cache had all that was asked.
    func read<Answer>(
        isHit: (Answer) -> Bool, _ body: () throws(LarderError) -> Answer
    ) throws(LarderError) -> Answer {
        let start = SuspendingClock.now
        do throws(LarderError) {
            let answer = try body()
            reading?.success.record(duration: .now - start)
            if isHit(answer) { hits?.increment() } else { misses?.increment() }
            return answer
        } catch {
            let isMiss = error.code == .miss || error.code == .deleted
            (isMiss ? reading?.success : reading?.failure)?.record(duration: .now - start)
            if isMiss { misses?.increment() }
            throw error
        }
    }

    func noteCommit(_ time: Duration) { committing?.record(duration: time) }

    /// - Parameter age: How long the oldest mutation waits; zero where none does.
    func noteQueue(depth: Int, age: Duration) {
        self.depth?.set(depth)
        self.age?.set(age / .seconds(1))
    }

    func noteRefresh(_ time: Duration, isDone: Bool) {
        (isDone ? refreshing?.success : refreshing?.failure)?.record(duration: time)
    }

    /// - Parameter time: Of one attempt.
    func noteTransfer(_ kind: TransferStatus.Kind, _ time: Duration, isDone: Bool) {
        guard let factory else { return }
        Timer(
            label: "larder.transfer.duration",
            dimensions: [("kind", kind.rawValue), ("outcome", isDone ? "success" : "failure")], factory: factory
        ).record(duration: time)
    }

    /// Sends a request inside a span with the operation's name, and times it.
    func send(
        _ request: GraphQLRequest, by transport: any GraphQLTransport, within time: Duration
    ) async throws(TransportError) -> GraphQLAnswer {
        let start = SuspendingClock.now
        let span = tracer?.startAnySpan(request.operationName ?? request.kind.rawValue, ofKind: .client)
        span?.attributes["graphql.operation.type"] = request.kind.rawValue
        if let name = request.operationName { span?.attributes["graphql.operation.name"] = name }
        let exchange = { () async -> Result<GraphQLAnswer, TransportError> in
            do throws(TransportError) { return .success(try await transport.send(request, within: time)) } catch {
                return .failure(error)
            }
        }
        // What the transport starts is a child of the span.
        let result =
            if let span { await ServiceContext.$current.withValue(span.context, operation: exchange) } else {
                await exchange()
            }
        switch result {
        case .success(let answer):
            if let status = answer.status { span?.attributes["http.response.status_code"] = status }
        case .failure(let error):
            span?.attributes["error.type"] = error.code.rawValue
            // Without the cause: headers may stand in it.
            span?.setStatus(SpanStatus(code: .error, message: error.message))
        }
        span?.end()
        noteRequest(request.kind, SuspendingClock.now - start, result)
        return try result.get()
    }

    private func noteRequest(
        _ kind: GraphQLRequest.OperationKind, _ time: Duration, _ result: Result<GraphQLAnswer, TransportError>
    ) {
        guard let factory else { return }
        let outcome = if case .success = result { "success" } else { "failure" }
        Timer(
            label: "larder.request.duration", dimensions: [("kind", kind.rawValue), ("outcome", outcome)],
            factory: factory
        ).record(duration: time)
    }
}

extension PartitionCore {
    /// Every request of the library leaves here.
    func send(
        _ request: GraphQLRequest, by transport: any GraphQLTransport, within time: Duration
    ) async throws(TransportError) -> GraphQLAnswer {
        guard let instruments else { return try await transport.send(request, within: time) }
        return try await instruments.send(request, by: transport, within: time)
    }
}
