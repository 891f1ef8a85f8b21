#if canImport(Darwin)
import Darwin
#elseif canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

/// The system's calls on files and folders, each with its failure as an error. No other target makes such calls, apart
/// from LMDB and SQLite, which have their own.
///
/// A test gives one that injects faults: each call is shown to it before it is made.
package struct FileSystem: Sendable {
    /// Decides what becomes of a call; nil leaves it to the system.
    package typealias Injection = @Sendable (FileCall) -> FileFault?

    private let injection: Injection?
    private let protectsFiles: Bool

    /// - Parameters:
    ///   - injection: For tests; nil for the system as it is.
    ///   - protectsFiles: Whether the system has data protection, which refuses to open files with `EPERM` until the
    ///     device is unlocked. What a user has no right to open is `EACCES` there.
    package init(injecting injection: Injection? = nil, protectingFiles protectsFiles: Bool = Self.systemProtectsFiles)
    {
        (self.injection, self.protectsFiles) = (injection, protectsFiles)
    }

    #if os(iOS) || os(tvOS) || os(visionOS)
    package static let systemProtectsFiles = true
    #else
    package static let systemProtectsFiles = false
    #endif

    // MARK: The seam

    /// Makes a call that answers zero or fails, again where a signal interrupted it.
    ///
    /// - Returns: Zero, or the `errno`.
    func call(_ kind: FileCall.Kind, _ path: String, _ body: () -> Int32) -> Int32 {
        switch fault(FileCall(kind, path)) {
        case .failure(let status): return status
        case .pretence: return 0
        case .shortened, nil: break
        }
        while body() != 0 {
            let status = errno
            if status != EINTR { return status }
        }
        return 0
    }

    /// Reads or writes once, again where a signal interrupted it.
    ///
    /// - Returns: How many bytes, or the `errno`.
    func transfer(_ kind: FileCall.Kind, _ path: String, _ count: Int, _ body: (Int) -> Int) -> (
        count: Int, status: Int32
    ) {
        var count = count
        switch fault(FileCall(kind, path, count: count)) {
        case .failure(let status): return (0, status)
        case .pretence: return (count, 0)
        case .shortened(let shorter): count = min(count, max(0, shorter))
        case nil: break
        }
        while true {
            let done = body(count)
            if done >= 0 { return (done, 0) }
            let status = errno
            if status != EINTR { return (0, status) }
        }
    }

    private func fault(_ call: @autoclosure () -> FileCall) -> FileFault? {
        guard let injection else { return nil }
        return injection(call())
    }

    // MARK: Files

    /// How a file is opened.
    package struct Access: OptionSet, Sendable {
        package let rawValue: Int
        package init(rawValue: Int) { self.rawValue = rawValue }

        package static let writing = Access(rawValue: 1)
        /// For writing as well as reading. Without this, writing is all.
        package static let reading = Access(rawValue: 2)
        /// Makes the file where there is none.
        package static let making = Access(rawValue: 4)
        /// Fails with `.exists` where there is one.
        package static let new = Access(rawValue: 8)
        package static let emptied = Access(rawValue: 16)
        /// Fails where the last part of the path is a symbolic link.
        package static let unlinked = Access(rawValue: 32)
        /// Each write returns when its bytes are on the disk. For large files beside others that are synced: file
        /// systems let a sync of any file wait for bytes of all that the system has gathered.
        package static let synchronous = Access(rawValue: 64)

        var flags: Int32 {
            var flags = contains(.writing) ? contains(.reading) ? O_RDWR : O_WRONLY : O_RDONLY
            if contains(.making) || contains(.new) { flags |= O_CREAT }
            if contains(.new) { flags |= O_EXCL }
            if contains(.emptied) { flags |= O_TRUNC }
            if contains(.unlinked) { flags |= O_NOFOLLOW }
            if contains(.synchronous) { flags |= O_DSYNC }
            // What is no file, a pipe in its place, must not keep the caller waiting.
            return flags | O_CLOEXEC | O_NONBLOCK
        }
    }

    /// What a store makes is its user's alone, from the moment when it has a name: no mode is narrowed afterwards.
    package static let ownersMode: UInt16 = 0o600

    /// Opens a file, which is closed with the last reference to the result.
    ///
    /// - Parameter mode: Of a file that is made, less what the process's mask takes from others.
    package func open(
        _ path: String, _ access: Access = .reading, mode: UInt16 = FileSystem.ownersMode
    ) throws(FileError) -> File {
        var descriptor: Int32 = -1
        let status = call(.open, path) {
            descriptor = systemOpen(path, access.flags, mode_t(mode))
            return descriptor < 0 ? -1 : 0
        }
        guard status == 0, descriptor >= 0 else {
            throw unopened(status == 0 ? EIO : status, "Opening a file", path)
        }
        let file = File(descriptor, path, self)
        if access.flags & O_CREAT != 0, mode == Self.ownersMode { file.restoreOwnersRights() }
        return file
    }

    /// Why something could not be opened.
    func unopened(_ status: Int32, _ doing: String, _ path: String) -> FileError {
        FileError(status, doing: doing, path: path, isProtected: protectsFiles && status == EPERM)
    }

    /// Whether the device keeps a file locked. Opens the file, and closes it: no lock of this process may be on it that
    /// is still needed.
    package func isProtected(_ path: String) -> Bool {
        guard protectsFiles else { return false }
        do throws(FileError) {
            _ = try open(path)
            return false
        } catch { return error.code == .protected }
    }

    /// What is at a path; nil where there is nothing.
    ///
    /// - Parameter followsLinks: Whether a symbolic link stands for what it leads to.
    package func status(of path: String, followingLinks followsLinks: Bool = true) throws(FileError) -> FileStatus? {
        var answer = stat()
        switch call(.status, path, { followsLinks ? stat(path, &answer) : lstat(path, &answer) }) {
        case 0: return FileStatus(answer)
        case ENOENT, ENOTDIR: return nil
        case let status: throw FileError(status, doing: "Looking at a file", path: path)
        }
    }

    /// Whether this user may write to a file, or make files in a folder.
    package func isWritable(_ path: String) -> Bool { call(.status, path) { access(path, W_OK) } == 0 }

    /// Whether this user may run what is at a path.
    package func isExecutable(_ path: String) -> Bool { call(.status, path) { access(path, X_OK) } == 0 }

    /// Makes an empty file where there is none.
    ///
    /// It is made under another name: closing a file gives up the locks that this process has on it by other
    /// descriptors (https://www.sqlite.org/howtocorrupt.html, section 2.2), and a file that has its name may be another
    /// thread's database by then.
    package func makeEmptyFile(_ path: String) throws(FileError) {
        let (folder, name) = (Self.parent(of: path), path.split(separator: "/").last ?? "")
        let temporary = "\(folder)/.\(name).new"
        // One that is there is what a killed process left, or another process's that makes the file as well.
        _ = try open(temporary, [.reading, .writing, .making])
        defer { _ = try? remove(temporary) }
        do throws(FileError) { try link(temporary, path) } catch {
            switch error.code {
            case .exists: return
            case .missing where (try? status(of: path)) ?? nil != nil: return
            case .permissionDenied, .unsupported: break
            case .io where error.status == EMLINK: break
            default: throw error.during("Making a file", path)
            }
            // This file system knows no links.
            _ = try open(path, [.reading, .writing, .making])
        }
    }

    /// Replaces a small file, whole or not at all, and durably but for its name: see `synchronizeFolder`.
    package func replace(_ path: String, with bytes: [UInt8]) throws(FileError) {
        let temporary = path + ".new"
        do throws(FileError) {
            let file = try open(temporary, [.writing, .making, .emptied])
            try file.write(bytes, at: 0)
            try file.synchronize()
            try rename(temporary, path)
        } catch {
            _ = try? remove(temporary)
            throw error.during("Writing a file", path)
        }
    }

    /// Writes zeros to the end of a file, which is made if need be, until it has that many bytes.
    package func fill(_ path: String, to size: Int) throws(FileError) {
        let file = try open(path, [.reading, .writing, .making])
        let start = Int(clamping: try file.status().size)
        guard start < size else { return }
        do throws(FileError) { try file.write([UInt8](repeating: 0, count: size - start), at: Int64(start)) } catch {
            // A file that is filled in part would be taken for a whole one.
            try? file.truncate(to: Int64(start))
            throw error
        }
    }

    /// Makes a file's contents survive power loss. For the names in a folder there is `synchronizeFolder`.
    package func synchronize(_ path: String) throws(FileError) { try open(path).synchronize() }

    /// Gives a file another name, in the place of a file that has it.
    package func rename(_ path: String, _ new: String) throws(FileError) {
        let status = call(.rename, path) { systemRename(path, new) }
        guard status == 0 else { throw FileError(status, doing: "Renaming a file", path: new) }
    }

    /// Gives a file a second name; `.exists` where that is taken.
    package func link(_ path: String, _ new: String) throws(FileError) {
        let status = call(.link, path) { systemLink(path, new) }
        guard status == 0 else { throw FileError(status, doing: "Linking a file", path: new) }
    }

    /// Removes a file; false where there was none.
    @discardableResult
    package func remove(_ path: String) throws(FileError) -> Bool {
        switch call(.remove, path, { unlink(path) }) {
        case 0: return true
        case ENOENT, ENOTDIR: return false
        case let status: throw FileError(status, doing: "Removing a file", path: path)
        }
    }

    /// Changes the rights on a file or folder.
    package func setMode(_ mode: UInt16, of path: String) throws(FileError) {
        let status = call(.setMode, path) { chmod(path, mode_t(mode)) }
        guard status == 0 else { throw FileError(status, doing: "Changing a file's mode", path: path) }
    }

    // MARK: Files that other code has open

    /// A second descriptor of an open file, for a library that closes the one that it is given. No program that this
    /// process starts inherits it.
    package func duplicate(_ descriptor: Int32) throws(FileError) -> Int32 {
        let copy = fcntl(descriptor, F_DUPFD_CLOEXEC, 0)
        guard copy >= 0 else { throw FileError(errno, doing: "Opening a file once more", path: "") }
        return copy
    }

    package func status(ofDescriptor descriptor: Int32) throws(FileError) -> FileStatus {
        var answer = stat()
        guard fstat(descriptor, &answer) == 0 else { throw FileError(errno, doing: "Looking at a file", path: "") }
        return FileStatus(answer)
    }

    /// Bytes that the volume of a file or folder has free for this user.
    package func freeSpace(at path: String) throws(FileError) -> Int64 {
        var volume = statvfs()
        let status = call(.freeSpace, path) { statvfs(path, &volume) }
        guard status == 0 else { throw FileError(status, doing: "Asking for free space", path: path) }
        return volume.freeBytes
    }
}

extension statvfs {
    var freeBytes: Int64 {
        let (bytes, isLarge) = Int64(clamping: f_bavail).multipliedReportingOverflow(by: Int64(clamping: f_frsize))
        return isLarge ? .max : bytes
    }
}

// Functions whose names methods have.
private func systemOpen(_ path: String, _ flags: Int32, _ mode: mode_t) -> Int32 { open(path, flags, mode) }
private func systemRename(_ path: String, _ new: String) -> Int32 { rename(path, new) }
private func systemLink(_ path: String, _ new: String) -> Int32 { link(path, new) }
