import LarderFiles

/// Holds the bytes of all exchanges to so many in a second: each waits until those before it have had their time.
final class Pacer: Sendable {
    /// How long one may take at most before the next has its turn: a server gives up a client that it has not heard for
    /// long.
    private static let turnsPerSecond: Int64 = 4
    private static let smallestTurn: Int64 = 4 << 10

    private let bandwidth: Int64?
    private let free = Locked(SuspendingClock.now)

    /// - Parameter bandwidth: Bytes per second; nil for as many as there can be.
    init(bandwidth: Int64?) { self.bandwidth = bandwidth.map { max(1, $0) } }

    /// How many bytes to wait for at most at a time; nil for as many as one likes.
    var turn: Int? { bandwidth.map { Int(clamping: max(Self.smallestTurn, $0 / Self.turnsPerSecond)) } }

    /// - Throws: `CancellationError`; the time is others' then.
    func wait(for count: Int) async throws {
        guard let bandwidth else { return try Task.checkCancellation() }
        let now = SuspendingClock.now
        let time = Duration.seconds(Double(count) / Double(bandwidth))
        let begin = free.withLock { free in
            let begin = max(free, now)
            free = begin + time
            return begin
        }
        do { try await Task.sleep(until: begin, clock: .suspending) } catch {
            free.withLock { $0 -= time }
            throw error
        }
    }
}
