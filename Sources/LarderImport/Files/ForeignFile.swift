import Foundation
import LarderFiles

/// A file of another program's, which is looked at and left as it is.
struct ForeignFile {
    let path: String

    /// Nil where there is no such file.
    ///
    /// - Throws: `.foreign` where it is no regular file, `.unreadable`.
    func status() throws(ImportError) -> FileStatus? {
        let status: FileStatus?
        do throws(FileError) { status = try FileSystem().status(of: path) } catch { throw unreadable(error) }
        guard status?.kind ?? .file == .file else {
            throw ImportError(.foreign, "\(path) is no regular file; give the database itself")
        }
        return status
    }

    /// The first bytes; fewer where the file is shorter.
    func start(_ count: Int) throws(ImportError) -> [UInt8] {
        do throws(FileError) { return try FileSystem().open(path).bytes(at: 0, count: count) } catch {
            throw unreadable(error)
        }
    }

    /// The process that holds a lock for writing on some of the bytes, if one does. Closing the file gives up what
    /// locks this process itself has on it, as POSIX has it: the file must be no other library's of this process.
    func writer(from start: Int, count: Int) throws(ImportError) -> Int32? {
        do throws(FileError) {
            return try FileSystem().open(path).rangeWriter(from: Int64(start), count: Int64(count))
        } catch { throw unreadable(error) }
    }

    private func unreadable(_ error: FileError) -> ImportError {
        ImportError(.unreadable, "\(path) cannot be read: \(error.reason); see who may read it")
    }
}
