public import Foundation
package import LarderFiles

/// Keys in a file that only its owner may read.
///
/// The default place is beside the store's folder and never in it: a copy of the folder tells nothing of credentials.
public struct FileKeyProvider: KeyProvider {
    /// Where the keys are.
    package let file: URL
    /// Tests put their faults in its place.
    package var files = FileSystem()

    /// - Parameter file: Made, with its folder, when something is to be sealed first.
    public init(file: URL) { self.file = file }

    /// - Parameter folder: The store's; `app` has its keys in `app.key`.
    package init(besides folder: URL) { self.init(file: Self.defaultFile(of: folder)) }

    init(besides folder: URL, _ files: FileSystem) {
        self.init(besides: folder)
        self.files = files
    }

    /// Where the keys of a store are unless something else is said: beside its folder.
    package static func defaultFile(of folder: URL) -> URL {
        let folder = folder.standardizedFileURL
        return folder.deletingLastPathComponent().appending(path: folder.lastPathComponent + ".key")
    }

    /// The file's path.
    public var description: String { "the key file \(file.path)" }

    /// Reads the file.
    ///
    /// - Throws: `.missing`, `.exposed`, `.unreadable`, `.damaged`, `.foreign`, `.newerFormat`.
    public func keys(within time: Duration) async throws(KeyError) -> MasterKeys {
        guard let open = try OpenKeyFile(file, for: .reading, files) else {
            throw KeyError(
                .missing, "There is no key file \(file.path); put it back, or sign in again, which makes another")
        }
        return try open.keys()
    }

    /// Makes the file if there is none. Of two that do so at once, one makes it and the other reads it.
    ///
    /// - Throws: `.notWritable`, and as `keys`.
    public func makeKey(within time: Duration) async throws(KeyError) -> MasterKeys {
        let deadline = SuspendingClock.now + time
        if let open = try OpenKeyFile(file, for: .reading, files) { return try open.keys() }
        let folder = file.deletingLastPathComponent()
        do throws(FileError) { try files.makeFolder(folder.path) } catch {
            throw KeyError(.notWritable, "The folder of \(self) cannot be made", cause: error)
        }
        let new = MasterKeys(current: MasterKey())
        if try NewKeyFile(file, new, files).placeIfMissing() {
            if let open = try? OpenKeyFile(file, for: .changing, files), (try? open.tryLock()) == true,
                (try? open.isStill(at: file)) == true
            {
                NewKeyFile.removeLeftovers(besides: file, files)
            }
            return new
        }
        return try await keys(within: .until(deadline))
    }

    /// Puts a new key first in the file.
    ///
    /// - Throws: `.notWritable`, `.timedOut` while another process changes the file, and as `keys`.
    public func addKey(within time: Duration) async throws(KeyError) -> MasterKeys {
        let deadline = SuspendingClock.now + time
        return try await change(deadline) { $0.adding() }
    }

    /// Takes older keys out of the file.
    ///
    /// - Throws: As `addKey`.
    public func dropKeys(_ ids: Set<String>, within time: Duration) async throws(KeyError) {
        let deadline = SuspendingClock.now + time
        _ = try await change(deadline) { $0.dropping(ids) }
    }

    private func change(
        _ deadline: SuspendingClock.Instant, _ body: (MasterKeys) -> MasterKeys
    ) async throws(KeyError) -> MasterKeys {
        while true {
            guard let open = try OpenKeyFile(file, for: .changing, files) else {
                throw KeyError(.missing, "There is no key file \(file.path); there is nothing to change")
            }
            if try open.tryLock() {
                // Another may have put a new file in its place before the lock was taken.
                guard try open.isStill(at: file) else { continue }
                let new = body(try open.keys())
                try NewKeyFile(file, new, files).replace()
                return new
            }
            guard .now < deadline else {
                throw KeyError(.timedOut, "Another process has kept \(self) locked past the deadline")
            }
            do { try await Task.sleep(for: .milliseconds(5)) } catch {
                throw KeyError(.cancelled, "The task was cancelled")
            }
        }
    }
}

extension KeyProvider {
    /// Refuses a key file in the store's folder, before a key is made in it: a copy of the folder would have the key as
    /// well.
    ///
    /// - Throws: `.exposed`.
    func requireOutside(of folder: URL) throws(KeyError) {
        guard let provider = self as? FileKeyProvider else { return }
        // A path is resolved only where it exists, and the file may still have to be made.
        var place = provider.file.standardizedFileURL
        while place.pathComponents.count > 1, !FileManager.default.fileExists(atPath: place.path) {
            place.deleteLastPathComponent()
        }
        let file = place.resolvingSymlinksInPath().pathComponents
        let folder = folder.standardizedFileURL.resolvingSymlinksInPath()
        guard file.starts(with: folder.pathComponents) else { return }
        throw KeyError(
            .exposed,
            "\(provider) lies in the store's folder, and every copy of the store would have it; "
                + "name a place outside, such as \(FileKeyProvider.defaultFile(of: folder).path)")
    }
}
