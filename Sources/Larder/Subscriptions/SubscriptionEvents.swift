import LarderFiles
import LarderRecords

/// What waits for one reader of a subscription: so many events at most, and the newest state.
final class SubscriptionEvents: Sendable {
    fileprivate struct Waiting {
        var state = SubscriptionState()
        /// The first events, in the opposite order: the one to take is the last, so that none is moved.
        var first: [SubscriptionEvent] = []
        /// Those after them.
        var others: [SubscriptionEvent] = []
        var dataCount = 0
        var missed = 0
        var isEnded = false
    }

    private let limit: Int
    private let waiting = Locked(Waiting())
    private let changeSignal = ChangeSignal()

    init(limit: Int) { self.limit = max(1, limit) }

    var state: SubscriptionState { waiting.withLock { $0.state } }

    /// Whether the reader has gone, or the subscription has ended.
    var isEnded: Bool { waiting.withLock { $0.isEnded } }

    func add(_ response: Response) {
        waiting.withLock { waiting in
            guard !waiting.isEnded else { return }
            if waiting.dataCount == limit { waiting.dropOldestData() }
            waiting.others.append(.data(response))
            waiting.dataCount += 1
        }
        changeSignal.notify()
    }

    /// Replaces the last state if the reader has not taken it yet and no data came after it.
    func set(_ state: SubscriptionState) {
        waiting.withLock { waiting in
            guard !waiting.isEnded, !waiting.state.isSame(as: state) else { return }
            waiting.state = state
            waiting.removeStateAtEnd()
            waiting.others.append(.state(state))
            if state.phase == .ended { waiting.isEnded = true }
        }
        changeSignal.notify()
    }

    func end() {
        waiting.withLock { $0.isEnded = true }
        changeSignal.notify()
    }

    func next() async -> SubscriptionEvent? {
        while !Task.isCancelled {
            let count = changeSignal.count
            let (event, isEnded) = waiting.withLock { waiting in (waiting.takeFirst(), waiting.isEnded) }
            if let event { return event }
            if isEnded { return nil }
            await changeSignal.wait(past: count, for: nil)
        }
        return nil
    }
}

extension SubscriptionEvents.Waiting {
    fileprivate mutating func dropOldestData() {
        if first.count < 3 { turnOver() }
        guard let oldest = first.lastIndex(where: \.isData) else { return }
        first.remove(at: oldest)
        dataCount -= 1
        missed += 1
        // Of the states on both sides the newer is enough.
        if oldest < first.count, oldest > 0, !first[oldest - 1].isData { first.remove(at: oldest) }
    }

    fileprivate mutating func removeStateAtEnd() {
        if case .state? = others.last { others.removeLast() }
        if others.isEmpty, case .state? = first.first { first.removeFirst() }
    }

    /// Makes all events first ones.
    private mutating func turnOver() {
        first = others.reversed() + first
        others = []
    }

    fileprivate mutating func takeFirst() -> SubscriptionEvent? {
        if missed > 0 {
            defer { missed = 0 }
            return .missed(missed)
        }
        if first.isEmpty { turnOver() }
        guard let event = first.popLast() else { return nil }
        if event.isData { dataCount -= 1 }
        return event
    }
}

extension SubscriptionEvent {
    fileprivate var isData: Bool { if case .data = self { true } else { false } }
}
