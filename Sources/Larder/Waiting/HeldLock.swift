import Foundation
import LarderFiles

/// A kernel's lock that is held: free at once when its process dies, and not before where that is only stopped.
final class HeldLock: Sendable {
    private let file: LockFile

    private init(_ file: LockFile) { self.file = file }

    func release() { file.unlock() }

    /// Takes a lock, and waits for it without keeping a thread.
    ///
    /// - Parameters:
    ///   - purpose: What the lock is taken for, for the errors of other callers that wait for it.
    ///   - waiting: Is told the lock's holder, each time that the lock is found held.
    /// - Throws: `.timedOut` with the holder named; `.cancelled`; `.lock`.
    static func acquire(
        _ name: String, in locks: URL, _ files: FileSystem, for purpose: String, label: String,
        until deadline: SuspendingClock.Instant,
        waiting: @Sendable (String) -> Void = { _ in }
    ) async throws(LarderError) -> HeldLock {
        let file: LockFile
        do throws(FileError) { file = try LockFile(making: locks.appending(path: name).path, in: files) } catch {
            throw unusable(name, error)
        }
        var pause = Duration.milliseconds(1)
        while true {
            let isTaken: Bool
            do throws(FileError) { isTaken = try file.tryLock(.exclusive) } catch { throw unusable(name, error) }
            if isTaken {
                file.setNote(
                    "process \(ProcessInfo.processInfo.processIdentifier) (\(label)), \(purpose), since "
                        + Date().ISO8601Format())
                return HeldLock(file)
            }
            let holder = file.note()
            waiting(holder)
            guard .now < deadline else {
                throw LarderError(.timedOut, "The caller waited for the lock \(name), which is held by \(holder)")
            }
            guard (try? await Task.sleep(for: min(pause, deadline - .now))) != nil else { throw .cancelled }
            pause = min(pause * 2, .milliseconds(20))
        }
    }

    private static func unusable(_ name: String, _ error: any Error) -> LarderError {
        LarderError(
            .lock, "The lock \(name) cannot be used: \(error); make the store's folder writable for this user",
            cause: error)
    }
}
