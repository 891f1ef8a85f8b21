import Larder
import Synchronization

/// A network that is there or not as a test says.
final class SwitchedConnectivity: Connectivity {
    private struct State {
        var isConnected = true
        var next = 0
        var observers: [Int: @Sendable (Bool) -> Void] = [:]
    }

    private let state = Mutex(State())

    var isConnected: Bool { state.withLock { $0.isConnected } }
    var observerCount: Int { state.withLock { $0.observers.count } }

    func set(_ isConnected: Bool) {
        let observers = state.withLock { state in
            state.isConnected = isConnected
            return Array(state.observers.values)
        }
        for observer in observers { observer(isConnected) }
    }

    func observe(_ change: @escaping @Sendable (Bool) -> Void) -> ConnectivityObservation {
        let number = state.withLock { state in
            state.next += 1
            state.observers[state.next] = change
            return state.next
        }
        return ConnectivityObservation { [self] in _ = state.withLock { $0.observers.removeValue(forKey: number) } }
    }
}
