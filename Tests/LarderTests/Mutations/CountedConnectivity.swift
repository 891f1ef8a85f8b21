import Larder
import Synchronization
import Testing

/// A network that is there, and counts how often a runner looks whether it is.
final class CountedConnectivity: Connectivity {
    private let count = Mutex(0)

    var looks: Int { count.withLock { $0 } }

    var isConnected: Bool {
        count.withLock { $0 += 1 }
        return true
    }

    func observe(_ change: @escaping @Sendable (Bool) -> Void) -> ConnectivityObservation {
        ConnectivityObservation(stop: {})
    }

    /// Waits until the runner has looked some times more.
    func someLooks() async throws {
        let before = looks
        try await eventually { looks > before + 5 }
    }
}
