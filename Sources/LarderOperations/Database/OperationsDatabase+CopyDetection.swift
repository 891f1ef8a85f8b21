import Foundation
import GRDB
import LarderFiles

/// Keeps a token for each store on this device, where no copy of the store takes it along.
package struct DeviceMark: Sendable {
    /// By the store's identity; nil where there is none.
    let read: @Sendable (_ store: String) throws -> String?
    let keep: @Sendable (_ token: String, _ store: String) throws -> Void

    package init(
        read: @escaping @Sendable (_ store: String) throws -> String?,
        keep: @escaping @Sendable (_ token: String, _ store: String) throws -> Void
    ) {
        (self.read, self.keep) = (read, keep)
    }
}

extension OperationsDatabase {
    private struct Noted: Equatable {
        var home: String?
        var token: String?
        var next: String?

        /// Whether the device's token is the database's. None in the database: no device has marked it yet.
        func isKnown(by kept: String?) -> Bool {
            let known = [token, next].compactMap(\.self)
            return known.isEmpty || kept.map(known.contains) ?? false
        }
    }

    /// Notes where the database is. A database that the device does not know was copied there, or is an older one that
    /// a backup has brought back: what it has queued may have been sent since, and is set aside.
    ///
    /// The token is another one each time, so that the device knows no older copy either. The database has the next one
    /// before the device has it: a process may be killed in between.
    static func notePlace(_ db: Database, _ log: SyncedLog, _ file: URL, _ options: Options) throws {
        guard options.home != nil || options.device != nil else { return }
        guard try options.device != nil || noted(db).home != options.home?.path else { return }
        let lock = try MigrationLock.take(
            in: file.deletingLastPathComponent(), for: "opening a store", within: options.busyTimeout, options.files)
        defer { lock.release() }
        guard let store = try identity(db) else { return }
        let kept = try onDevice { try options.device?.read(store) }
        let next = UUID().uuidString.lowercased()
        var copied: Int?
        try log.begin(db)
        do {
            var noted = try noted(db)
            if let home = options.home, noted.home != home.path {
                try relocate(db, to: home, options.files)
                noted.home = home.path
            }
            if options.device != nil {
                let isKnown = noted.isKnown(by: kept)
                if !isKnown {
                    copied = try RestorationDoubt.distrustAll(db, isProven: false, Date())
                    try TransferTransaction(db: db).distrustUploads(now: Date())
                }
                (noted.token, noted.next) = (isKnown ? kept : nil, next)
            }
            try db.run(
                "UPDATE store SET home = ?, device_token = ?, next_device_token = ?",
                [noted.home, noted.token, noted.next])
            try log.commit(db)
        } catch {
            if db.isInsideTransaction { try? db.rollback() }
            throw error
        }
        try onDevice { try options.device?.keep(next, store) }
        if let copied { options.foundCopied(copied) }
    }

    /// Whether the store may be a copy of another: it has a token, and the device has not the same one.
    ///
    /// - Parameter device: Nil: a device that has none.
    package func mayBeCopy(on device: DeviceMark?) throws(OperationsError) -> Bool {
        try read { db in
            guard let store = try Self.identity(db) else { return false }
            return try !Self.noted(db).isKnown(by: Self.onDevice { try device?.read(store) })
        }
    }

    /// Nil also where the tables are of an older version.
    static func notedHome(_ db: Database) throws -> HomeFolder? {
        let columns = try db.rows("PRAGMA table_info(store)") { try $0.text(1) }
        guard columns.contains("home") else { return nil }
        return try noted(db).home.map(HomeFolder.init)
    }

    private static func noted(_ db: Database) throws -> Noted {
        try db.row("SELECT home, device_token, next_device_token FROM store WHERE only = 1") { row in
            Noted(
                home: try row.optional(0, row.text), token: try row.optional(1, row.text),
                next: try row.optional(2, row.text))
        } ?? Noted()
    }

    /// Makes the paths relative that were stored whole.
    private static func relocate(_ db: Database, to home: HomeFolder, _ files: FileSystem) throws {
        let rows = try db.rows("SELECT sequence, path FROM transfer WHERE path LIKE '/%'") {
            (sequence: try $0.integer(0), path: try $0.text(1))
        }
        for (sequence, path) in rows {
            let stored = try home.storedFormerly(path) { try files.status(of: $0) != nil }
            guard stored != path else { continue }
            try db.run("UPDATE transfer SET path = ? WHERE sequence = ?", [stored, sequence])
        }
    }

    private static func onDevice<Value>(_ body: () throws -> Value) throws -> Value {
        do { return try body() } catch {
            throw OperationsError(
                .storage,
                "The token that this device keeps of the store cannot be read or kept, so that it is not known whether "
                    + "the store was copied here; try again once it can", cause: error)
        }
    }
}
