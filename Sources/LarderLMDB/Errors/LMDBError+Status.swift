import CLMDB
package import LarderFiles

extension LMDBError {
    /// Turns LMDB's return code, or an `errno`, into an error. Nothing else does.
    ///
    /// - Parameters:
    ///   - doing: what was attempted, as a gerund: "opening the environment".
    ///   - path: the file or folder concerned.
    @inline(never)
    static func make(_ status: Int32, doing: String, path: String? = nil, page: UInt64? = nil) -> LMDBError {
        let (code, remedy) = meaning(of: status)
        let text = unsafe String(cString: mdb_strerror(status))
        return LMDBError(code, "\(doing): \(text). \(remedy)", path: path, page: page, status: status)
    }

    /// A call of the file system's that failed.
    package init(_ error: FileError) {
        guard error.code == .protected else {
            self = .make(error.status, doing: error.doing, path: error.path)
            return
        }
        self.init(
            .protected, "\(error.doing): the device was not unlocked since it was started. Unlock it, and try again.",
            path: error.path, status: error.status)
    }

    private static func meaning(of status: Int32) -> (Code, String) {
        switch status {
        case MDB_MAP_FULL:
            (.mapFull, "Remove or compact records, or open with a larger map.")
        case MDB_READERS_FULL:
            (.readersFull, "End read transactions sooner, or open with more readers.")
        case MDB_TXN_FULL, MDB_CURSOR_FULL, MDB_PAGE_FULL:
            (.transactionFull, "Split the work into several transactions.")
        case MDB_CORRUPTED, MDB_PAGE_NOTFOUND:
            (.damaged, "Close the environment and rebuild it; its contents can be fetched again.")
        case MDB_INVALID:
            (.foreign, "The file is not an LMDB file; check the folder, or remove the file.")
        case MDB_VERSION_MISMATCH:
            (.futureVersion, "Open it with the version that wrote it, or rebuild it.")
        case MDB_NOTFOUND:
            (.missing, "Nothing is stored there.")
        case MDB_KEYEXIST:
            (.appendOutOfOrder, "Append only keys greater than the last one, or put without appending.")
        case MDB_MAP_RESIZED:
            (.mapResized, "Another process opened it with a larger map; open again with that size.")
        case MDB_INCOMPATIBLE:
            (.tableMismatch, "The table was made with other settings; rebuild the environment.")
        case MDB_BAD_DBI:
            (.invalidArgument, "Use a table of this environment.")
        case MDB_DBS_FULL:
            (.invalidArgument, "Name every table when opening.")
        case MDB_BAD_VALSIZE:
            (.keyTooLong, "Keys hold 1 to 511 bytes, integer keys 8; store longer ones by digest.")
        case MDB_BAD_TXN:
            (.transactionUnusable, "An earlier failure ended this transaction; begin a new one.")
        case MDB_BAD_RSLOT, MDB_PANIC:
            (.environmentUnusable, "Close the environment and open it again.")
        default: meaning(of: FileError.Code(status))
        }
    }

    private static func meaning(of code: FileError.Code) -> (Code, String) {
        switch code {
        case .noSpace: (.diskFull, "Free space on the volume; what was committed before is intact.")
        case .outOfMemory: (.outOfMemory, "Free memory or address space, or open with a smaller map.")
        case .tooManyFiles: (.tooManyFiles, "Close files, or allow this process more open ones.")
        case .permissionDenied: (.permissionDenied, "Give this user access to the folder and its files.")
        case .protected: (.protected, "Unlock the device, and try again.")
        case .readOnlyVolume: (.readOnly, "Open read-only, or move the store to a writable volume.")
        case .missing: (.missing, "Check the path.")
        case .exists: (.invalidArgument, "Choose a place where there is none yet.")
        case .invalidArgument: (.invalidArgument, "Use tables and keys of this environment, and an open transaction.")
        case .otherVolume, .unsupported, .io: (.io, "Check the volume and its system log.")
        }
    }
}

/// Runs calls of the file system, whose failures are this layer's errors.
@inline(__always)
func translated<Result>(_ body: () throws(FileError) -> Result) throws(LMDBError) -> Result {
    do throws(FileError) { return try body() } catch { throw LMDBError(error) }
}
