/// A file that the kernel locks for a living process: a dead holder's lock is free at once, a stopped holder's is not.
package final class LockFile: Sendable {
    package let isWritable: Bool
    private let file: File

    package var path: String { file.path }

    /// Opens the file, and makes it where that is permitted.
    ///
    /// - Parameter mustWrite: where false, a file that cannot be made or written is opened for reading only.
    package init(path: String, mustWrite: Bool, in files: FileSystem = FileSystem()) throws(FileError) {
        do throws(FileError) {
            file = try files.open(path, [.reading, .writing, .making])
            isWritable = true
        } catch {
            guard !mustWrite, [.permissionDenied, .readOnlyVolume].contains(error.code) else { throw error }
            file = try files.open(path)
            isWritable = false
        }
    }

    /// Opens the file for writing, and makes it with the folder in which it is.
    package init(making path: String, in files: FileSystem = FileSystem()) throws(FileError) {
        var opened: File?
        do throws(FileError) { opened = try files.open(path, [.reading, .writing, .making]) } catch {
            guard error.isNoEntry else { throw error }
            try files.makeFolder(FileSystem.parent(of: path))
        }
        file = if let opened { opened } else { try files.open(path, [.reading, .writing, .making]) }
        isWritable = true
    }

    /// Opens what is there, which may be a folder, for reading only.
    package init(existing path: String, in files: FileSystem = FileSystem()) throws(FileError) {
        file = try files.open(path)
        isWritable = false
    }

    /// Takes the lock if it is free; replaces the kind that is held.
    package func tryLock(_ kind: File.LockKind) throws(FileError) -> Bool { try file.tryLock(kind) }

    /// Takes the lock as soon as it is free; false where it was not before the deadline.
    package func lock(_ kind: File.LockKind, until deadline: SuspendingClock.Instant) throws(FileError) -> Bool {
        let locked: Void? = try poll(until: deadline) { () throws(FileError) in try tryLock(kind) ? () : nil }
        return locked != nil
    }

    package func unlock() { file.unlock() }

    /// Gives the lock and the file back, for good.
    package func close() { file.close() }

    /// The first bytes of the file, as text.
    package func note() -> String {
        guard let bytes = try? file.bytes(at: 0, count: Self.noteSize) else { return "" }
        return String(String(decoding: bytes, as: UTF8.self).prefix { $0 != "\n" })
    }

    /// Replaces the note, which is for people: failing to write it is no failure.
    package func setNote(_ note: String) {
        var bytes = Array(note.utf8.prefix(Self.noteSize - 1))
        bytes += repeatElement(UInt8(ascii: "\n"), count: Self.noteSize - bytes.count)
        try? file.write(bytes, at: 0)
    }

    private static let noteSize = 160
}
