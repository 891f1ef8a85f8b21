#if canImport(Darwin)
internal import Darwin
#elseif canImport(Glibc)
internal import Glibc
#elseif canImport(Musl)
internal import Musl
#endif
internal import Foundation

/// A key file that is open; closed with the last reference to it, and then unlocked as well.
final class OpenKeyFile {
    enum Purpose { case reading, changing }

    private let descriptor: Int32
    private let path: String
    private let status: stat

    /// Nil where there is no such file.
    ///
    /// - Throws: `.unreadable`, `.exposed`, `.foreign`.
    init?(_ file: URL, for purpose: Purpose) throws(KeyError) {
        path = file.path
        var status = stat()
        // What is no file, a pipe in its place, must not keep the caller waiting.
        let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        guard descriptor >= 0 else {
            if errno == ENOENT { return nil }
            throw Self.failure(errno, "opened", path)
        }
        self.descriptor = descriptor
        let isKnown = fstat(descriptor, &status) == 0
        self.status = status
        guard isKnown else { throw Self.failure(errno, "looked at", path) }
        guard status.st_mode & S_IFMT == S_IFREG else {
            throw KeyError(.foreign, "\(path) is no file; name another place for the keys")
        }
        guard status.st_mode & 0o077 == 0 else {
            let quoted = "'" + path.replacing("'", with: "'\\''") + "'"
            throw KeyError(
                .exposed, "others may read the key file \(path) (mode \(String(status.st_mode & 0o777, radix: 8))); "
                    + "run: chmod 600 \(quoted)")
        }
    }

    deinit { close(descriptor) }

    /// - Throws: `.unreadable`, `.damaged`, `.foreign`, `.newerFormat`.
    func keys() throws(KeyError) -> MasterKeys {
        guard status.st_size <= KeyText.longest else {
            throw KeyError(.foreign, "\(path) is too large for a key file; name another place for the keys")
        }
        var bytes = [UInt8](repeating: 0, count: KeyText.longest)
        var count = 0
        while count < bytes.count {
            // Safe: no more is asked for than there is room after what was read.
            let read = bytes.withUnsafeMutableBytes {
                pread(descriptor, $0.baseAddress.map { $0 + count }, $0.count - count, off_t(count))
            }
            if read == 0 { break }
            if read > 0 { count += read } else if errno != EINTR { throw Self.failure(errno, "read", path) }
        }
        return try KeyText(parsing: Array(bytes[..<count]), of: "the key file \(path)").keys
    }

    /// Keeps other processes from changing the file, if none does.
    func tryLock() throws(KeyError) -> Bool {
        while flock(descriptor, LOCK_EX | LOCK_NB) != 0 {
            if errno == EWOULDBLOCK { return false }
            if errno != EINTR { throw Self.failure(errno, "locked", path) }
        }
        return true
    }

    /// Whether the name is still this file's.
    func isStill(at file: URL) throws(KeyError) -> Bool {
        var now = stat()
        guard stat(file.path, &now) == 0 else {
            if errno == ENOENT { return false }
            throw Self.failure(errno, "looked at", path)
        }
        return now.st_ino == status.st_ino && now.st_dev == status.st_dev
    }

    private static func failure(_ number: Int32, _ what: String, _ path: String) -> KeyError {
        KeyError(
            .unreadable, "the key file \(path) cannot be \(what): \(String(cString: strerror(number))); "
                + "give this user access to it")
    }
}
