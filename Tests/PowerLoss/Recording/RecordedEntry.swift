package import Foundation

/// One thing that a program did to the files of a folder; see `recorder.c`.
package enum RecordedEntry: Sendable {
    case root(inode: UInt64)
    case create(path: String, inode: UInt64)
    /// - Parameter isSynced: Whether the descriptor makes each write durable.
    case write(inode: UInt64, offset: Int, bytes: Data, isSynced: Bool)
    case resize(inode: UInt64, size: Int)
    /// The file is at least that long from now on.
    case allocate(inode: UInt64, end: Int)
    case rename(from: String, to: String)
    case remove(path: String)
    case makeFolder(path: String, inode: UInt64)
    case link(from: String, to: String)
    /// `fsync`, or `fdatasync` where `dataOnly`.
    case sync(inode: UInt64, dataOnly: Bool)
    /// A sync that failed. What it was to write is in memory from then on and never on the disk, unless it is written
    /// once more: so does Linux.
    case failedSync(inode: UInt64)
    case mark(String)
    /// The file was mapped for writing: what is written that way is not recorded.
    case mapped(inode: UInt64)

    /// Whether what a power cut may leave, or what must be there after it, is different from here on.
    package var isTurningPoint: Bool {
        switch self {
        case .sync, .failedSync, .mark, .rename, .link: true
        case .write(_, _, _, let isSynced): isSynced
        default: false
        }
    }
}
