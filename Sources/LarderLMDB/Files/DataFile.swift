#if canImport(Darwin)
internal import Darwin
#elseif canImport(Glibc)
internal import Glibc
#elseif canImport(Musl)
internal import Musl
#endif

/// The data file of an environment, as this layer sees it beside LMDB.
final class DataFile: Sendable {
    let path: String
    let descriptor: Int32
    let identity: OpenFiles.Identity

    /// Opens the file, and makes an empty one unless read-only or told that it must exist.
    init(folder: String, isReadOnly: Bool, mustExist: Bool = false) throws(LMDBError) {
        let path = folder + "/data.mdb"
        let access = isReadOnly ? O_RDONLY : mustExist ? O_RDWR : O_RDWR | O_CREAT
        let descriptor = try FileSystem.open(path, access)
        do throws(LMDBError) {
            let status = try FileSystem.status(descriptor, path: path)
            guard status.isRegularFile else {
                throw LMDBError(.foreign, "This is not a regular file; check the folder.", path: path)
            }
            identity = OpenFiles.Identity(device: status.device, inode: status.inode)
        } catch {
            close(descriptor)
            throw error
        }
        self.path = path
        self.descriptor = descriptor
    }

    deinit { close(descriptor) }

    func status() throws(LMDBError) -> FileSystem.Status { try FileSystem.status(descriptor, path: path) }

    var hasNoRoom: Bool { FileSystem.hasNoRoom(descriptor) }

    /// Writes the meta pages once more as they are. Only for the holder of LMDB's own lock.
    func rewriteMetaPages() throws(LMDBError) {
        let file = PageFile(descriptor: descriptor, path: path)
        let pageSize = try MetaPage.newest(in: file).pageSize
        let bytes = try file.prefix(at: 0, count: 2 * pageSize)
        try FileSystem.overwrite(descriptor, bytes, at: 0, path: path)
    }

    /// Makes the file at least that long. LMDB leaves it shorter than its last page where the last pages of a commit
    /// were freed before they were ever written. Sparse, so a failure means nothing yet.
    func extend(to size: Int64) {
        guard let status = try? status(), status.size < size else { return }
        _ = ftruncate(descriptor, off_t(size))
    }
}
