package import Foundation
import Synchronization

/// What a load says while it works: each word is one write to a file, which a recorder puts between the changes.
package final class Marks: Sendable {
    private let file: Mutex<FileHandle>

    /// - Parameter continued: Whether what is in the file stays.
    package init(_ file: URL, continued: Bool = false) throws {
        if !continued { try Data().write(to: file) }
        let handle = try FileHandle(forWritingTo: file)
        if continued { try handle.seekToEnd() }
        self.file = Mutex(handle)
    }

    /// What was marked in a file.
    package static func lines(of file: URL) throws -> [String] {
        String(decoding: try Data(contentsOf: file), as: UTF8.self).split(separator: "\n").map(String.init)
    }

    /// Whether a mark says what may be from here on, and promises nothing: `forgetting`, and not `forgot`.
    package static func isAnnouncement(_ mark: String) -> Bool {
        mark.split(separator: " ").first?.hasSuffix("ing") ?? false
    }

    package func callAsFunction(_ words: String...) {
        let line = Data((words.joined(separator: " ") + "\n").utf8)
        file.withLock { try? $0.write(contentsOf: line) }
    }
}
