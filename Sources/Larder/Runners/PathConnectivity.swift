#if canImport(Network)
import Dispatch
import LarderFiles
import Network

/// Whether the network is there, as Apple's `NWPathMonitor` says. Not compiled where this is developed.
///
/// A path that needs a connection first (`requiresConnection`, as a VPN on demand) counts as there: using it makes it.
package final class PathConnectivity: Connectivity {
    private let monitor = NWPathMonitor()
    private let state = Locked(State())

    private struct State {
        var isConnected = true
        var observers: [UInt64: @Sendable (Bool) -> Void] = [:]
        var nextObserver: UInt64 = 0
    }

    /// Begins to watch the network, until the object is released.
    package init() {
        monitor.pathUpdateHandler = { [weak self] path in self?.note(path.status != .unsatisfied) }
        monitor.start(queue: DispatchQueue(label: "larder.connectivity"))
    }

    deinit { monitor.cancel() }

    /// What the last path said; true until there was one.
    package var isConnected: Bool { state.withLock { $0.isConnected } }

    /// Calls `change` from the monitor's queue.
    package func observe(_ change: @escaping @Sendable (Bool) -> Void) -> ConnectivityObservation {
        let number = state.withLock { state in
            state.nextObserver += 1
            state.observers[state.nextObserver] = change
            return state.nextObserver
        }
        return ConnectivityObservation { [weak self] in
            _ = self?.state.withLock { $0.observers.removeValue(forKey: number) }
        }
    }

    private func note(_ isConnected: Bool) {
        let observers = state.withLock { state -> [@Sendable (Bool) -> Void] in
            guard state.isConnected != isConnected else { return [] }
            state.isConnected = isConnected
            return Array(state.observers.values)
        }
        for observer in observers { observer(isConnected) }
    }
}
#endif
