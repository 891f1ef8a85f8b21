internal import Foundation
internal import LarderLMDB

extension CacheFolder {
    private static let doomedPrefix = ".removed-"

    /// The file that says that the cache is to be removed, unless its partition is still there.
    private var mark: String { path + "/forgotten" }

    /// Whether the cache is marked.
    package var isForgotten: Bool { FileManager.default.fileExists(atPath: mark) }

    /// Marks the cache, durably; nothing where there is none.
    package func markForgotten() throws(RecordError) {
        guard FileManager.default.fileExists(atPath: path) else { return }
        try translated {
            try Data().write(to: URL(filePath: mark))
            try FolderSync.run(path)
        }
    }

    /// Takes the mark away.
    package func keepForgotten() throws(RecordError) {
        try translated {
            try FileManager.default.removeItem(atPath: mark)
            try FolderSync.run(path)
        }
    }

    /// Removes the cache for good, with all its generations. Programs that have it open keep what they have until they
    /// close it; nobody opens it any more.
    ///
    /// Removes what was left of others as well, by whoever was killed at it: one caller at a time in all processes.
    package func remove() throws(RecordError) {
        try translated {
            let parent = URL(filePath: path).deletingLastPathComponent()
            if FileManager.default.fileExists(atPath: path) {
                // At once, so that nobody finds half of it.
                let doomed = parent.appending(path: Self.doomedPrefix + UUID().uuidString)
                try FileManager.default.moveItem(atPath: path, toPath: doomed.path)
                try FolderSync.run(parent.path)
            }
            guard FileManager.default.fileExists(atPath: parent.path) else { return }
            for name in try FileManager.default.contentsOfDirectory(atPath: parent.path)
            where name.hasPrefix(Self.doomedPrefix) {
                try FileManager.default.removeItem(at: parent.appending(path: name))
            }
        }
    }
}
