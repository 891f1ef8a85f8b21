import Foundation

/// Lines that outlive this program, whenever it is killed.
final class Ledger: Sendable {
    private let descriptor: Int32

    init(file: URL) throws {
        descriptor = open(file.path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { throw CocoaError(.fileWriteUnknown) }
    }

    /// Adds a line, whole, in one write.
    func note(_ words: String...) {
        let line = Array((words.joined(separator: " ") + "\n").utf8)
        guard write(descriptor, line, line.count) == line.count else { abort() }
    }
}
