import Foundation
import GRDB
import Synchronization

/// Which commits there are: another mark of the same open database says that something was committed since, by whatever
/// connection and process.
package struct CommitMark: Sendable, Equatable {
    /// Kept, so that no mark of a connection that was closed equals one of the next.
    fileprivate let source: CommitMarks
    fileprivate let version: Int64

    package static func == (one: CommitMark, other: CommitMark) -> Bool {
        one.source === other.source && one.version == other.version
    }
}

/// A connection of its own that writes nothing, so that its `data_version` changes with each commit there is
/// (https://www.sqlite.org/pragma.html#pragma_data_version), and that waits for no writer. It is opened when a mark is
/// asked for first.
final class CommitMarks: Sendable {
    private struct State {
        var queue: DatabaseQueue?
        var hasFailed = false
    }

    private let path: String
    private let configuration: Configuration
    private let state = Mutex(State())

    init(of pool: DatabasePool) {
        path = pool.path
        var configuration = Configuration()
        configuration.label = "larder.operations.marks"
        configuration.readonly = true
        configuration.busyMode = pool.configuration.busyMode
        configuration.prepareDatabase { SyncedLog.prepare($0) }
        self.configuration = configuration
    }

    /// - Returns: Nil where the connection could not be opened: what was committed has to be read then.
    func current() throws -> CommitMark? {
        let queue = state.withLock { state -> DatabaseQueue? in
            if state.queue == nil, !state.hasFailed {
                state.queue = try? DatabaseQueue(path: path, configuration: configuration)
                state.hasFailed = state.queue == nil
            }
            return state.queue
        }
        guard let queue else { return nil }
        return CommitMark(source: self, version: try queue.unsafeRead { try OperationsDatabase.dataVersion($0) })
    }

    func close() throws {
        let queue = state.withLock { state in
            defer { state = State(queue: nil, hasFailed: true) }
            return state.queue
        }
        try queue?.close()
    }
}

extension OperationsDatabase {
    /// A mark of the newest commit, for a caller that keeps what it has read: it takes the mark first, and reads again
    /// once there is another. Runs no query, and waits for nothing, also while a writer of this process waits for the disk.
    ///
    /// - Returns: Nil where there is none to be had; then nothing is to be kept.
    package func commitMark() throws(OperationsError) -> CommitMark? { try using { try $0.marks.current() } }
}
