package import Foundation
package import LarderFiles

/// The right to change a store's schema, its formats, or all of its content at once: one thread's, in all processes.
///
/// A lock of the kernel's in `locks/migrate`: free at once when its process dies, and never taken from one that is only
/// stopped. The file's first line says who holds it, or held it last.
package final class MigrationLock: Sendable {
    /// The file's name in the folder `locks`.
    package static let fileName = "migrate"

    private let file: LockFile

    private init(_ file: LockFile) { self.file = file }

    /// Takes the lock, waiting for the process that has it.
    ///
    /// - Parameters:
    ///   - store: The store's folder.
    ///   - work: What it is taken for, for the errors of others who wait: "up".
    /// - Throws: `.migrationLocked`, with the holder, once the time is over; `.notWritable`, `.full`, `.storage`.
    package static func take(
        in store: URL, for work: String, within time: Duration, _ files: FileSystem = FileSystem()
    ) throws(OperationsError) -> MigrationLock {
        do {
            let file = try LockFile(making: store.appending(path: "locks/\(fileName)").path, in: files)
            guard try file.lock(.exclusive, until: .now + max(.zero, time)) else {
                throw OperationsError.migrationLocked(by: file.note(), file.path)
            }
            file.setNote("pid \(processID), \(thread), \(work), since \(Date().formatted(.iso8601))")
            return MigrationLock(file)
        } catch { throw OperationsError(error, "The migration lock of \(store.path) cannot be taken") }
    }

    /// Who holds the lock; nil where no process does, or where there is no such file.
    package static func holder(in store: URL, _ files: FileSystem = FileSystem()) -> String? {
        let path = store.appending(path: "locks/\(fileName)").path
        guard (try? files.exists(path)) == true, let file = try? LockFile(path: path, mustWrite: false, in: files),
            (try? file.tryLock(.shared)) == false
        else { return nil }
        return file.note()
    }

    /// Gives the lock to others. Letting go of it does so too.
    package func release() { file.unlock() }

    /// Names the thread as debuggers do: by its number where there is one, and by its name.
    private static var thread: String {
        let name = Thread.current.name.flatMap { $0.isEmpty ? nil : " \($0.prefix(40))" } ?? ""
        // Where there is no such file, the name has to do.
        let link = try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/thread-self")
        let number = link?.split(separator: "/").last.map { " \($0)" } ?? ""
        return "thread\(number)\(name)"
    }
}

extension OperationsError {
    fileprivate static func migrationLocked(by holder: String, _ path: String) -> OperationsError {
        let holder = holder.isEmpty ? "a process that has not said its name" : holder
        return OperationsError(
            .migrationLocked,
            "The migration lock \(path) is held by \(holder); wait longer, or end that process if it is stopped")
    }

    fileprivate init(_ error: any Error, _ message: String) {
        if let error = error as? OperationsError {
            self = error
            return
        }
        let code = (error as? FileError).map { OperationsError.translated($0).code } ?? .storage
        self.init(code, "\(message); the cause says why", cause: error)
    }
}
