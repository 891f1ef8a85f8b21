internal import Foundation
internal import LarderLMDB

extension CacheFolder {
    /// Removes the cache for good, with all its generations. Programs that have it open keep what they have until they
    /// close it; nobody opens it any more.
    package func remove() throws(RecordError) {
        try translated {
            guard FileManager.default.fileExists(atPath: path) else { return }
            // At once, so that nobody finds half of it.
            let parent = URL(filePath: path).deletingLastPathComponent()
            let doomed = parent.appending(path: ".removed-\(UUID().uuidString)")
            try FileManager.default.moveItem(atPath: path, toPath: doomed.path)
            try FileSystem.synchronize(parent.path)
            try FileManager.default.removeItem(at: doomed)
        }
    }
}
