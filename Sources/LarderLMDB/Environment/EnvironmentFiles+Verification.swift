import LarderFiles

extension EnvironmentFiles {
    /// Walks the file at opening, where it has to be looked at.
    ///
    /// - Returns: Whether it needed that: not empty, open in no other process, and without a stamp that fits.
    static func verify(
        _ data: DataFile, _ writer: WriterLock?, folder: String, options: Environment.Options, isFirst: Bool
    ) throws(LMDBError) -> Bool {
        let file = data.pages
        let status = try data.status()
        guard status.size > 0 else {
            guard !options.mustExist else {
                throw LMDBError(
                    .truncated, "The data file is empty. Rebuild the environment; its contents can be fetched again.",
                    path: data.path)
            }
            guard options.isReadOnly else { return false }
            throw LMDBError(.missing, "The data file is empty. Open it for writing once.", path: data.path)
        }
        let meta = try MetaPage.newest(in: file)
        guard (meta.lastPage + 1) * UInt64(meta.pageSize) <= UInt64(clamping: options.mapSize) else {
            let text = "The file has \(meta.lastPage + 1) pages of \(meta.pageSize) bytes, which is more than the map."
            throw LMDBError(.mapFull, "\(text) Open it with a larger map.", path: data.path)
        }
        // Where others have it open, the first of them verified it; it changes while they write.
        let stamp = CleanCloseStamp(status, transaction: meta.transaction)
        let isDue = isFirst && CleanCloseStamp(folder: folder, in: options.files) != stamp
        switch options.verification {
        case .unlessCleanlyClosed:
            if isDue { _ = try PageWalk.run(file, size: status.size) }
        case .always:
            try writer?.acquire(deadline: .now + options.lockTimeout)
            defer { writer?.release() }
            _ = try PageWalk.run(file, size: try data.status().size)
        }
        return isDue
    }
}
