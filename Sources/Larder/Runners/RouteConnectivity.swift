#if os(Linux)
import Dispatch
package import LarderFiles

/// Whether the network is there, as Linux says: a link other than the loopback is up and has an address (`rtnetlink`).
///
/// A machine that has had no such link since the object was made counts as connected: its servers are its own. So does
/// one on which the kernel cannot be asked.
package final class RouteConnectivity: Connectivity {
    private struct State {
        /// Nil until the first look, and where the kernel cannot be asked.
        var source: (any DispatchSourceRead)?
        var hasBegun = false
        var hasNetwork = true
        /// Whether there was ever a network to lose.
        var hasHadNetwork = false
        var observers: [UInt64: @Sendable (Bool) -> Void] = [:]
        var nextObserver: UInt64 = 0

        var isConnected: Bool { hasNetwork || !hasHadNetwork }
    }

    private let open: @Sendable () -> RouteSocket?
    private let look: @Sendable () -> Bool
    private let state = Locked(State())

    /// Begins to watch the network when it is asked first, until the object is released.
    package convenience init() { self.init(opening: { RouteSocket() }, looking: { RouteSocket.hasNetwork }) }

    /// - Parameters:
    ///   - open: What is readable when something has changed.
    ///   - look: Whether there is a network now.
    package init(
        opening open: @escaping @Sendable () -> RouteSocket?, looking look: @escaping @Sendable () -> Bool
    ) {
        self.open = open
        self.look = look
    }

    deinit { state.withLock { $0.source }?.cancel() }

    /// What the kernel said last.
    package var isConnected: Bool {
        state.withLock { state in
            begin(&state)
            return state.isConnected
        }
    }

    /// Calls `change` from a queue of its own, also when a network comes where there was none yet.
    package func observe(_ change: @escaping @Sendable (Bool) -> Void) -> ConnectivityObservation {
        let number = state.withLock { state in
            begin(&state)
            state.nextObserver += 1
            state.observers[state.nextObserver] = change
            return state.nextObserver
        }
        return ConnectivityObservation { [weak self] in
            _ = self?.state.withLock { $0.observers.removeValue(forKey: number) }
        }
    }

    private func begin(_ state: inout State) {
        guard !state.hasBegun else { return }
        state.hasBegun = true
        guard let socket = open() else { return }
        let source = DispatchSource.makeReadSource(
            fileDescriptor: socket.descriptor, queue: DispatchQueue(label: "larder.connectivity"))
        source.setEventHandler { [weak self] in
            socket.drain()
            self?.noticeChange()
        }
        // The socket is open for as long as the source may look at it.
        source.setCancelHandler { withExtendedLifetime(socket) {} }
        source.activate()
        state.source = source
        // After the socket is there: no change falls between.
        state.hasNetwork = look()
        state.hasHadNetwork = state.hasNetwork
    }

    private func noticeChange() {
        let hasNetwork = look()
        let observers = state.withLock { state -> [@Sendable (Bool) -> Void] in
            let wasConnected = state.hasNetwork
            state.hasNetwork = hasNetwork
            if hasNetwork { state.hasHadNetwork = true }
            return wasConnected == hasNetwork || !state.hasHadNetwork ? [] : Array(state.observers.values)
        }
        for observer in observers { observer(hasNetwork) }
    }
}
#endif
