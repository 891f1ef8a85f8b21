import Larder
import LarderTestSupport
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

/// Runs the queue with pauses of an hour until the mutation has failed, and the runner has looked some times since.
func runIntoPause(
    _ app: Partition, _ receipt: MutationReceipt, _ change: (inout MutationRunner.Options) -> Void
) async throws {
    let connectivity = CountedConnectivity()
    let runner = quickRunner(app) { options in
        options.connectivity = connectivity
        options.backoff = Backoff(first: .seconds(3600), cap: .seconds(3600))
        options.random = { 1 }
        change(&options)
    }
    let running = Task { try await runner.run() }
    try await eventually { try receipt.status()?.failure != nil }
    try await connectivity.someLooks()
    running.cancel()
    try await running.value
}
