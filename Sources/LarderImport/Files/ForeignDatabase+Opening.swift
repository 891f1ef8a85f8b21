import Foundation
import LarderFiles

extension ForeignDatabase {
    /// A file that belongs to a database.
    struct Companion {
        var suffix: String
        var file: ForeignFile
        var status: FileStatus
    }

    /// Whether a file begins as SQLite's databases do.
    static func isDatabase(_ file: ForeignFile) throws(ImportError) -> Bool {
        try file.start(16) == Array("SQLite format 3\u{0}".utf8)
    }

    /// A write-ahead log with something in it, and the journal of a transaction that was not finished. What is empty,
    /// or was struck out, does not count.
    static func companions(of file: ForeignFile) throws(ImportError) -> [Companion] {
        var found: [Companion] = []
        for suffix in ["-wal", "-journal"] {
            let companion = file.companion(suffix)
            guard let status = try companion.status(), status.size > 0 else { continue }
            if suffix == "-journal", try companion.start(1) == [0] { continue }
            found.append(Companion(suffix: suffix, file: companion, status: status))
        }
        return found
    }

    /// SQLite's locks: in the database file from 2^30 on (pending, reserved, and 510 bytes shared); with a write-ahead
    /// log in the shared memory's file, byte 120 for writing and 121 for checkpoints.
    static func refuseWriter(of file: ForeignFile) throws(ImportError) {
        var writer = try file.writer(from: 0x4000_0000, count: 512)
        let memory = file.companion("-shm")
        if writer == nil, try memory.status() != nil { writer = try memory.writer(from: 120, count: 2) }
        guard let writer else { return }
        throw ImportError(.busy, "Process \(writer) is writing to \(file.path); stop it and try again")
    }

    /// Copies a database and what belongs to it into a new folder, which only this user may enter.
    static func copied(
        _ file: ForeignFile, _ status: FileStatus, _ companions: [Companion]
    ) throws(ImportError) -> URL {
        let files = file.files
        let folder = FileManager.default.temporaryDirectory.appending(path: "larder-import-\(UUID().uuidString)")
        do throws(FileError) {
            try files.makeFolder(folder.path)
            let copy = folder.appending(path: "copy.db").path
            try files.copy(file.path, to: copy)
            for companion in companions { try files.copy(companion.file.path, to: copy + companion.suffix) }
        } catch {
            try? files.removeTree(folder.path)
            throw ImportError(
                .unreadable, "\(file.path) has a log beside it and cannot be copied to \(folder.path): \(error)")
        }
        var isSame = try file.status() == status
        for companion in companions where isSame { isSame = try companion.file.status() == companion.status }
        guard isSame else {
            try? files.removeTree(folder.path)
            throw ImportError(.busy, "\(file.path) was changed while it was copied; stop its program and try again")
        }
        return folder
    }

    /// The path as SQLite's URIs have it, of a file that no program changes.
    static func uri(_ path: String) -> String {
        var text = "file:"
        for byte in path.utf8 {
            switch byte {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "/"), UInt8(ascii: "-"), UInt8(ascii: "."),
                UInt8(ascii: "_"):
                text.unicodeScalars.append(Unicode.Scalar(byte))
            default: text += "%" + hexadecimal([byte])
            }
        }
        return text + "?immutable=1"
    }
}
