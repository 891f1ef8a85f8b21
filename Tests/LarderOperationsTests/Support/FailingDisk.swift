import Foundation
import GRDB
import GRDBSQLite
import Synchronization

/// Makes calls fail by which connections of SQLite read and write a database's file and its log, and notes the writes.
final class FailingDisk: Sendable {
    enum Call: Sendable, CaseIterable { case read, write, sync, truncate, size, open, delete }

    struct Fault: Sendable, CustomStringConvertible {
        let call: Call
        /// SQLite's code.
        let code: Int32
        /// Whether all calls fail from then on, or one.
        let isLasting: Bool

        var description: String { "\(call) \(code) \(isLasting ? "from then on" : "once")" }
    }

    /// The faults of files that are open, each once and from then on.
    static let faults: [Fault] = [false, true].flatMap { isLasting in
        let calls: [(Call, ResultCode)] = [
            (.read, .SQLITE_IOERR_READ), (.read, .SQLITE_IOERR_CORRUPTFS),
            (.write, .SQLITE_IOERR_WRITE), (.write, .SQLITE_FULL),
            (.sync, .SQLITE_IOERR_FSYNC), (.truncate, .SQLITE_IOERR_TRUNCATE), (.size, .SQLITE_IOERR_FSTAT),
        ]
        return calls.map { Fault(call: $0, code: $1.rawValue, isLasting: isLasting) }
    }

    private struct State {
        var fault: Fault?
        /// How many calls of the fault's kind go well before it.
        var left = 0
        var hasFailed = false
        /// The system keeps the last error of a file.
        var hasFailedReading = false
        var written: [(isLog: Bool, range: Range<Int64>)] = []
        var syncs = 0
    }

    private let state = Mutex(State())
    /// Without it SQLite can keep no log.
    private let hasSharedMemory: Bool

    init(hasSharedMemory: Bool = true) { self.hasSharedMemory = hasSharedMemory }

    /// Whether the fault has happened.
    var hasFailed: Bool { state.withLock { $0.hasFailed } }
    /// What was written to the database's own file since the disk was healed.
    var writtenToFile: [Range<Int64>] { state.withLock { $0.written.filter { !$0.isLog }.map(\.range) } }

    /// What was written to the log since then.
    var writtenToLog: [Range<Int64>] { state.withLock { $0.written.filter(\.isLog).map(\.range) } }

    /// The call fails that comes after so many of its kind.
    func arm(_ fault: Fault, after count: Int) {
        state.withLock { ($0.fault, $0.left, $0.hasFailed, $0.hasFailedReading) = (fault, count, false, false) }
    }

    func heal() { state.withLock { ($0.fault, $0.written) = (nil, []) } }

    /// Takes a connection's files.
    func attach(_ db: Database) {
        for (code, isLog) in [(SQLITE_FCNTL_FILE_POINTER, false), (SQLITE_FCNTL_JOURNAL_POINTER, true)] {
            var found: UnsafeMutablePointer<sqlite3_file>?
            guard sqlite3_file_control(db.sqliteConnection, "main", code, &found) == SQLITE_OK, let file = found
            else { continue }
            attach(file, isLog: isLog)
        }
    }

    /// Runs `body` while each file that SQLite opens below a folder is this disk's.
    func failing<Value>(below folder: URL, _ body: () async throws -> Value) async rethrows -> Value {
        _ = system
        let prefix = folder.resolvingSymlinksInPath().path
        folders.withLock { $0[prefix] = self }
        defer { folders.withLock { $0[prefix] = nil } }
        return try await body()
    }

    fileprivate func attach(_ file: UnsafeMutablePointer<sqlite3_file>, isLog: Bool) {
        guard let calls = file.pointee.pMethods else { return }
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
        own.pointee.xFileControl = failingControl
        if !hasSharedMemory { own.pointee.iVersion = 1 }
        file.pointee.pMethods = UnsafePointer(own)
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
            state.hasFailedReading = call == .read
            return fault.code
        }
    }

    fileprivate var hasFailedReading: Bool { state.withLock { $0.hasFailedReading } }

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

private func failingControl(
    _ file: UnsafeMutablePointer<sqlite3_file>?, _ code: Int32, _ argument: UnsafeMutableRawPointer?
) -> Int32 {
    guard let attached = attached(file) else { return SQLITE_IOERR }
    if code == SQLITE_FCNTL_LAST_ERRNO, attached.disk.hasFailedReading {
        argument?.storeBytes(of: EIO, as: Int32.self)
        return SQLITE_OK
    }
    return attached.real.pointer.pointee.xFileControl?(file, code, argument) ?? SQLITE_NOTFOUND
}

/// The disks of folders, by their paths.
private let folders = Mutex<[String: FailingDisk]>([:])

/// Safe: set once, and never changed.
private struct System: @unchecked Sendable { let pointer: UnsafeMutablePointer<sqlite3_vfs>? }

/// The true system, once another is in its place that opens files as this one does, and hands those of `folders` to
/// their disks.
private let system: System = {
    guard let real = sqlite3_vfs_find(nil) else { return System(pointer: nil) }
    let own = UnsafeMutablePointer<sqlite3_vfs>.allocate(capacity: 1)
    own.initialize(to: real.pointee)
    own.pointee.zName = UnsafePointer(strdup("larder-failing"))
    own.pointee.pNext = nil
    own.pointee.xOpen = failingOpen
    own.pointee.xDelete = failingDelete
    sqlite3_vfs_register(own, 1)
    return System(pointer: real)
}()

private func disk(of name: UnsafePointer<CChar>?) -> FailingDisk? {
    guard let name else { return nil }
    let path = String(cString: name)
    return folders.withLock { folders in folders.first { path.hasPrefix($0.key + "/") }?.value }
}

private func failingOpen(
    _: UnsafeMutablePointer<sqlite3_vfs>?, _ name: UnsafePointer<CChar>?, _ file: UnsafeMutablePointer<sqlite3_file>?,
    _ flags: Int32, _ outFlags: UnsafeMutablePointer<Int32>?
) -> Int32 {
    let disk = disk(of: name)
    if let failure = disk?.failure(.open) {
        file?.pointee.pMethods = nil
        return failure
    }
    let code = system.pointer?.pointee.xOpen(system.pointer, name, file, flags, outFlags) ?? SQLITE_CANTOPEN
    if code == SQLITE_OK, let disk, let file { disk.attach(file, isLog: flags & SQLITE_OPEN_WAL != 0) }
    return code
}

private func failingDelete(
    _: UnsafeMutablePointer<sqlite3_vfs>?, _ name: UnsafePointer<CChar>?, _ syncsFolder: Int32
) -> Int32 {
    disk(of: name)?.failure(.delete)
        ?? system.pointer?.pointee.xDelete(system.pointer, name, syncsFolder) ?? SQLITE_IOERR
}
