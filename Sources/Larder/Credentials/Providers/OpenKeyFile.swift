import Foundation
import LarderFiles

/// A key file that is open; closed with the last reference to it, and then unlocked as well.
final class OpenKeyFile {
    enum Purpose { case reading, changing }

    private let file: LarderFiles.File
    private let status: FileStatus
    private let files: FileSystem

    private var path: String { file.path }

    /// Nil where there is no such file.
    ///
    /// - Throws: `.unreadable`, `.exposed`, `.foreign`.
    init?(_ file: URL, for purpose: Purpose, _ files: FileSystem) throws(KeyError) {
        self.files = files
        let path = file.path
        do throws(FileError) {
            self.file = try files.open(path)
            status = try self.file.status()
        } catch {
            if error.isNoEntry { return nil }
            throw Self.failure(error)
        }
        guard status.kind == .file else {
            throw KeyError(.foreign, "\(path) is no file; name another place for the keys")
        }
        guard status.mode & 0o077 == 0 else {
            let quoted = "'" + path.replacing("'", with: "'\\''") + "'"
            throw KeyError(
                .exposed,
                "Other users may read the key file \(path) (mode \(String(status.mode & 0o777, radix: 8))); "
                    + "run: chmod 600 \(quoted)")
        }
    }

    /// - Throws: `.unreadable`, `.damaged`, `.foreign`, `.newerFormat`.
    func keys() throws(KeyError) -> MasterKeys {
        guard status.size <= KeyText.longest else {
            throw KeyError(.foreign, "\(path) is too large for a key file; name another place for the keys")
        }
        let bytes: [UInt8]
        do throws(FileError) { bytes = try file.bytes(at: 0, count: KeyText.longest) } catch {
            throw Self.failure(error)
        }
        return try KeyText(parsing: bytes, of: "the key file \(path)").keys
    }

    /// Keeps other processes from changing the file, if none does.
    func tryLock() throws(KeyError) -> Bool {
        do throws(FileError) { return try file.tryLock(.exclusive) } catch { throw Self.failure(error) }
    }

    /// Whether the name is still this file's.
    func isStill(at file: URL) throws(KeyError) -> Bool {
        do throws(FileError) { return try files.status(of: file.path)?.isSameFile(as: status) ?? false } catch {
            throw Self.failure(error)
        }
    }

    private static func failure(_ error: FileError) -> KeyError {
        KeyError(
            .unreadable, "The key file \(error.path) cannot be used: \(error.reason); give this user access to it",
            cause: error)
    }
}
