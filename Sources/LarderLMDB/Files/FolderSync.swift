#if canImport(Darwin)
internal import Darwin
#elseif canImport(Glibc)
internal import Glibc
#elseif canImport(Musl)
internal import Musl
#endif

/// Makes the names in a folder survive power loss, by the one rule that all callers share.
///
/// A name that was made, moved or removed is on disk when its folder was synced, and not when the file was (POSIX,
/// `fsync`). Where the sync cannot be asked for, the names are as durable as the file system keeps them by itself, and
/// the caller goes on: the file system knows no sync of folders (`EINVAL`, `ENOTSUP`), is read-only (`EROFS`), or this
/// user may write in the folder and not open it (`EACCES`, `EPERM`).
///
/// Any other failure is thrown. The change of names was made all the same: every program sees it, and a power cut may
/// undo it. So a caller that throws it on must promise neither that the change is durable nor that nothing happened.
package enum FolderSync {
    package static func run(_ path: String) throws(LMDBError) {
        do throws(LMDBError) { try FileSystem.synchronize(path.isEmpty ? "." : path) } catch {
            guard cannotBeAsked.contains(error.status) else { throw error }
        }
    }

    private static let cannotBeAsked: Set<Int32> = [EINVAL, ENOTSUP, EROFS, EACCES, EPERM]
}
