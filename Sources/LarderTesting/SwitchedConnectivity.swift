public import Larder
import Synchronization

/// A network that a test switches on and off.
///
/// It is what a runner asks: `RunOptions.Mutations.connectivity`. A server that cannot be reached is
/// `ScriptedServer.isReachable`.
public final class SwitchedConnectivity: Connectivity {
    private struct State {
        var isConnected: Bool
        var next = 0
        var observers: [Int: @Sendable (Bool) -> Void] = [:]
    }

    private let state: Mutex<State>

    /// A network that is there, or not.
    public init(isConnected: Bool = true) { state = Mutex(State(isConnected: isConnected)) }

    /// Whether the network is there. Setting another value tells those who observe it, one after the other.
    public var isConnected: Bool {
        get { state.withLock { $0.isConnected } }
        set {
            let observers = state.withLock { state in
                guard state.isConnected != newValue else { return [@Sendable (Bool) -> Void]() }
                state.isConnected = newValue
                return state.observers.sorted { $0.key < $1.key }.map(\.value)
            }
            for observer in observers { observer(newValue) }
        }
    }

    /// Calls `change` at each change from now on.
    public func observe(_ change: @escaping @Sendable (Bool) -> Void) -> ConnectivityObservation {
        let number = state.withLock { state in
            state.next += 1
            state.observers[state.next] = change
            return state.next
        }
        return ConnectivityObservation { [weak self] in
            self?.state.withLock { _ = $0.observers.removeValue(forKey: number) }
        }
    }
}
