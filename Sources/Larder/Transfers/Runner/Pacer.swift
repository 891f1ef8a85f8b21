internal import Synchronization

/// Holds the bytes of all exchanges to so many in a second: each waits until those before it have had their time.
final class Pacer: Sendable {
    private let bandwidth: Int64?
    private let free = Mutex(ContinuousClock.now)

    /// - Parameter bandwidth: Bytes per second; nil for as many as there can be.
    init(bandwidth: Int64?) { self.bandwidth = bandwidth.map { max(1, $0) } }

    /// - Throws: `CancellationError`.
    func wait(for count: Int) async throws {
        guard let bandwidth else { return try Task.checkCancellation() }
        let now = ContinuousClock.now
        let time = Duration.seconds(Double(count) / Double(bandwidth))
        let begin = free.withLock { free in
            let begin = max(free, now)
            free = begin + time
            return begin
        }
        try await Task.sleep(until: begin)
    }
}
