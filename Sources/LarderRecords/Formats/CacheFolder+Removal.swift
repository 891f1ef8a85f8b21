import LarderFiles
import LarderLMDB

extension CacheFolder {
    private static let doomedPrefix = ".removed-"

    /// The file that says that the cache is to be removed, unless its partition is still there.
    private var mark: String { path + "/forgotten" }

    /// Whether the cache is marked.
    package func isForgotten() throws(RecordError) -> Bool { try translated { try files.exists(mark) } }

    /// Whether there is a generation, of whatever format.
    package func hasGenerations() throws(RecordError) -> Bool { try translated { try !folder.numbers().isEmpty } }

    /// Marks the cache, durably; nothing where there is none.
    package func markForgotten() throws(RecordError) {
        try translated {
            guard try files.exists(path) else { return }
            _ = try files.open(mark, [.writing, .making])
            try files.synchronizeFolder(path)
        }
    }

    /// Takes the mark away.
    package func keepForgotten() throws(RecordError) {
        try translated {
            try files.remove(mark)
            try files.synchronizeFolder(path)
        }
    }

    /// Removes the cache for good, with all its generations. Programs that have it open keep what they have until they
    /// close it; no program opens it any more.
    ///
    /// Also removes what killed processes left of other removals. Only one caller at a time, in all processes.
    package func remove() throws(RecordError) {
        try translated {
            let parent = FileSystem.parent(of: path)
            if try files.exists(path) {
                // At once, so that no other process finds half of it.
                try files.rename(path, "\(parent)/\(Self.doomedPrefix)\(FileSystem.uniqueSuffix())")
                try files.synchronizeFolder(parent)
            }
            for name in try files.names(in: parent) where name.hasPrefix(Self.doomedPrefix) {
                try files.removeTree("\(parent)/\(name)")
            }
        }
    }
}
