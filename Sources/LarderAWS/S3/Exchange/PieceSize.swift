import LarderFiles

/// How many bytes of a file are given to an event loop at a time: so many that they are on their way for about a third
/// of a second.
///
/// Each hand-over costs what sending tens of kilobytes does, and how far a loop has come with a piece is unknown:
/// progress, the limit of bandwidth and the time without movement all go by pieces.
package final class PieceSize: Sendable {
    private static let smallest = 64 << 10
    private static let first = 256 << 10
    private static let largest = 4 << 20

    private let size = Locked(first)

    package init() {}

    /// In bytes.
    package var current: Int { size.withLock { $0 } }

    /// Begins anew, where so many were not taken in time, or not at all.
    package func forget() { size.withLock { $0 = Self.first } }

    /// Learns from how long it took until so many were read, leave was given and a socket had taken them.
    package func learn(_ count: Int, took time: Duration) {
        size.withLock { size in
            // What is smaller than was allowed was the end of a body.
            if time < .milliseconds(200), count >= size {
                size = min(size * 2, Self.largest)
            } else if time > .milliseconds(800) {
                size = max(min(size, count) / 2, Self.smallest)
            }
        }
    }
}
