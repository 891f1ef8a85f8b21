package import LarderFiles

/// Reads every page in use of a data file, and says whether LMDB can map it without following a bad number.
///
/// LMDB has no page checksums and trusts what it maps, so a damaged file can end in a signal. The walk reads by
/// `pread` into its own memory and checks every number before it is used: any file and any bytes are an answer or an
/// error. It does not see a flipped bit inside a value.
///
/// No process may write meanwhile, unless the pages are those of a snapshot that stays open: no commit changes a page
/// that a snapshot sees. The walk costs about as much as reading the file once; memory: one bit for each
/// page.
package enum PageWalk {
    /// What a sound file holds.
    package struct Summary: Sendable, Hashable {
        /// Zero for a file of no bytes, which LMDB takes for a new environment.
        package var pageSize = 0
        package var fileSize: Int64 = 0
        package var lastPage: UInt64 = 0
        /// The newest transaction.
        package var transaction: UInt64 = 0
        /// How many entries each named table holds.
        package var entries: [String: UInt64] = [:]
        package var branchPages: UInt64 = 0
        package var leafPages: UInt64 = 0
        package var overflowPages: UInt64 = 0
        /// Pages that the next transactions may use.
        package var freePages: UInt64 = 0
        /// Pages that are neither in use nor free; none, unless a program leaked them.
        package var unusedPages: UInt64 = 0
    }

    /// Walks the data file at a path.
    package static func run(path: String, files: FileSystem = FileSystem()) throws(LMDBError) -> Summary {
        let (file, status) = try translated { () throws(FileError) in
            let file = try files.open(path)
            return (file, try file.status())
        }
        guard status.kind == .file else {
            throw LMDBError(.foreign, "This is not a regular file; check the path.", path: path)
        }
        return try run(PageFile(file), size: status.size)
    }

    static func run(_ file: PageFile, size: Int64) throws(LMDBError) -> Summary {
        guard size > 0 else { return Summary() }
        return try run(file, size: size, from: MetaPage.newest(in: file))
    }

    /// Walks the pages to which a meta page leads.
    static func run(_ file: PageFile, size: Int64, from meta: MetaPage) throws(LMDBError) -> Summary {
        let walk = TreeWalk(file: file, meta: meta, fileSize: size)
        return try walk.run()
    }
}
