#if canImport(Darwin)
import Darwin
#elseif canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

extension File {
    package enum LockKind: Sendable { case shared, exclusive }

    /// Takes the kernel's lock on the file if it is free, or replaces the kind that is held; false where another has
    /// it.
    ///
    /// `flock` belongs to the open file, so each instance excludes all others, in this process too. It is free at once
    /// when its process dies.
    package func tryLock(_ kind: LockKind) throws(FileError) -> Bool {
        let status = call(.lock) { systemLock(descriptor, (kind == .shared ? LOCK_SH : LOCK_EX) | LOCK_NB) }
        if status == EWOULDBLOCK { return false }
        guard status == 0 else { throw FileError(status, doing: "Locking a file", path: path) }
        isLocked.store(true, ordering: .relaxed)
        return true
    }

    package func unlock() { unlock(descriptor) }

    /// Gives the lock up for every copy of the descriptor. To close this one alone would leave the lock to a child that is
    /// being started, until it runs its program. A process that forks and runs no program must close no file.
    func unlock(_ descriptor: Int32) {
        if isLocked.exchange(false, ordering: .relaxed) { _ = systemLock(descriptor, LOCK_UN) }
    }

    // MARK: Locks on ranges

    /// Takes a lock on a range for writing, as POSIX has them: they are the process's, and closing any descriptor of
    /// the file gives them up.
    ///
    /// - Returns: Nil where it was taken; otherwise who has it, zero for a process that is not known.
    package func tryRangeLock(from start: Int64, count: Int64) throws(FileError) -> Int32? {
        var lock = range(F_WRLCK, start, count)
        let status = call(.lock) { fcntl(descriptor, F_SETLK, &lock) }
        guard status != 0 else { return nil }
        guard [EACCES, EAGAIN].contains(status) else {
            throw FileError(status, doing: "Locking a range of a file", path: path)
        }
        return rangeHolder(F_WRLCK, from: start, count: count) ?? 0
    }

    /// The process that has a lock for writing on some of a range; nil where none has, or the file system has no locks.
    package func rangeWriter(from start: Int64, count: Int64) -> Int32? {
        rangeHolder(F_RDLCK, from: start, count: count)
    }

    private func rangeHolder(_ kind: Int32, from start: Int64, count: Int64) -> Int32? {
        // What conflicts with this kind.
        var lock = range(kind, start, count)
        guard fcntl(descriptor, F_GETLK, &lock) == 0, lock.l_type != Int16(F_UNLCK) else { return nil }
        return Int32(lock.l_pid)
    }

    private func range(_ kind: Int32, _ start: Int64, _ count: Int64) -> flock {
        var lock = flock()
        lock.l_type = Int16(kind)
        lock.l_whence = Int16(SEEK_SET)
        lock.l_start = off_t(start)
        lock.l_len = off_t(count)
        return lock
    }
}

/// `flock`, which is a structure's name, too.
private func systemLock(_ descriptor: Int32, _ operation: Int32) -> Int32 { flock(descriptor, operation) }
