import Foundation
import Larder
import LarderCommandLine
import LarderFiles
import LarderOperations

/// The folder that `--store` names, which must hold a store.
struct MigratedStore {
    let url: URL
    let options: Store.Options
    private let output: Output

    /// - Parameter mayBeNew: Whether the folder may be empty, or missing.
    init(
        _ store: StoreOptions, timeout: Duration = .seconds(5), mayBeNew: Bool = false, _ output: Output
    ) throws(Failure) {
        self.output = output
        url = try store.url()
        var options = Store.Options()
        options.label = "larder-migrate"
        options.lockTimeout = timeout
        options.deviceTokens = nil
        options.silence()
        self.options = options
        let found = try Failure.typed { try OperationsDatabase.look(at: url.path, options.files) }
        let exists = found != nil
        guard found?.kind ?? .folder == .folder else { throw Failure(usage: "The store \(url.path) is no folder") }
        output.note("store \(url.path)\(exists ? currentEnvironment() : ", new")")
        if mayBeNew {
            let isStore = try Failure.typed { try hasDatabase || StoreContents.areAll(of: url, options.files) }
            guard isStore else {
                throw Failure(
                    .notAStore, .refused,
                    "\(url.path) holds something else than a store; name a new folder, or an empty one")
            }
            return
        }
        guard exists else { throw Failure(.noStore, .failure, "There is no store at \(url.path)") }
        let holdsAny = try Failure.typed { try hasAnything }
        guard holdsAny else { throw Failure(.noStore, .failure, "\(url.path) holds no store") }
    }

    var hasDatabase: Bool {
        get throws(OperationsError) { try OperationsDatabase.exists(in: url, options.files) }
    }

    /// Whether there is anything to be lost.
    var hasAnything: Bool {
        get throws {
            try hasDatabase || !StoreStatus.partitionFolders(of: url, options.files).isEmpty
        }
    }

    /// Makes the database with all its tables, where there is none. Not under the migration lock: opening takes it.
    func makeDatabase() throws {
        guard try !hasDatabase else { return }
        var options = OperationsDatabase.Options()
        options.busyTimeout = self.options.lockTimeout
        try OperationsDatabase(folder: url, options: options).close()
    }

    /// Takes back what a crash has left of a write to the database, as opening it for writing does. Other verbs could
    /// not read it.
    func takeBackUnfinished() throws {
        let file = url.appending(path: OperationsDatabase.fileName)
        guard try hasDatabase, try OperationsDatabase.look(at: file.path + "-journal", self.options.files) != nil
        else { return }
        var options = OperationsDatabase.Options()
        options.busyTimeout = self.options.lockTimeout
        options.schema = .asItIs
        try OperationsDatabase(folder: url, options: options).close()
    }

    /// Refuses a store whose database lacks migrations: opening it for writing would apply them, and wait for the
    /// migration lock where the caller has it.
    func requireMigrated() async throws {
        if try hasDatabase { try await withDatabase(.reading) { _ in } }
    }

    /// For people; nothing where it cannot be told, which whatever is done next tells better.
    private func currentEnvironment() -> String {
        let current = try? withEnvironments { table in
            try table.current()?.partition?.environment.flatMap { try table.find($0) }
        }
        guard let environment = current ?? nil else { return "" }
        return ", environment \(environment.name)\(environment.isProtected ? ", protected" : "")"
    }

    func status() throws -> StoreStatus { try StoreStatus(of: url, options: options) }

    /// Runs `body` while no other process changes the store's schema, its formats or all of its content.
    func withLock<Result>(
        for verb: String, _ body: (MigrationLock) async throws -> Result
    ) async throws -> Result {
        output.note(StoreExposure.narrow(url, options.files))
        let lock = try MigrationLock.take(
            in: url, for: "larder-migrate \(verb)", within: options.lockTimeout, options.files)
        defer { lock.release() }
        return try await body(lock)
    }

    enum Access { case reading, writing }

    /// Runs `body` with the database, which must have all migrations: opening for writing would apply the missing ones,
    /// without a backup.
    func withDatabase<Result>(
        _ access: Access, _ body: (OperationsDatabase) async throws -> Result
    ) async throws -> Result {
        guard try hasDatabase else {
            throw OperationsError(
                .missing, "Nothing was ever to be kept in this store: it has no larder.sqlite, and no environments")
        }
        var options = OperationsDatabase.Options()
        options.isReadOnly = access == .reading
        options.busyTimeout = self.options.lockTimeout
        options.schema = .asItIs
        return try await OperationsDatabase.using(url, options: options) { database in
            if let pending = try database.schemaStatus().pending.first {
                throw OperationsError(
                    .pending, "Migration \(pending.label) is yet to be applied; larder-migrate up does it")
            }
            return try await body(database)
        }
    }
}
