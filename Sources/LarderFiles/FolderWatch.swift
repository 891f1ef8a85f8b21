#if canImport(Darwin)
import Darwin
#elseif canImport(Glibc)
import CFiles
import Glibc
#elseif canImport(Musl)
import CFiles
import Musl
#endif

/// Tells of each `FolderNotice` in a folder, by whatever process. On Linux it also tells when a process has closed the
/// folder, or a file in it that it could write to, as the kernel does for one that was killed (`man 7 inotify`).
package final class FolderWatch: Sendable {
    /// For a source of Dispatch: of what can be read on Linux, of a file system's object on Apple's systems. It is open
    /// until this object goes away.
    package let descriptor: Int32

    /// Nil where there is no such folder, or the system watches no more folders for this user.
    package init?(_ path: String) {
        #if canImport(Darwin)
        descriptor = open(path, O_EVTONLY | O_CLOEXEC)
        #else
        descriptor = larder_watch_folder(path)
        #endif
        if descriptor < 0 { return nil }
    }

    deinit { close(descriptor) }

    /// Takes what has happened, so that the source tells of the next event.
    ///
    /// - Returns: False where processes have only read in the folder.
    @discardableResult
    package func take() -> Bool {
        #if canImport(Darwin)
        true
        #else
        larder_take_folder_events(descriptor) != 0
        #endif
    }
}

/// Taken before a change is made in a folder, and told after it: what the processes that watch the folder are told of.
///
/// On Linux it keeps the folder open, so that the kernel tells of it also where this process is killed in between. A
/// process that has no descriptor left for it tells of nothing.
package struct FolderNotice: ~Copyable {
    #if canImport(Darwin)
    private let path: String?
    #else
    private let descriptor: Int32
    #endif

    /// - Parameter path: Nil where no process is to be told.
    package init(_ path: String?) {
        #if canImport(Darwin)
        self.path = path
        #else
        descriptor = path.map { open($0, O_RDONLY | O_DIRECTORY | O_CLOEXEC) } ?? -1
        #endif
    }

    package consuming func tell() {}

    deinit {
        #if canImport(Darwin)
        if let path { _ = utimensat(AT_FDCWD, path, nil, 0) }
        #else
        if descriptor >= 0 { close(descriptor) }
        #endif
    }
}
