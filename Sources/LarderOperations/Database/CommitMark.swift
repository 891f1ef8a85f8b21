import Foundation
import GRDB
import LarderFiles
import Synchronization

/// Which commits there are: another mark of the same open database says that something was committed since, by whatever
/// connection and process.
package struct CommitMark: Sendable, Equatable {
    /// Kept, so that no mark of a connection that was closed equals one of the next.
    fileprivate let source: CommitMarks
    fileprivate let header: LogIndexHeader.Bytes

    package static func == (one: CommitMark, other: CommitMark) -> Bool {
        one.source === other.source && one.header == other.header
    }
}

/// A connection of its own that writes nothing and waits for no writer. Through it the process sees the memory that all
/// connections to the database share, where each commit leaves its mark. It is opened when a mark is asked for first.
final class CommitMarks: Sendable {
    private struct State {
        var queue: DatabaseQueue?
        var header: LogIndexHeader?
        var hasFailed = false
    }

    private let path: String
    private let configuration: Configuration
    private let state = Locked(State())

    init(of pool: DatabasePool) {
        path = pool.path
        var configuration = Configuration()
        configuration.label = "larder.operations.marks"
        configuration.readonly = true
        configuration.busyMode = pool.configuration.busyMode
        configuration.prepareDatabase { SyncedLog.prepare($0) }
        self.configuration = configuration
    }

    /// - Returns: Nil where the connection could not be opened, or a commit is leaving its mark at this moment: what was
    ///   committed has to be read then.
    func current() -> CommitMark? {
        state.withLock { state in
            if state.header == nil, !state.hasFailed {
                state.queue = try? DatabaseQueue(path: path, configuration: configuration)
                state.header = try? state.queue?.unsafeRead { try LogIndexHeader(of: $0) }
                state.hasFailed = state.header == nil
            }
            return state.header?.bytes.map { CommitMark(source: self, header: $0) }
        }
    }

    func close() throws {
        let queue = state.withLock { state in
            defer { state = State(hasFailed: true) }
            return state.queue
        }
        try queue?.close()
    }
}

/// The header of the log's index, in the memory that a database's connections share. SQLite tells by it, as is done
/// here, whether another connection has committed: each commit counts one up in it, and adds to its checksums. It is
/// there twice, and a writer changes the second copy first: https://www.sqlite.org/walformat.html
private struct LogIndexHeader {
    /// The 48 bytes, and 16 of none.
    typealias Bytes = SIMD8<UInt64>

    private static let words = 6

    // Safe for as long as the connection is open: it keeps the memory mapped, which begins at a page.
    private let start: UnsafePointer<Atomic<UInt64>>

    /// - Returns: Nil where the database has no such memory.
    init?(of db: Database) throws {
        // The connection begins to use the log.
        _ = try OperationsDatabase.dataVersion(db)
        guard let region = try SyncedLog.sharedMemory(of: db) else { return nil }
        start = UnsafePointer(region.assumingMemoryBound(to: Atomic<UInt64>.self))
    }

    /// Nil where a writer is changing them.
    var bytes: Bytes? {
        let first = copy(0)
        atomicMemoryFence(ordering: .acquiring)
        return copy(1) == first ? first : nil
    }

    private func copy(_ number: Int) -> Bytes {
        var bytes = Bytes()
        for word in 0..<Self.words { bytes[word] = start[number * Self.words + word].load(ordering: .relaxed) }
        return bytes
    }
}

extension OperationsDatabase {
    /// A mark of the newest commit, for a caller that keeps what it has read: it takes the mark first, and reads again
    /// once there is another. Reads memory alone, and waits for nothing, also while a writer of this process waits for the
    /// disk.
    ///
    /// - Returns: Nil where there is none to be had; then nothing is to be kept.
    package func commitMark() throws(OperationsError) -> CommitMark? { try using { $0.marks.current() } }
}
