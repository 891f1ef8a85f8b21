import Foundation
import GRDB
import GRDBSQLite
import Synchronization

/// Makes calls fail by which connections of SQLite read and write a database's file and its log, and notes the writes.
final class FailingDisk: Sendable {
    enum Call: Sendable, CaseIterable { case read, write, sync, truncate, size }

    struct Fault: Sendable, CustomStringConvertible {
        let call: Call
        /// SQLite's code.
        let code: Int32
        /// Whether all calls fail from then on, or one.
        let isLasting: Bool

        var description: String { "\(call) \(code) \(isLasting ? "from then on" : "once")" }
    }

    private struct State {
        var fault: Fault?
        /// How many calls of the fault's kind go well before it.
        var left = 0
        var hasFailed = false
        var written: [(isLog: Bool, range: Range<Int64>)] = []
        var syncs = 0
    }

    private let state = Mutex(State())

    /// Whether the fault has happened.
    var hasFailed: Bool { state.withLock { $0.hasFailed } }
    /// What was written to the database's own file since the disk was healed.
    var writtenToFile: [Range<Int64>] { state.withLock { $0.written.filter { !$0.isLog }.map(\.range) } }

    /// The call fails that comes after so many of its kind.
    func arm(_ fault: Fault, after count: Int) {
        state.withLock { ($0.fault, $0.left, $0.hasFailed) = (fault, count, false) }
    }

    func heal() { state.withLock { ($0.fault, $0.written) = (nil, []) } }

    /// Takes a connection's files.
    func attach(_ db: Database) {
        for (code, isLog) in [(SQLITE_FCNTL_FILE_POINTER, false), (SQLITE_FCNTL_JOURNAL_POINTER, true)] {
            var found: UnsafeMutablePointer<sqlite3_file>?
            guard sqlite3_file_control(db.sqliteConnection, "main", code, &found) == SQLITE_OK, let file = found,
                let calls = file.pointee.pMethods
            else { continue }
            // Of an earlier disk's, and of a closed file's whose place it has, the true ones are kept.
            let isOurs = calls.pointee.xWrite.map { unsafeBitCast($0, to: Int.self) } == Self.ownWrite
            let real = isOurs ? files.withLock { $0[Address(file)]?.real } ?? Calls(calls) : Calls(calls)
            files.withLock { $0[Address(file)] = AttachedFile(disk: self, real: real, isLog: isLog) }
            let own = UnsafeMutablePointer<sqlite3_io_methods>.allocate(capacity: 1)
            own.initialize(to: real.pointer.pointee)
            own.pointee.xRead = failingRead
            own.pointee.xWrite = failingWrite
            own.pointee.xSync = failingSync
            own.pointee.xTruncate = failingTruncate
            own.pointee.xFileSize = failingSize
            file.pointee.pMethods = UnsafePointer(own)
        }
    }

    private typealias Write =
        @convention(c) (UnsafeMutablePointer<sqlite3_file>?, UnsafeRawPointer?, Int32, sqlite3_int64) -> Int32
    private static let ownWrite = unsafeBitCast(failingWrite as Write, to: Int.self)

    /// - Returns: SQLite's code; nil where the call is to be made.
    fileprivate func failure(_ call: Call) -> Int32? {
        state.withLock { state in
            guard let fault = state.fault, fault.call == call else { return nil }
            if state.hasFailed { return fault.isLasting ? fault.code : nil }
            guard state.left == 0 else {
                state.left -= 1
                return nil
            }
            state.hasFailed = true
            return fault.code
        }
    }

    fileprivate func noteWrite(_ range: Range<Int64>, isLog: Bool) {
        state.withLock { $0.written.append((isLog, range)) }
    }
}

/// Safe: SQLite's own calls are never changed, and stay for as long as the process does.
private struct Calls: @unchecked Sendable {
    let pointer: UnsafePointer<sqlite3_io_methods>
    init(_ pointer: UnsafePointer<sqlite3_io_methods>) { self.pointer = pointer }
}

private struct Address: Hashable, Sendable {
    let value: Int
    init(_ file: UnsafeMutablePointer<sqlite3_file>?) { value = Int(bitPattern: file) }
}

private struct AttachedFile: Sendable {
    let disk: FailingDisk
    let real: Calls
    let isLog: Bool
}

/// SQLite's calls have no room for a context.
private let files = Mutex<[Address: AttachedFile]>([:])

private func attached(_ file: UnsafeMutablePointer<sqlite3_file>?) -> AttachedFile? {
    files.withLock { $0[Address(file)] }
}

private func failingRead(
    _ file: UnsafeMutablePointer<sqlite3_file>?, _ bytes: UnsafeMutableRawPointer?, _ count: Int32,
    _ offset: sqlite3_int64
) -> Int32 {
    guard let attached = attached(file) else { return SQLITE_IOERR }
    return attached.disk.failure(.read) ?? attached.real.pointer.pointee.xRead?(file, bytes, count, offset)
        ?? SQLITE_IOERR
}

private func failingWrite(
    _ file: UnsafeMutablePointer<sqlite3_file>?, _ bytes: UnsafeRawPointer?, _ count: Int32, _ offset: sqlite3_int64
) -> Int32 {
    guard let attached = attached(file) else { return SQLITE_IOERR }
    if let failure = attached.disk.failure(.write) { return failure }
    attached.disk.noteWrite(offset..<(offset + Int64(count)), isLog: attached.isLog)
    return attached.real.pointer.pointee.xWrite?(file, bytes, count, offset) ?? SQLITE_IOERR
}

private func failingSync(_ file: UnsafeMutablePointer<sqlite3_file>?, _ flags: Int32) -> Int32 {
    guard let attached = attached(file) else { return SQLITE_IOERR }
    return attached.disk.failure(.sync) ?? attached.real.pointer.pointee.xSync?(file, flags) ?? SQLITE_IOERR
}

private func failingTruncate(_ file: UnsafeMutablePointer<sqlite3_file>?, _ size: sqlite3_int64) -> Int32 {
    guard let attached = attached(file) else { return SQLITE_IOERR }
    return attached.disk.failure(.truncate) ?? attached.real.pointer.pointee.xTruncate?(file, size) ?? SQLITE_IOERR
}

private func failingSize(
    _ file: UnsafeMutablePointer<sqlite3_file>?, _ size: UnsafeMutablePointer<sqlite3_int64>?
) -> Int32 {
    guard let attached = attached(file) else { return SQLITE_IOERR }
    return attached.disk.failure(.size) ?? attached.real.pointer.pointee.xFileSize?(file, size) ?? SQLITE_IOERR
}
