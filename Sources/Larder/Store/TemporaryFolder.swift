package import Foundation
package import LarderFiles

/// A folder that goes when its last user does. One that a killed process left goes when the next is made.
package final class TemporaryFolder: Sendable {
    package let url: URL
    private let lock: LockFile
    private let files: FileSystem

    private static let prefix = "larder-temporary-"
    private static let lockSuffix = ".lock"

    /// - Parameter parent: Where the folder is made.
    package init(in parent: URL = TemporaryFolder.parent, _ files: FileSystem = FileSystem()) throws(LarderError) {
        Self.removeLeftovers(in: parent, files)
        self.files = files
        do throws(FileError) {
            while true {
                let url = parent.appending(path: Self.prefix + UUID().uuidString)
                // Locked before the folder is there: one that no process holds is a leftover.
                let lock = try LockFile(making: url.path + Self.lockSuffix, in: files)
                guard try lock.tryLock(.exclusive) else { continue }
                try files.makeFolder(url.path)
                (self.url, self.lock) = (url, lock)
                return
            }
        } catch {
            throw LarderError(
                .recordsNotWritable, "No folder for a temporary store can be made in \(parent.path): \(error)",
                cause: error)
        }
    }

    deinit { remove() }

    /// Removes the folder and what is in it, once.
    package func remove() {
        Self.remove(url.path, files)
        lock.close()
    }

    private static func remove(_ path: String, _ files: FileSystem) {
        // The next temporary store tries again.
        guard (try? files.removeTree(path)) != nil else { return }
        _ = try? files.remove(path + lockSuffix)
    }

    private static func removeLeftovers(in parent: URL, _ files: FileSystem) {
        let names = (try? files.names(in: parent.path)) ?? []
        for name in names where name.hasPrefix(prefix) && name.hasSuffix(lockSuffix) {
            let path = parent.appending(path: name).path
            guard let lock = try? LockFile(path: path, mustWrite: true, in: files) else { continue }
            defer { lock.close() }
            guard (try? lock.tryLock(.exclusive)) == true else { continue }
            remove(String(path.dropLast(lockSuffix.count)), files)
        }
    }

    /// Linux keeps what is in `/dev/shm` in memory.
    package static var parent: URL {
        let memory = "/dev/shm"
        guard FileManager.default.isWritableFile(atPath: memory) else { return FileManager.default.temporaryDirectory }
        return URL(filePath: memory, directoryHint: .isDirectory)
    }
}

extension Store {
    /// Opens a new and empty store for a preview or a test, in memory where the system has a folder for that.
    ///
    /// ```swift
    /// #Preview {
    ///     RecipeList(app: try! Store.temporary(schemaText: [schema]).partition())
    /// }
    /// ```
    ///
    /// `close` removes its files; otherwise they go with the last reference to the store and its partitions. What a
    /// killed process leaves is removed when the next temporary store is made.
    ///
    /// - Throws: `.schema`, with line and column; `records.notWritable` where no folder can be made.
    public static func temporary(
        schemaText texts: [String], options: Options = Options(), file: String = #fileID, line: Int = #line
    ) throws(LarderError) -> Store {
        var options = options
        let folder = try TemporaryFolder(options.files)
        options.temporaryFolder = folder
        // One level down, so that the keys, which are beside a store's folder, go with it.
        return try open(
            at: folder.url.appending(path: "store"), schemaText: texts, options: options, file: file, line: line)
    }
}
