import LarderFiles

/// How many exchanges there may be with each host at a time. Exchanges begin in the order in which they ask.
///
/// A host that asks for patience is left alone for as long as it says, and at least for a pause that grows with each
/// time in a row. After it one exchange goes there, and another side by side for each that went well.
final class Connections: Sendable {
    private struct Host {
        var busy = 0
        /// How many there may be now.
        var width: Int
        var waiting: [(number: Int, continuation: CheckedContinuation<Bool, Never>)] = []
        /// How often in a row it asked for patience, and until when it is left alone.
        var consecutiveThrottles = 0
        var heldUntil: SuspendingClock.Instant?

        /// Gives free places to the exchanges that wait longest.
        mutating func admit() -> [CheckedContinuation<Bool, Never>] {
            let count = min(max(0, width - busy), waiting.count)
            defer { waiting.removeFirst(count) }
            busy += count
            return waiting.prefix(count).map(\.continuation)
        }
    }

    private struct State {
        var hosts: [String: Host] = [:]
        var next = 0
        var holds = 0
    }

    private let limit: Int
    private let pause: @Sendable (_ consecutiveThrottles: Int, _ asked: Duration?) -> Duration
    private let state = Locked(State())

    /// - Parameter pause: How long to leave a host alone that has asked for patience so often in a row, the last time
    ///   for so long.
    init(limit: Int, pause: @escaping @Sendable (_ consecutiveThrottles: Int, _ asked: Duration?) -> Duration) {
        self.limit = max(1, limit)
        self.pause = pause
    }

    /// - Throws: `CancellationError` where the task is cancelled while it waits; `.throttled` where the host is left
    ///   alone, with how long.
    func with<Value: Sendable>(
        _ host: String, _ body: () async throws -> Value
    ) async throws -> Value {
        try await enter(host)
        let begun = SuspendingClock.now
        do {
            let value = try await body()
            leave(host, begun, isWell: true)
            return value
        } catch {
            if let error = error as? ObjectError, error.code == .throttled {
                hold(host, for: error.retryAfter, since: begun)
            }
            leave(host, begun, isWell: false)
            throw error
        }
    }

    /// Leaves a host alone that has asked for patience.
    ///
    /// - Parameters:
    ///   - time: As the host said.
    ///   - begun: When the exchange was begun. An exchange that was begun before the last pause was over says nothing
    ///     new.
    func hold(_ host: String, for time: Duration?, since begun: SuspendingClock.Instant) {
        state.withLock { $0.holds += 1 }
        change(host) { host in
            if let until = host.heldUntil, begun < until { return }
            host.consecutiveThrottles += 1
            host.width = 1
            host.heldUntil = .now + pause(host.consecutiveThrottles, time)
        }
    }

    /// How often hosts have asked for patience.
    var holds: Int { state.withLock { $0.holds } }

    /// How long a host is left alone still; nil where it is not.
    func left(of host: String) -> Duration? {
        guard let until = state.withLock({ $0.hosts[host]?.heldUntil }) else { return nil }
        let left = SuspendingClock.now.duration(to: until)
        return left > .zero ? left : nil
    }

    private func change<Value>(_ host: String, _ body: (inout Host) -> Value) -> Value {
        state.withLock { body(&$0.hosts[host, default: Host(width: limit)]) }
    }

    private func enter(_ host: String) async throws {
        try requireLeave(of: host)
        guard await acquire(host) else { throw CancellationError() }
        do {
            try Task.checkCancellation()
            // It may have been held while this one waited for its place.
            try requireLeave(of: host)
        } catch {
            leave(host, .now, isWell: false)
            throw error
        }
    }

    /// Throws and does not sleep: an exchange that slept here would keep others from hosts that have time.
    private func requireLeave(of host: String) throws(ObjectError) {
        guard let left = left(of: host) else { return }
        throw ObjectError(.throttled, "The storage asked for patience", retryAfter: left)
    }

    private func acquire(_ host: String) async -> Bool {
        let number = state.withLock { state in
            state.next += 1
            return state.next
        }
        return await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let admitted = change(host) { host -> [CheckedContinuation<Bool, Never>]? in
                    if Task.isCancelled { return nil }
                    host.waiting.append((number, continuation))
                    return host.admit()
                }
                guard let admitted else { return continuation.resume(returning: false) }
                for continuation in admitted { continuation.resume(returning: true) }
            }
        } onCancel: {
            let waiting = change(host) { host -> CheckedContinuation<Bool, Never>? in
                guard let index = host.waiting.firstIndex(where: { $0.number == number }) else { return nil }
                return host.waiting.remove(at: index).continuation
            }
            waiting?.resume(returning: false)
        }
    }

    /// - Parameter begun: When the exchange was. An exchange that was begun before a pause does not tell that it
    ///   helped.
    private func leave(_ host: String, _ begun: SuspendingClock.Instant, isWell: Bool) {
        let admitted = change(host) { host in
            host.busy -= 1
            if isWell, host.heldUntil.map({ begun >= $0 }) ?? true {
                host.consecutiveThrottles = 0
                host.width = min(limit, host.width + 1)
            }
            return host.admit()
        }
        for continuation in admitted { continuation.resume(returning: true) }
    }
}
