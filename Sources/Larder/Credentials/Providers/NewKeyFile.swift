#if canImport(Darwin)
internal import Darwin
#elseif canImport(Glibc)
internal import Glibc
#elseif canImport(Musl)
internal import Musl
#endif
internal import Foundation
internal import LarderLMDB

/// A key file that is complete and on disk before it has its name, so that nobody ever sees a part of one.
struct NewKeyFile {
    private let file: URL
    private let keys: MasterKeys
    private let temporary: String

    init(_ file: URL, _ keys: MasterKeys) {
        self.file = file
        self.keys = keys
        temporary = "\(file.path)\(Self.infix)\(UUID().uuidString.prefix(Self.suffixLength))"
    }

    private static let infix = ".new."
    private static let suffixLength = 8

    /// Removes what was left by others who were killed before it had its name. Only for whoever has locked the file.
    static func removeLeftovers(besides file: URL) {
        let folder = file.deletingLastPathComponent()
        let prefix = file.lastPathComponent + infix
        for name in (try? FileManager.default.contentsOfDirectory(atPath: folder.path)) ?? [] {
            guard name.hasPrefix(prefix) else { continue }
            let suffix = name.dropFirst(prefix.count)
            guard suffix.count == suffixLength, suffix.allSatisfy(\.isHexDigit) else { continue }
            unlink(folder.appending(path: name).path)
        }
    }

    /// Gives it its name unless that is taken; false then.
    func placeIfMissing() throws(KeyError) -> Bool {
        try write()
        defer { unlink(temporary) }
        guard link(temporary, file.path) == 0 else {
            let number = errno
            // Whoever has made it in the meantime may have removed this one as a leftover.
            if number == EEXIST || number == ENOENT && access(file.path, F_OK) == 0 { return false }
            throw failure(number, "made")
        }
        try synchronizeFolder()
        return true
    }

    /// Puts it in the place of the one that is there, which the caller has locked.
    func replace() throws(KeyError) {
        Self.removeLeftovers(besides: file)
        try write()
        guard rename(temporary, file.path) == 0 else {
            let number = errno
            unlink(temporary)
            throw failure(number, "replaced")
        }
        try synchronizeFolder()
    }

    private func write() throws(KeyError) {
        let descriptor = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { throw failure(errno, "made") }
        let bytes = Array(KeyText(keys).text.utf8)
        var number: Int32 = 0
        // The mode of a new file is less what the process's mask takes away, and must be this one.
        if fchmod(descriptor, 0o600) != 0 { number = errno }
        if number == 0 {
            let written = bytes.withUnsafeBytes { pwrite(descriptor, $0.baseAddress, $0.count, 0) }
            if written != bytes.count { number = written < 0 ? errno : ENOSPC }
        }
        if number == 0, fsync(descriptor) != 0 { number = errno }
        close(descriptor)
        guard number == 0 else {
            unlink(temporary)
            throw failure(number, "written")
        }
    }

    private func synchronizeFolder() throws(KeyError) {
        let folder = file.deletingLastPathComponent().path
        do throws(LMDBError) { try FolderSync.run(folder) } catch {
            throw KeyError(.notWritable, "the folder \(folder) of the key file cannot be synchronized", cause: error)
        }
    }

    private func failure(_ number: Int32, _ what: String) -> KeyError {
        KeyError(
            .notWritable, "the key file \(file.path) cannot be \(what): \(String(cString: strerror(number))); "
                + "give this user access to its folder, or free space")
    }
}
