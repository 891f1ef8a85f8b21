package import Foundation
import GRDB
import LarderFiles

/// The store's durable intent: `larder.sqlite`, the only file that cannot be fetched again.
///
/// What a call of this type acknowledged survives a killed process and the loss of power. Reads are synchronous, see
/// what was committed, and wait for no writer of this process. Writes are made one after the other, and writes that
/// wait together share a commit. No wait is longer than the options say, for each access.
///
/// Several processes, and several of these in one process, may have the same file open.
package final class OperationsDatabase: Sendable {
    /// The file's name in the store's folder.
    package static let fileName = "larder.sqlite"

    /// Where the file is.
    package let file: URL
    package let options: Options
    /// What the paths of transfers are relative to: the folder that the options name, or else the one that another
    /// opening has noted.
    let home: HomeFolder?
    let migrations: MigrationSet
    let use: Locked<Use>
    /// Nil where others may have committed while nothing was open.
    private let seenVersion: Locked<Int64?>

    /// Opens the database in a folder, which is made unless it is to be read only.
    ///
    /// Applies the migrations that are missing, in one transaction. Uses no network. O(1) where nothing is to be done.
    ///
    /// - Throws: `.damaged`, `.foreign`, `.newerFormat`, `.migrationChanged`, `.migrationMissing`, `.migrationFailed`,
    ///   `.pending`, `.missing`, `.notWritable`, `.full`, `.busy`, `.unsupported`, `.storage`.
    package convenience init(folder: URL, options: Options = Options()) throws(OperationsError) {
        try self.init(folder: folder, options: options, migrations: MigrationSet.embedded)
    }

    /// - Parameter migrations: Others than the embedded ones, for tests.
    convenience init(folder: URL, options: Options, migrations: MigrationSet) throws(OperationsError) {
        try self.init(file: folder.appending(path: Self.fileName), options: options, migrations: migrations)
    }

    /// Opens a file of another name: a copy of a database.
    init(file: URL, options: Options, migrations: MigrationSet) throws(OperationsError) {
        self.file = file
        self.options = options
        self.migrations = migrations
        let (pool, log, version, notedHome) = try Self.open(file, options, migrations)
        home = options.home ?? notedHome
        use = Locked(Use(connection: Connection(pool, log, options)))
        seenVersion = Locked(version)
    }

    /// Mutations that are on their way to the server.
    package var mutations: MutationQueue { MutationQueue(database: self) }

    /// Watchers that outlive the process.
    package var watchers: WatcherTable { WatcherTable(database: self) }

    /// Operations whose answers stay in the cache.
    package var pins: PinTable { PinTable(database: self) }

    /// The environments that are known, their partitions, and which of these is the current one.
    package var environments: EnvironmentTable { EnvironmentTable(database: self) }

    /// How many commits this process has made since it was opened, and one for each suspension.
    package var commitCount: Int { use.withLock { $0.earlierCommits + ($0.connection?.writer.commitCount ?? 0) } }

    /// Closes the file. Writes that were begun end first; calls from now on throw `.closed`. Closing twice does
    /// nothing.
    package func close() throws(OperationsError) {
        let open = use.withLock { use in
            defer { use.isClosed = true }
            return use.isClosed ? nil : use.connection
        }
        try open?.close(options)
    }

    /// Whether another process, or another `OperationsDatabase` of this one, has committed since this was last asked,
    /// or since the database was opened. Cheap: it reads a counter in shared memory, and waits for the write that this
    /// process is making, if there is one.
    package func hasChanged() throws(OperationsError) -> Bool {
        let version = try using { try $0.pool.writeWithoutTransaction { try Self.dataVersion($0) } }
        return seenVersion.withLock { seen in
            defer { seen = version }
            return seen != version
        }
    }

    /// Which commits there are, so that a caller can tell whether there are others by now. Cheap, as `hasChanged`.
    package func contentVersion() throws(OperationsError) -> ContentVersion {
        let others = try using { try $0.pool.writeWithoutTransaction { try Self.dataVersion($0) } }
        return ContentVersion(own: commitCount, others: others)
    }

    /// Another one, of the same open database, says that something was committed.
    package struct ContentVersion: Sendable, Equatable {
        let own: Int
        /// Differs where other processes have committed.
        package let others: Int64
    }

    /// A number that other connections' commits change, and this one's do not: https://www.sqlite.org/pragma.html
    static func dataVersion(_ db: Database) throws -> Int64 {
        try db.integer("PRAGMA data_version") ?? 0
    }

    /// Has the next `hasChanged` say that something has.
    func forgetSeenVersion() { seenVersion.withLock { $0 = nil } }

    /// Reads what was committed, all of it at one moment.
    func read<Value>(_ body: (Database) throws -> Value) throws(OperationsError) -> Value {
        try using { try $0.pool.read(body) }
    }

    /// Makes a write on the caller's thread, in a transaction of its own, and returns when it is on disk.
    func writeNow<Value>(_ body: (Database) throws -> Value) throws(OperationsError) -> Value {
        try transaction(.commit, body)
    }

    /// Makes a write as `writeNow`, and takes it back.
    func rehearse<Value>(_ body: (Database) throws -> Value) throws(OperationsError) -> Value {
        try transaction(.rollback, body)
    }

    private func transaction<Value>(
        _ end: Database.TransactionCompletion, _ body: (Database) throws -> Value
    ) throws(OperationsError) -> Value {
        guard !options.isReadOnly else { throw OperationsError.readOnly }
        return try using { connection in
            try connection.pool.writeWithoutTransaction { db in
                try connection.log.begin(db)
                do {
                    let value = try body(db)
                    switch end {
                    case .commit: try connection.log.commit(db)
                    case .rollback: try db.rollback()
                    }
                    return value
                } catch {
                    // SQLite has ended the transaction by itself after some failures.
                    if db.isInsideTransaction { try? db.rollback() }
                    throw error
                }
            }
        }
    }

    /// Runs `body`, which makes transactions of its own, once what the log holds is durable.
    func writeWithoutTransaction<Value>(_ body: (Database) throws -> Value) throws(OperationsError) -> Value {
        try using { connection in
            try connection.pool.writeWithoutTransaction { db in
                try connection.log.require(db)
                let value: Value
                do { value = try body(db) } catch {
                    connection.log.doubt(db)
                    throw error
                }
                connection.log.noteCommit()
                connection.log.checkpointIfLong(db)
                return value
            }
        }
    }

    /// Decides for good whether what a commit wrote that failed with `.commitUnknown` is there. Does nothing where
    /// no commit has.
    ///
    /// Opening the store decides it too: what is there then stays.
    package func settleCommits() throws(OperationsError) {
        try using { connection in
            guard connection.log.isDoubtful else { return }
            try connection.pool.writeWithoutTransaction { try connection.log.require($0) }
        }
    }

    /// Makes a write, alone in its savepoint, and returns when it is on disk.
    ///
    /// - Parameter isBlocking: Whether it may be made on the caller's thread, which then waits for the disk.
    func write<Value: Sendable>(
        isBlocking: Bool = false, _ body: @escaping @Sendable (Database) throws -> Value
    ) async throws(OperationsError) -> Value {
        let connection = try beginUse()
        defer { endUse() }
        return try await connection.writer.perform(isBlocking: isBlocking, body)
    }
}

extension OperationsError {
    static var closed: OperationsError {
        OperationsError(.closed, "The operations database was closed; open the store again")
    }

    static var readOnly: OperationsError {
        OperationsError(.notWritable, "The operations database was opened for reading only; open the store for writing")
    }
}
