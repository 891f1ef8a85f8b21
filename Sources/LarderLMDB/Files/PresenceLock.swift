import LarderFiles

/// Says that a living process has the environment open, and that its file was verified.
///
/// Shared while the environment is open; exclusive while the first opener verifies, so that no process writes
/// meanwhile and no second one verifies in vain. The note says whether the last verification succeeded: a process
/// that dies or fails leaves the file unverified.
final class PresenceLock: Sendable {
    private let file: LockFile

    private enum Note {
        static let unverified = "unverified"
        static let verified = "verified"
        /// It was verified because it had not been closed cleanly.
        static let recovered = "recovered"
    }

    enum Entry {
        /// No other process has the environment open: the caller must verify and then call `settle`.
        case first
        /// Another process had it open before, and found the file cleanly closed.
        case verified
        /// Another process had it open before, and found the file not cleanly closed.
        case recovered
    }

    /// Nil where the environment is read-only and the folder has no such file and takes none.
    init?(folder: String, options: Environment.Options) throws(LMDBError) {
        do throws(FileError) {
            file = try LockFile(path: folder + "/open.lock", mustWrite: !options.isReadOnly, in: options.files)
        } catch {
            guard options.isReadOnly, error.code == .missing else { throw LMDBError(error) }
            return nil
        }
    }

    func enter(deadline: SuspendingClock.Instant) throws(LMDBError) -> Entry {
        let entry: Entry? = try translated { () throws(FileError) in
            try poll(until: deadline) { () throws(FileError) in try tryEnter() }
        }
        if let entry { return entry }
        throw LMDBError(.lockTimedOut, Self.taken, path: file.path)
    }

    /// Apple's LMDB has semaphores that a killed process leaves taken, and then all others wait for ever. One process at a
    /// time has an environment open there.
    #if canImport(Darwin)
    private static let isShared = false
    private static let taken = "Another process has the file open. One process may on this system: end the other."
    #else
    private static let isShared = true
    private static let taken =
        "Another process is verifying the file. Wait longer, or end that process if it is stopped."
    #endif

    /// Nil while another process verifies.
    private func tryEnter() throws(FileError) -> Entry? {
        if try file.tryLock(.exclusive) {
            if file.isWritable { file.setNote(Note.unverified) }
            return .first
        }
        guard try file.tryLock(.shared) else { return nil }
        switch file.note() {
        case Note.verified: return .verified
        case Note.recovered: return .recovered
        default: break
        }
        // No process verifies now, and one that cannot write cannot say that it has.
        if !file.isWritable { return .first }
        file.unlock()
        return nil
    }

    /// Lets others in, after verifying.
    ///
    /// - Parameter isRecovered: Whether the file had not been closed cleanly.
    func settle(isRecovered: Bool, deadline: SuspendingClock.Instant) throws(LMDBError) {
        if file.isWritable { file.setNote(isRecovered ? Note.recovered : Note.verified) }
        guard Self.isShared else { return }
        // Another process may slip in while the lock changes its kind. It verifies once more, and no process writes
        // meanwhile.
        guard try !translated({ () throws(FileError) in try file.lock(.shared, until: deadline) }) else { return }
        throw LMDBError(.lockTimedOut, "Another process is verifying the file. Wait longer.", path: file.path)
    }

    /// Says that this process has it open no more, for good.
    func leave() { file.close() }
}
