#if canImport(Darwin)
import Darwin
#elseif canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

/// A call of the system that failed, and what to do about it.
package struct FileError: Error, Sendable, Hashable {
    /// Failures that have the same remedy.
    package enum Code: Sendable, Hashable {
        case noSpace, outOfMemory, permissionDenied, readOnlyVolume, missing, exists, otherVolume, invalidArgument
        case unsupported
        /// The device keeps its files locked: it was not unlocked since it was started.
        case protected
        /// The process, or the system, has as many files open as it may.
        case tooManyFiles
        /// Any other: the volume itself, in most cases.
        case io

        /// - Parameter status: An `errno`.
        package init(_ status: Int32) {
            switch status {
            case ENOSPC, EDQUOT, EFBIG: self = .noSpace
            case ENOMEM: self = .outOfMemory
            case EACCES, EPERM: self = .permissionDenied
            case EROFS: self = .readOnlyVolume
            case ENOENT, ENOTDIR: self = .missing
            case EEXIST, ENOTEMPTY: self = .exists
            case EXDEV: self = .otherVolume
            case EINVAL: self = .invalidArgument
            case EMFILE, ENFILE: self = .tooManyFiles
            case ENOTSUP, EOPNOTSUPP, ENOSYS: self = .unsupported
            default: self = .io
            }
        }
    }

    /// What was attempted, as a gerund: "opening a file".
    package let doing: String
    /// The file or folder concerned.
    package let path: String
    /// The system's `errno`.
    package let status: Int32
    /// Whether data protection is why.
    private let isProtected: Bool

    package init(_ status: Int32, doing: String, path: String, isProtected: Bool = false) {
        (self.status, self.doing, self.path, self.isProtected) = (status, doing, path, isProtected)
    }

    /// The same failure, of a call that this one was a part of.
    func during(_ doing: String, _ path: String) -> FileError {
        FileError(status, doing: doing, path: path, isProtected: isProtected)
    }

    package var code: Code { isProtected ? .protected : Code(status) }

    /// Whether the process or the system had no more of something, of which others may let go.
    package var isShortage: Bool { code == .tooManyFiles || code == .outOfMemory }

    /// The `errno` of a volume without room.
    package static let noSpace = ENOSPC
    /// The `errno` of a system without memory or address space.
    package static let noMemory = ENOMEM
    /// The `errno` of a file that something else uses.
    package static let busy = EBUSY

    /// Whether nothing has that name, while the folder is there.
    package var isNoEntry: Bool { status == ENOENT }

    /// What the system says of it: "No space left on device (errno 28)".
    package var reason: String { "\(String(cString: strerror(status))) (errno \(status))" }

    private var remedy: String {
        switch code {
        case .noSpace: "Free space on the volume."
        case .outOfMemory: "Free memory or address space."
        case .permissionDenied: "Give this user access to the folder and its files."
        case .protected: "Unlock the device, and try again."
        case .readOnlyVolume: "Open read-only, or move the store to a writable volume."
        case .missing, .invalidArgument: "Check the path."
        case .exists: "Choose a place where there is none yet."
        case .otherVolume: "Name a place on the same volume."
        case .tooManyFiles: "Close files, or allow this process more open ones."
        case .unsupported: "Choose a volume whose file system can do this."
        case .io: "Check the volume and its system log."
        }
    }
}

extension FileError: CustomStringConvertible {
    package var description: String { "\(doing): \(reason) [\(path)]. \(remedy)" }
}
