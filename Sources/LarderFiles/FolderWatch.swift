#if os(Linux)
import CFiles

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

/// Tells of `FileSystem.touch` on files of a folder, by whatever process, and of processes that end while they have such a
/// file open for writing (`man 7 inotify`).
package final class FolderWatch: Sendable {
    /// Readable when something has happened. It is open until this object goes away.
    package let descriptor: Int32

    /// Nil where there is no such folder, or the system watches no more folders for this user.
    package init?(_ path: String) {
        descriptor = larder_watch_folder(path)
        if descriptor < 0 { return nil }
    }

    deinit { close(descriptor) }

    /// Reads all that there is, so that the descriptor is readable again after the next event.
    package func drain() {
        var bytes = [UInt8](repeating: 0, count: 8192)
        while true {
            let count = read(descriptor, &bytes, bytes.count)
            if count == 0 || count < 0 && errno != EINTR { return }
        }
    }
}
#endif
