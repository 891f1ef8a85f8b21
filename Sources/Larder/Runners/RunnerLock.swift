import Foundation
import LarderFiles

/// The right to send a partition's mutations, or to carry out its transfers: a lock of the kernel's, which is free at
/// once when its process dies and stays with one that is only stopped.
final class RunnerLock: Sendable {
    private let file: LockFile
    /// Unlike any other runner's: what stands beside a mutation that is under way.
    let owner: String

    /// - Parameter suffix: Of the lock's file: it tells what the right is to.
    init(folder: URL, partition: String, suffix: String, _ files: FileSystem) throws(LarderError) {
        let locks = folder.appending(path: "locks")
        owner = "\(ProcessInfo.processInfo.processIdentifier) \(UUID().uuidString.lowercased())"
        do throws(FileError) {
            file = try LockFile(making: locks.appending(path: partition + suffix).path, in: files)
        } catch {
            throw LarderError(.notRunnable, "The runner's lock cannot be made: \(error)", cause: error)
        }
    }

    /// False where another runner, in this process or another, has it.
    func tryAcquire() throws(LarderError) -> Bool {
        do throws(FileError) {
            guard try file.tryLock(.exclusive) else { return false }
        } catch { throw LarderError(.notRunnable, "The runner's lock cannot be taken: \(error)", cause: error) }
        file.setNote(owner)
        return true
    }

    /// Gives the lock and its file back.
    func close() { file.close() }
}
