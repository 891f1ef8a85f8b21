#if canImport(Darwin)
import Darwin
#elseif canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

/// What the system says of a file or folder.
package struct FileStatus: Sendable, Hashable {
    package enum Kind: Sendable, Hashable { case file, folder, link, other }

    package var kind: Kind
    package var device: UInt64
    package var inode: UInt64
    /// In bytes.
    package var size: Int64
    /// Bytes that it takes on the volume: fewer than its size where it has holes.
    package var allocated: Int64
    /// When the contents last changed, in nanoseconds since 1970.
    package var modified: Int64
    /// The rights of its owner, its group and all others: 0o600.
    package var mode: UInt16
    /// Whether it belongs to the user of this process.
    package var isOwn: Bool

    /// Whether both are of the same file, whatever it holds.
    package func isSameFile(as other: FileStatus) -> Bool { device == other.device && inode == other.inode }
}

extension FileStatus {
    init(_ answer: stat) {
        kind =
            switch answer.st_mode & S_IFMT {
            case S_IFREG: .file
            case S_IFDIR: .folder
            case S_IFLNK: .link
            default: .other
            }
        device = UInt64(truncatingIfNeeded: answer.st_dev)
        inode = UInt64(truncatingIfNeeded: answer.st_ino)
        size = Int64(answer.st_size)
        allocated = Int64(answer.st_blocks) * 512
        #if canImport(Darwin)
        let time = answer.st_mtimespec
        #else
        let time = answer.st_mtim
        #endif
        modified = Int64(time.tv_sec) &* 1_000_000_000 &+ Int64(time.tv_nsec)
        mode = UInt16(truncatingIfNeeded: answer.st_mode & 0o7777)
        isOwn = answer.st_uid == geteuid()
    }
}
