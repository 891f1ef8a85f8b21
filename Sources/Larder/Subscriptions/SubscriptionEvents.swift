import LarderFiles
import LarderRecords

/// What waits for one reader of a subscription: so many events at most, and the newest state.
final class SubscriptionEvents: Sendable {
    fileprivate struct Waiting {
        var state = SubscriptionState()
        /// Two states never follow each other. Nil where one was taken.
        var events: [SubscriptionEvent?] = []
        /// How many at the start were taken. They are removed together, because each removal moves all others.
        var taken = 0
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
            waiting.events.append(.data(response))
            waiting.dataCount += 1
        }
        changeSignal.notify()
    }

    /// Replaces the last state if the reader has not taken it yet and no data came after it.
    func set(_ state: SubscriptionState) {
        waiting.withLock { waiting in
            guard !waiting.isEnded, !waiting.state.isSame(as: state) else { return }
            waiting.state = state
            if case .state?? = waiting.events.last { waiting.events.removeLast() }
            waiting.events.append(.state(state))
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
        guard let oldest = events[taken...].firstIndex(where: { $0?.isData == true }) else { return }
        let state = oldest > taken ? events[taken] : nil
        events[oldest] = nil
        taken = oldest + 1
        dataCount -= 1
        missed += 1
        // The state before it stays, unless another follows.
        if let state, taken == events.count || events[taken]?.isData == true {
            taken -= 1
            events[taken] = state
        }
        removeTaken()
    }

    fileprivate mutating func takeFirst() -> SubscriptionEvent? {
        if missed > 0 {
            defer { missed = 0 }
            return .missed(missed)
        }
        guard taken < events.count, let first = events[taken] else { return nil }
        events[taken] = nil
        taken += 1
        if first.isData { dataCount -= 1 }
        removeTaken()
        return first
    }

    /// Removes what was taken once it is half of all.
    private mutating func removeTaken() {
        guard taken * 2 >= events.count else { return }
        events.removeFirst(taken)
        taken = 0
    }
}

extension SubscriptionEvent {
    fileprivate var isData: Bool { if case .data = self { true } else { false } }
}
