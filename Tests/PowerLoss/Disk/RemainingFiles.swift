import Foundation

/// What a power cut has left, to be put where it can be opened.
struct RemainingFiles: Sendable {
    struct File: Sendable {
        /// From the root, with a slash before.
        var path: String
        var bytes: Data
        /// Which it is: names of one file have the same.
        var object: Int
        /// The number that it bore when it was recorded.
        var inode: UInt64
        /// When it was made, and when it was last synced with its times, in entries.
        var born: Int
        var lastSynced: Int
    }

    var folders: [String] = []
    var files: [File] = []

    /// Tells apart what is different.
    var digest: Int {
        var hasher = Hasher()
        hasher.combine(folders)
        for file in files {
            hasher.combine(file.path)
            file.bytes.withUnsafeBytes { hasher.combine(bytes: $0) }
        }
        return hasher.finalize()
    }

    func write(to root: URL) throws {
        for folder in folders {
            try FileManager.default.createDirectory(
                atPath: root.path + folder, withIntermediateDirectories: false, attributes: [.posixPermissions: 0o700])
        }
        var made: [Int: String] = [:]
        for file in files {
            let path = root.path + file.path
            if let other = made.updateValue(path, forKey: file.object) {
                try FileManager.default.linkItem(atPath: other, toPath: path)
            } else {
                try file.bytes.write(to: URL(filePath: path))
                try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: path)
            }
        }
        for file in files where file.path.hasSuffix("/data.mdb") { try restoreTimes(of: file, in: root) }
    }

    /// A file is another than the recorded one, and newer, so that no stamp of a clean close would fit it. On the disk
    /// after a power cut it may fit: a file's times reach it later than its bytes (`fdatasync` leaves them behind).
    private func restoreTimes(of file: File, in root: URL) throws {
        let folder = String(file.path.dropLast("/data.mdb".count))
        guard let stamp = files.first(where: { $0.path == "\(folder)/clean.stamp" }), stamp.born > file.lastSynced
        else { return }
        try adopt(stamp, for: file, in: root)
    }

    /// Lets a stamp speak of the file that was written for the recorded one; its layout is `CleanCloseStamp`'s.
    private func adopt(_ stamp: File, for file: File, in root: URL) throws {
        func number(_ offset: Int) -> UInt64 {
            Array(stamp.bytes)[offset..<offset + 8].reversed().reduce(0) { $0 << 8 | UInt64($1) }
        }
        guard stamp.bytes.count == 56, number(40) == file.inode else { return }
        var status = stat()
        guard stat(root.path + file.path, &status) == 0 else { throw CocoaError(.fileReadUnknown) }
        var bytes = Array(stamp.bytes[..<40])
        withUnsafeBytes(of: UInt64(status.st_ino).littleEndian) { bytes.append(contentsOf: $0) }
        let sum = bytes.reduce(0xcbf2_9ce4_8422_2325 as UInt64) { ($0 ^ UInt64($1)) &* 0x100_0000_01b3 }
        withUnsafeBytes(of: sum.littleEndian) { bytes.append(contentsOf: $0) }
        try Data(bytes).write(to: URL(filePath: root.path + stamp.path))
        let modified = Int(number(24))
        let time = timespec(tv_sec: modified / 1_000_000_000, tv_nsec: modified % 1_000_000_000)
        guard utimensat(AT_FDCWD, root.path + file.path, [time, time], 0) == 0 else {
            throw CocoaError(.fileWriteUnknown)
        }
    }
}
