import LarderFiles

/// The data file of an environment, as this layer sees it beside LMDB.
final class DataFile: Sendable {
    private let file: File
    let identity: OpenFiles.Identity

    var path: String { file.path }
    /// The file by pages.
    var pages: PageFile { PageFile(file) }

    /// Opens the file, and makes an empty one unless read-only or told that it must exist.
    init(folder: String, options: Environment.Options) throws(LMDBError) {
        var access: FileSystem.Access = .reading
        if !options.isReadOnly { access.insert(.writing) }
        if !options.isReadOnly, !options.mustExist { access.insert(.making) }
        let (file, status) = try translated { () throws(FileError) in
            let file = try options.files.open(folder + "/data.mdb", access)
            return (file, try file.status())
        }
        guard status.kind == .file else {
            throw LMDBError(.foreign, "This is not a regular file; check the folder.", path: file.path)
        }
        self.file = file
        identity = OpenFiles.Identity(device: status.device, inode: status.inode)
    }

    func status() throws(LMDBError) -> FileStatus { try translated { () throws(FileError) in try file.status() } }

    var hasNoRoom: Bool { file.hasNoRoom }

    func close() { file.close() }

    /// Writes the meta pages once more as they are. Only for the holder of LMDB's own lock.
    func rewriteMetaPages() throws(LMDBError) {
        let pageSize = try MetaPage.newest(in: pages).pageSize
        let bytes = try pages.prefix(at: 0, count: 2 * pageSize)
        try translated { () throws(FileError) in try file.write(bytes, at: 0) }
    }

    /// Makes the file at least that long. LMDB leaves it shorter than its last page where the last pages of a commit
    /// were freed before they were ever written. Sparse, so a failure means nothing yet.
    func extend(to size: Int64) {
        guard let status = try? file.status(), status.size < size else { return }
        try? file.truncate(to: size)
    }
}
