import Foundation
import GRDBSQLite
import LarderFiles

/// Another program's SQLite database, opened without leaving a trace: not a byte of it changes, and no file is made
/// beside it.
///
/// Where nothing but the database counts, it is read as one that never changes, which takes no lock and makes no file.
/// A check in the end finds out whether a program changed it meanwhile. Where a write-ahead log or a journal belongs to
/// it, both are copied, and the copy is read.
///
/// Not for files that this process has open otherwise: looking for locks gives up the process's own.
final class ForeignDatabase {
    struct Options {
        /// The greatest size of a database, log included, in bytes.
        var maximumSize: Int64 = 8 << 30
        /// The greatest size of one value in bytes.
        var maximumValueSize: Int64 = 64 << 20
        var files = FileSystem()
    }

    let file: ForeignFile
    let options: Options
    private let connection: OpaquePointer
    private let status: FileStatus
    /// Holds the copy; removed in the end.
    private let copy: URL?

    /// - Throws: `.missing`, `.foreign`, `.damaged`, `.busy`, `.tooLarge`, `.unreadable`.
    init(_ path: String, _ options: Options) throws(ImportError) {
        let file = ForeignFile(path: path, files: options.files)
        guard let status = try file.status() else {
            throw ImportError(.missing, "There is no file \(path); give the database's own path")
        }
        guard status.size > 0 else { throw ImportError(.foreign, "\(path) is empty: nothing was ever stored in it") }
        guard try Self.isDatabase(file) else {
            throw ImportError(.foreign, "\(path) is no SQLite database, or an encrypted one")
        }
        let companions = try Self.companions(of: file)
        let size = companions.reduce(status.size) { $0 + $1.status.size }
        guard size <= options.maximumSize else {
            throw ImportError(
                .tooLarge,
                "\(path) has \(size) bytes, and \(options.maximumSize) are read at most; let its program "
                    + "clear its cache, or begin with an empty one")
        }
        try Self.refuseWriter(of: file)
        let copy = companions.isEmpty ? nil : try Self.copied(file, status, companions)
        var connection: OpaquePointer?
        let code =
            if let copy {
                sqlite3_open_v2(
                    copy.appending(path: "copy.db").path, &connection, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, nil)
            } else {
                sqlite3_open_v2(
                    Self.uri(path), &connection, SQLITE_OPEN_READONLY | SQLITE_OPEN_URI | SQLITE_OPEN_NOMUTEX, nil)
            }
        guard code == SQLITE_OK, let connection else {
            sqlite3_close_v2(connection)
            if let copy { try? options.files.removeTree(copy.path) }
            throw ImportError(.unreadable, "\(path) cannot be opened: \(String(cString: sqlite3_errstr(code)))")
        }
        self.file = file
        self.options = options
        self.status = status
        self.copy = copy
        self.connection = connection
        // What its schema holds is not run.
        sqlite3_exec(connection, "PRAGMA trusted_schema = OFF; PRAGMA cell_size_check = ON", nil, nil, nil)
        var verdict = ""
        try forEachRow("PRAGMA quick_check(1)") { verdict = $0.text(0) ?? "" }
        guard verdict == "ok" else {
            guard !hasFailedReading else { throw failure(SQLITE_IOERR) }
            throw ImportError(.damaged, "\(path) is damaged: \(verdict.prefix(200)); nothing is taken from it")
        }
    }

    deinit {
        sqlite3_close_v2(connection)
        if let copy { try? options.files.removeTree(copy.path) }
    }

    /// The names of its tables; views are none.
    func tables() throws(ImportError) -> Set<String> {
        var names: Set<String> = []
        try forEachRow("SELECT name FROM sqlite_master WHERE type = 'table'") { row in
            if let name = row.text(0) { names.insert(name) }
        }
        return names
    }

    func count(of table: String) throws(ImportError) -> Int {
        var count = 0
        try forEachRow("SELECT count(*) FROM \(table)") { count = Int($0.integer(0) ?? 0) }
        return count
    }

    /// - Throws: `.busy` where the file was changed since it was opened.
    func requireUnchanged() throws(ImportError) {
        guard try file.status() == status else {
            throw ImportError(.busy, "\(file.path) was changed while it was read; stop its program and try again")
        }
    }

    /// Calls `body` for each row of a statement.
    func forEachRow(
        _ sql: String, _ arguments: [String] = [], _ body: (Row) throws(ImportError) -> Void
    ) throws(ImportError) {
        var statement: OpaquePointer?
        let code = sqlite3_prepare_v2(connection, sql, -1, &statement, nil)
        guard code == SQLITE_OK, let statement else { throw failure(code) }
        defer { sqlite3_finalize(statement) }
        for (index, argument) in arguments.enumerated() {
            let bound = argument.utf8.count
            // SQLITE_TRANSIENT: SQLite keeps a copy of the text.
            let transient = unsafeBitCast(-1, to: sqlite3_destructor_type.self)
            let code = sqlite3_bind_text(statement, Int32(index + 1), argument, Int32(clamping: bound), transient)
            guard code == SQLITE_OK else { throw failure(code) }
        }
        while true {
            switch sqlite3_step(statement) {
            case SQLITE_ROW: try body(Row(statement: statement))
            case SQLITE_DONE: return
            case let code: throw failure(code)
            }
        }
    }

    /// SQLite says of a page that the disk does not give that the file is malformed (`SQLITE_IOERR_CORRUPTFS`).
    private var hasFailedReading: Bool {
        var status: Int32 = 0
        // Safe: the call takes an Int32 by this code.
        sqlite3_file_control(connection, "main", SQLITE_FCNTL_LAST_ERRNO, &status)
        return [EIO, ENXIO].contains(status)
    }

    private func failure(_ code: Int32) -> ImportError {
        let message = "\(file.path): \(String(cString: sqlite3_errmsg(connection)))"
        switch code & 0xFF {
        case SQLITE_CORRUPT where hasFailedReading: return ImportError(.unreadable, "\(file.path): the disk failed")
        case SQLITE_CORRUPT: return ImportError(.damaged, "\(message); nothing is taken from it")
        case SQLITE_NOTADB: return ImportError(.foreign, message)
        case SQLITE_BUSY, SQLITE_LOCKED: return ImportError(.busy, "\(message); stop its program and try again")
        case SQLITE_ERROR: return ImportError(.foreign, "\(message); it is not of the library that was named")
        default: return ImportError(.unreadable, message)
        }
    }

    /// The row at which a statement stands; not to be kept past it.
    struct Row {
        let statement: OpaquePointer

        func integer(_ index: Int32) -> Int64? {
            guard sqlite3_column_type(statement, index) == SQLITE_INTEGER else { return nil }
            return sqlite3_column_int64(statement, index)
        }

        /// Nil for what is no text; text that is not UTF-8 has replacement characters.
        func text(_ index: Int32) -> String? {
            guard sqlite3_column_type(statement, index) == SQLITE_TEXT else { return nil }
            return bytes(index).map { String(decoding: $0, as: UTF8.self) }
        }

        /// Of a text or a blob. SQLite keeps them until the statement moves; they are copied here.
        func bytes(_ index: Int32) -> [UInt8]? {
            switch sqlite3_column_type(statement, index) {
            case SQLITE_TEXT, SQLITE_BLOB:
                let start = sqlite3_column_blob(statement, index)
                return Array(UnsafeRawBufferPointer(start: start, count: Int(sqlite3_column_bytes(statement, index))))
            default: return nil
            }
        }
    }
}
