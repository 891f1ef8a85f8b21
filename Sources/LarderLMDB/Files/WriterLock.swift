import LarderFiles
import Synchronization

/// The right to write, in this process and in all: taken before LMDB's own lock, which would wait for ever.
///
/// The file's first line says who holds it, or held it last.
final class WriterLock: Sendable {
    private let file: LockFile
    private let isHeld = Atomic<Bool>(false)
    /// This process's line, as it stands in the file.
    private let note: String

    init(folder: String, options: Environment.Options) throws(FileError) {
        file = try LockFile(path: folder + "/write.lock", mustWrite: !options.isReadOnly, in: options.files)
        note = "pid \(processID), \(options.lockLabel.prefix(100).filter { !$0.isNewline })"
    }

    func acquire(deadline: SuspendingClock.Instant) throws(LMDBError) {
        let acquired: Void? = try poll(until: deadline) { () throws(LMDBError) in try tryAcquire() ? () : nil }
        guard acquired == nil else { return }
        let holder = isHeld.load(ordering: .relaxed) ? note : file.note()
        let advice = "Wait longer, or end that process if it is stopped."
        throw LMDBError(.lockTimedOut, "The writer lock is held by \(holder). \(advice)", path: file.path)
    }

    /// Returns false at once where another writer holds the lock.
    func tryAcquire() throws(LMDBError) -> Bool {
        guard isHeld.compareExchange(expected: false, desired: true, ordering: .acquiring).exchanged else {
            return false
        }
        do throws(FileError) {
            guard try file.tryLock(.exclusive) else {
                isHeld.store(false, ordering: .releasing)
                return false
            }
        } catch {
            isHeld.store(false, ordering: .releasing)
            throw LMDBError(error)
        }
        if file.isWritable, file.note() != note { file.setNote(note) }
        return true
    }

    func close() { file.close() }

    func release() {
        file.unlock()
        isHeld.store(false, ordering: .releasing)
    }
}
