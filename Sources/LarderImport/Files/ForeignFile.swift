import Foundation
import LarderFiles

/// A file of another program's, which is looked at and left as it is.
struct ForeignFile {
    let path: String
    let files: FileSystem

    /// The file that SQLite keeps beside it under a name with this end.
    func companion(_ suffix: String) -> ForeignFile { ForeignFile(path: path + suffix, files: files) }

    /// Nil where there is no such file.
    ///
    /// - Throws: `.foreign` where it is no regular file, `.unreadable`.
    func status() throws(ImportError) -> FileStatus? {
        let status: FileStatus?
        do throws(FileError) { status = try files.status(of: path) } catch { throw unreadable(error) }
        guard status?.kind ?? .file == .file else {
            throw ImportError(.foreign, "\(path) is no regular file; give the database itself")
        }
        return status
    }

    /// The first bytes; fewer where the file is shorter.
    func start(_ count: Int) throws(ImportError) -> [UInt8] {
        do throws(FileError) { return try files.open(path).bytes(at: 0, count: count) } catch {
            throw unreadable(error)
        }
    }

    /// The process that holds a lock for writing on some of the bytes, if one does. Closing the file gives up what
    /// locks this process itself has on it, as POSIX has it: the file must be no other library's of this process.
    func writer(from start: Int, count: Int) throws(ImportError) -> Int32? {
        do throws(FileError) {
            return try files.open(path).rangeWriter(from: Int64(start), count: Int64(count))
        } catch { throw unreadable(error) }
    }

    private func unreadable(_ error: FileError) -> ImportError { .unreadable(path, error) }
}

extension ImportError {
    static func unreadable(_ path: String, _ error: FileError) -> ImportError {
        let remedy = error.code == .permissionDenied ? "see who may read it" : "check the volume"
        return ImportError(.unreadable, "\(path) cannot be read: \(error.reason); \(remedy)")
    }
}
