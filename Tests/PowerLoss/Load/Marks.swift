package import Foundation
internal import Synchronization

/// What a load says while it works: each word is one write to a file, which a recorder puts between the changes.
package final class Marks: Sendable {
    private let file: Mutex<FileHandle>

    package init(_ file: URL) throws {
        try Data().write(to: file)
        self.file = Mutex(try FileHandle(forWritingTo: file))
    }

    package func callAsFunction(_ words: String...) {
        let line = Data((words.joined(separator: " ") + "\n").utf8)
        file.withLock { try? $0.write(contentsOf: line) }
    }
}
