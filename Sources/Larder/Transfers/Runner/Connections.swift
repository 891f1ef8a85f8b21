internal import Synchronization

/// How many exchanges there may be with each host at a time. Who asked first is first.
final class Connections: Sendable {
    private struct State {
        var busy: [String: Int] = [:]
        var waiting: [String: [(number: Int, continuation: CheckedContinuation<Bool, Never>)]] = [:]
        var next = 0
    }

    private let limit: Int
    private let state = Mutex(State())

    init(limit: Int) { self.limit = max(1, limit) }

    /// - Throws: `CancellationError` where the task is cancelled while it waits.
    func with<Value: Sendable>(
        _ host: String, _ body: () async throws -> Value
    ) async throws -> Value {
        guard await acquire(host) else { throw CancellationError() }
        defer { release(host) }
        try Task.checkCancellation()
        return try await body()
    }

    private func acquire(_ host: String) async -> Bool {
        let number = state.withLock { state in
            state.next += 1
            return state.next
        }
        return await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let answer = state.withLock { state -> Bool? in
                    if Task.isCancelled { return false }
                    guard state.busy[host, default: 0] >= limit else {
                        state.busy[host, default: 0] += 1
                        return true
                    }
                    state.waiting[host, default: []].append((number, continuation))
                    return nil
                }
                if let answer { continuation.resume(returning: answer) }
            }
        } onCancel: {
            let waiting = state.withLock { state -> CheckedContinuation<Bool, Never>? in
                guard let index = state.waiting[host]?.firstIndex(where: { $0.number == number }) else { return nil }
                return state.waiting[host]?.remove(at: index).continuation
            }
            waiting?.resume(returning: false)
        }
    }

    private func release(_ host: String) {
        let next = state.withLock { state -> CheckedContinuation<Bool, Never>? in
            // The place goes on to whoever waits longest.
            if let first = state.waiting[host]?.first {
                state.waiting[host]?.removeFirst()
                return first.continuation
            }
            state.busy[host, default: 1] -= 1
            return nil
        }
        next?.resume(returning: true)
    }
}
