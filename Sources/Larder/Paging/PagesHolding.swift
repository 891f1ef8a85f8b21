import LarderFiles

/// Whether a list is being loaded anew, so that watchers of whole lists wait.
final class PagesHolding: Sendable {
    private struct State {
        var count = 0
        var lastID = 0
        var listeners: [Int: @Sendable () -> Void] = [:]
    }

    private let state = Locked(State())

    var isHolding: Bool { state.withLock { $0.count > 0 } }

    func begin() { state.withLock { $0.count += 1 } }

    func end() {
        let listeners = state.withLock { state in
            state.count -= 1
            return state.count == 0 ? Array(state.listeners.values) : []
        }
        for listener in listeners { listener() }
    }

    /// - Returns: A number by which to remove it.
    func listen(_ listener: @escaping @Sendable () -> Void) -> Int {
        state.withLock { state in
            state.lastID += 1
            state.listeners[state.lastID] = listener
            return state.lastID
        }
    }

    func remove(_ id: Int) { state.withLock { $0.listeners[id] = nil } }
}
