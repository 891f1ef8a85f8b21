import Synchronization

/// Holds whoever waits until it is opened, once and for all.
final class Gate: Sendable {
    private struct State {
        var isOpen = false
        var actions: [@Sendable () -> Void] = []
    }

    private let state = Mutex(State())

    func whenOpen(_ action: @escaping @Sendable () -> Void) {
        let isOpen = state.withLock { state in
            if !state.isOpen { state.actions.append(action) }
            return state.isOpen
        }
        if isOpen { action() }
    }

    func open() {
        let actions = state.withLock { state in
            state.isOpen = true
            defer { state.actions = [] }
            return state.actions
        }
        for action in actions { action() }
    }
}
