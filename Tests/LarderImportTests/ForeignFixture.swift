import Foundation
import GRDBSQLite
import LarderFiles
import Synchronization
import Testing

/// A database as another library makes it, by its own statements.
final class ForeignFixture {
    enum Tables: String {
        /// Apollo to 1.x and AppSync: by SQLite.swift.
        case records = """
            CREATE TABLE "records" ("_id" INTEGER PRIMARY KEY AUTOINCREMENT NOT NULL, "key" TEXT NOT NULL UNIQUE, \
            "record" TEXT NOT NULL);
            CREATE UNIQUE INDEX "index_records_on_key" ON "records" ("key");
            """
        /// Apollo from 2.x on.
        case recordsOfApollo2 = """
            CREATE TABLE IF NOT EXISTS "records" (
              "_id"  INTEGER,
              "key"  TEXT UNIQUE,
              "record"  TEXT,
              PRIMARY KEY("_id" AUTOINCREMENT)
            );
            """
        case mutations = """
            CREATE TABLE "mutation_records" ("_id" INTEGER PRIMARY KEY AUTOINCREMENT NOT NULL, \
            "recordIdentifier" TEXT NOT NULL UNIQUE, "data" BLOB NOT NULL, "recordState" TEXT NOT NULL, \
            "timestamp" TEXT NOT NULL, "s3Bucket" TEXT, "s3Key" TEXT, "s3Region" TEXT, "s3LocalUri" TEXT, \
            "s3MimeType" TEXT, "operationString" TEXT NOT NULL);
            """
        case subscriptions = """
            CREATE TABLE "subscription_metadata" ("operationHash" TEXT PRIMARY KEY NOT NULL, "lastSyncDate" TEXT);
            """
    }

    let path: String
    private var connection: OpaquePointer?

    init(_ path: String, _ tables: Tables..., wal: Bool = false) throws {
        self.path = path
        guard sqlite3_open(path, &connection) == SQLITE_OK else { throw Failure(text: "cannot open \(path)") }
        if wal { try run("PRAGMA journal_mode = WAL") }
        for table in tables { try run(table.rawValue) }
    }

    deinit { sqlite3_close_v2(connection) }

    func close() {
        sqlite3_close_v2(connection)
        connection = nil
    }

    func run(_ sql: String) throws {
        guard sqlite3_exec(connection, sql, nil, nil, nil) == SQLITE_OK else {
            throw Failure(text: String(cString: sqlite3_errmsg(connection)))
        }
    }

    func record(_ key: String, _ json: String) throws {
        try insert("INSERT OR REPLACE INTO records (key, record) VALUES (?, ?)", [key, json])
    }

    func mutation(
        _ identifier: String, _ body: String, state: String = "inQueue", time: String = "2019-02-04T22:06:42.371",
        file: String? = nil
    ) throws {
        try insert(
            """
            INSERT INTO mutation_records (recordIdentifier, data, recordState, timestamp, s3LocalUri, operationString)
            VALUES (?, CAST(? AS BLOB), ?, ?, ?, '')
            """, [identifier, body, state, time, file])
    }

    func insert(_ sql: String, _ values: [String?]) throws {
        var statement: OpaquePointer?
        guard sqlite3_prepare_v2(connection, sql, -1, &statement, nil) == SQLITE_OK else {
            throw Failure(text: String(cString: sqlite3_errmsg(connection)))
        }
        defer { sqlite3_finalize(statement) }
        for (index, value) in values.enumerated() {
            let transient = unsafeBitCast(-1, to: sqlite3_destructor_type.self)
            guard let value else { continue }
            sqlite3_bind_text(statement, Int32(index + 1), value, Int32(value.utf8.count), transient)
        }
        guard sqlite3_step(statement) == SQLITE_DONE else {
            throw Failure(text: String(cString: sqlite3_errmsg(connection)))
        }
    }

    struct Failure: Error {
        var text: String
    }
}

extension FileSystem {
    /// A file system that changes a file's time of modification whenever the file is opened, if `isChanged` says so. A
    /// reader opens a file after it has looked at that time.
    static func changing(_ isChanged: @escaping @Sendable (_ path: String) -> Bool) -> FileSystem {
        let count = Mutex(0.0)
        return FileSystem { call in
            guard call.kind == .open, isChanged(call.path) else { return nil }
            let seconds = count.withLock { count in
                count += 1
                return count
            }
            let time = Date(timeIntervalSince1970: seconds)
            try? FileManager.default.setAttributes([.modificationDate: time], ofItemAtPath: call.path)
            return nil
        }
    }
}

/// What is in a folder: names, and the bytes of each file.
func contents(of folder: URL) throws -> [String: Data] {
    var contents: [String: Data] = [:]
    for name in try FileManager.default.contentsOfDirectory(atPath: folder.path) {
        contents[name] = (try? Data(contentsOf: folder.appending(path: name))) ?? Data()
    }
    return contents
}
