import Foundation
import LarderFiles

/// A key file that is complete and on disk before it has its name, so that no reader ever sees a part of one.
struct NewKeyFile {
    private let file: URL
    private let keys: MasterKeys
    private let temporary: String
    private let files: FileSystem

    init(_ file: URL, _ keys: MasterKeys, _ files: FileSystem) {
        self.files = files
        self.file = file
        self.keys = keys
        temporary = "\(file.path)\(Self.infix)\(UUID().uuidString.prefix(Self.suffixLength))"
    }

    private static let infix = ".new."
    private static let suffixLength = 8

    /// Removes what other processes left that were killed before their file had its name. The caller must have locked
    /// the file.
    static func removeLeftovers(besides file: URL, _ files: FileSystem) {
        let folder = file.deletingLastPathComponent()
        let prefix = file.lastPathComponent + infix
        for name in (try? files.names(in: folder.path)) ?? [] {
            guard name.hasPrefix(prefix) else { continue }
            let suffix = name.dropFirst(prefix.count)
            guard suffix.count == suffixLength, suffix.allSatisfy(\.isHexDigit) else { continue }
            _ = try? files.remove(folder.appending(path: name).path)
        }
    }

    /// Gives it its name unless that is taken; false then.
    func placeIfMissing() throws(KeyError) -> Bool {
        try write()
        defer { _ = try? files.remove(temporary) }
        do throws(FileError) { try files.link(temporary, file.path) } catch {
            // The process that has made it in the meantime may have removed this one as a leftover.
            if error.code == .exists || error.code == .missing && (try? files.exists(file.path)) == true {
                return false
            }
            throw failure(error, "made")
        }
        try synchronizeFolder()
        return true
    }

    /// Puts it in the place of the one that is there, which the caller has locked.
    func replace() throws(KeyError) {
        Self.removeLeftovers(besides: file, files)
        try write()
        do throws(FileError) { try files.rename(temporary, file.path) } catch {
            _ = try? files.remove(temporary)
            throw failure(error, "replaced")
        }
        try synchronizeFolder()
    }

    private func write() throws(KeyError) {
        let new: File
        do throws(FileError) { new = try files.open(temporary, [.writing, .new]) } catch {
            throw failure(error, "made")
        }
        do throws(FileError) {
            // The mode of a new file is less what the process's mask takes away, and must be this one.
            try new.setMode(FileSystem.ownersMode)
            try new.write(Array(KeyText(keys).text.utf8), at: 0)
            try new.synchronize()
        } catch {
            _ = try? files.remove(temporary)
            throw failure(error, "written")
        }
    }

    private func synchronizeFolder() throws(KeyError) {
        let folder = file.deletingLastPathComponent().path
        do throws(FileError) { try files.synchronizeFolder(folder) } catch {
            throw KeyError(.notWritable, "The folder \(folder) of the key file cannot be synchronized", cause: error)
        }
    }

    private func failure(_ error: FileError, _ what: String) -> KeyError {
        KeyError(
            .notWritable,
            "The key file \(file.path) cannot be \(what): \(error.reason); "
                + "give this user access to its folder, or free space", cause: error)
    }
}
