import LarderFiles

/// Reading where LMDB's table of readers cannot be written: in another user's folder, on a full disk.
///
/// Writers do not see such readers, and would reuse the pages that these look at. So a reader keeps writers away
/// meanwhile by the shared kind of their lock, and waits for the one that is writing. A folder without that lock has
/// never been open for writing.
final class UnregisteredReading: Sendable {
    private struct Readers {
        var count = 0
        var lock: LockFile?
    }

    private let readers = Locked(Readers())
    private let path: String
    private let options: Environment.Options

    /// - Parameter options: Their `lockTimeout` is how long a read may wait for the one that is writing.
    init(folder: String, options: Environment.Options) {
        path = folder + "/write.lock"
        self.options = options
    }

    /// Whether LMDB would fail to register readers in a folder, which is then read without.
    ///
    /// - Parameter error: Of opening or enlarging the table.
    static func isNeeded(after error: FileError) -> Bool {
        [.permissionDenied, .readOnlyVolume, .noSpace].contains(error.code)
    }

    /// Begins a read; throws `.lockTimedOut` where another process writes for longer than `Options.lockTimeout`.
    func enter() throws(LMDBError) {
        try readers.withLock { (readers) throws(LMDBError) in
            if readers.count == 0 { try lock(&readers) }
            readers.count += 1
        }
    }

    func leave() {
        readers.withLock { readers in
            readers.count -= 1
            if readers.count == 0 { readers.lock?.unlock() }
        }
    }

    /// Gives the lock's file back.
    func close() { readers.withLock { $0.lock = nil } }

    private func lock(_ readers: inout Readers) throws(LMDBError) {
        if readers.lock == nil {
            do throws(FileError) {
                readers.lock = try LockFile(path: path, mustWrite: false, in: options.files)
            } catch {
                guard error.code == .missing || Self.isNeeded(after: error) else { throw LMDBError(error) }
            }
        }
        guard let lock = readers.lock else { return }
        let deadline = SuspendingClock.now + options.lockTimeout
        guard try !translated({ () throws(FileError) in try lock.lock(.shared, until: deadline) }) else { return }
        let advice = "Wait longer, or give this user write access to the folder, which then reads without waiting."
        throw LMDBError(.lockTimedOut, "\(lock.note()) is writing. \(advice)", path: path)
    }
}
