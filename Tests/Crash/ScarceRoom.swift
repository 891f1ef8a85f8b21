import Foundation
import GRDBSQLite
import LarderOperations

/// Takes the room that there is for files, and gives it back.
struct ScarceRoom: Sendable {
    enum Kind: String {
        /// This process may write no further into any file than a few kilobytes.
        case limit
        /// The volume, which is this process's alone, is filled to its last byte, and the database's log has no room
        /// of its own.
        case volume
    }

    let kind: Kind
    /// How many bytes are left.
    let left: Int
    private let store: URL
    private var ballast: URL { store.deletingLastPathComponent().appending(path: "ballast") }

    init(_ kind: Kind, left: Int, besides store: URL) {
        self.kind = kind
        self.left = left
        self.store = store
    }

    func take() throws {
        switch kind {
        case .limit:
            signal(SIGXFSZ, SIG_IGN)
            try setLimit(UInt64(left))
        case .volume:
            try emptyLog()
            let file = Foundation.open(ballast.path, O_WRONLY | O_CREAT, 0o644)
            guard file >= 0 else { throw Failure() }
            let bytes = [UInt8](repeating: 1, count: 1 << 20)
            var count = bytes.count
            // A smaller and smaller piece, until not one byte fits.
            while count > 0 {
                let written = Foundation.write(file, bytes, count)
                if written < count { count = written > 0 ? count - written : count / 2 }
            }
            ftruncate(file, lseek(file, 0, SEEK_END) - off_t(left))
            Foundation.close(file)
        }
    }

    func giveBack() throws {
        switch kind {
        case .limit: try setLimit(nil)
        case .volume: try FileManager.default.removeItem(at: ballast)
        }
    }

    /// Writes back what the log holds, and makes it as short as can be.
    private func emptyLog() throws {
        let path = store.appending(path: OperationsDatabase.fileName).path
        guard FileManager.default.fileExists(atPath: path) else { return }
        var database: OpaquePointer?
        defer { sqlite3_close(database) }
        guard sqlite3_open_v2(path, &database, SQLITE_OPEN_READWRITE, nil) == SQLITE_OK,
            sqlite3_busy_timeout(database, 10_000) == SQLITE_OK,
            sqlite3_exec(database, "PRAGMA wal_checkpoint(TRUNCATE)", nil, nil, nil) == SQLITE_OK
        else { throw Failure() }
    }

    private func setLimit(_ bytes: UInt64?) throws {
        #if canImport(Glibc)
        let resource = __rlimit_resource_t(RLIMIT_FSIZE.rawValue)
        #else
        let resource = RLIMIT_FSIZE
        #endif
        var limit = rlimit()
        guard getrlimit(resource, &limit) == 0 else { throw Failure() }
        limit.rlim_cur = bytes.map { rlim_t($0) } ?? limit.rlim_max
        guard setrlimit(resource, &limit) == 0 else { throw Failure() }
    }

    struct Failure: Error {}
}
