import LarderFiles
import LarderOperations
import LarderRecords

/// An answer that is noted in the queue, and yet to be stored in the cache.
struct NotedAnswer: Sendable {
    /// As it stands in the queue, with its answer.
    var mutation: Mutation
    /// The answer, where it has been read already.
    var parsed: ParsedResponse?
    /// Its operation, where the sent operation is the queued one.
    var bound: BoundOperation?
    /// Whether another of its lane is under way, whose answer may be stored together with it.
    var isFollowed = false
}

/// Answers on their way from the lanes that send mutations to the task that stores the results, in their order.
///
/// Storing costs three waits for the disk, however many answers are stored. So the task waits for answers that are on
/// the way: for a moment, and for no more than there is room for. A lane that is faster than the cache waits for room.
final class AnswerBatch: Sendable {
    private struct State {
        var waiting: [NotedAnswer] = []
        /// Whether what waits is not to wait for more.
        var isDue = false
        /// Counts what was given out, so that a moment that is over is known to be another's.
        var turn: UInt64 = 0
        var isClosed = false
        var consumer: CheckedContinuation<[NotedAnswer]?, Never>?
        var producers: [CheckedContinuation<Void, Never>] = []

        /// Takes out the answers for the consumer, and the producers that wait for room.
        mutating func take() -> (answers: [NotedAnswer]?, producers: [CheckedContinuation<Void, Never>])? {
            guard !waiting.isEmpty else { return isClosed ? (nil, []) : nil }
            guard isDue || isClosed || waiting.count >= AnswerBatch.room else { return nil }
            defer {
                (waiting, producers, isDue) = ([], [], false)
                turn += 1
            }
            return (waiting, producers)
        }
    }

    private static let room = 128
    /// About one frame of a moving picture, so that no person sees the delay; long enough for some fifty commits.
    private static let maximumDelay = Duration.milliseconds(20)
    private let state = Locked(State())

    /// Waits for room. An answer that comes after the close is dropped: it is in the queue, and the next runner finds
    /// it there.
    func add(_ answer: NotedAnswer) async {
        let startedTurn = state.withLock { state -> UInt64? in
            guard !state.isClosed else { return nil }
            state.waiting.append(answer)
            if !answer.isFollowed { state.isDue = true }
            return state.waiting.count == 1 && !state.isDue ? state.turn : nil
        }
        if let startedTurn {
            Task {
                try? await Task.sleep(for: Self.maximumDelay)
                self.endMoment(of: startedTurn)
            }
        }
        give()
        guard state.withLock({ $0.waiting.count >= Self.room && !$0.isClosed }) else { return }
        await withCheckedContinuation { continuation in
            let mustWait = state.withLock { state in
                guard state.waiting.count >= Self.room, !state.isClosed else { return false }
                state.producers.append(continuation)
                return true
            }
            if !mustWait { continuation.resume() }
        }
    }

    /// All that wait, in a moment; nil after the close, when there will be none. For one caller at a time.
    func next() async -> [NotedAnswer]? {
        await withCheckedContinuation { continuation in
            state.withLock { $0.consumer = continuation }
            give()
        }
    }

    /// Nothing more is taken. What waits is still given out.
    func close() {
        let producers = state.withLock { state in
            state.isClosed = true
            defer { state.producers = [] }
            return state.producers
        }
        for producer in producers { producer.resume() }
        give()
    }

    private func endMoment(of turn: UInt64) {
        state.withLock { state in
            if state.turn == turn { state.isDue = true }
        }
        give()
    }

    /// Gives the consumer what it is to have, if it waits and there is anything.
    private func give() {
        let given = state.withLock {
            state -> (
                CheckedContinuation<[NotedAnswer]?, Never>, [NotedAnswer]?,
                [CheckedContinuation<Void, Never>]
            )? in
            guard let consumer = state.consumer, let (answers, producers) = state.take() else { return nil }
            state.consumer = nil
            return (consumer, answers, producers)
        }
        guard let (consumer, answers, producers) = given else { return }
        for producer in producers { producer.resume() }
        consumer.resume(returning: answers)
    }
}
