extension OperationsError {
    /// A stable name for the kind of failure. New ones may be added; none changes its meaning.
    package struct Code: RawRepresentable, Hashable, Sendable {
        /// The name, such as `operations.full`.
        package let rawValue: String

        /// A code of this name, to compare with.
        package init(rawValue: String) { self.rawValue = rawValue }

        // The database cannot be used.

        /// The file is damaged.
        package static let damaged = Code(rawValue: "operations.damaged")
        /// A row of the file is damaged; the others can be read. A runner sets it aside and goes on.
        package static let damagedRow = Code(rawValue: "operations.damagedRow")
        /// The file is no database, or another program's.
        package static let foreign = Code(rawValue: "operations.foreign")
        /// A newer version of the library wrote the file, or migrated it.
        package static let newerFormat = Code(rawValue: "operations.newerFormat")
        /// The database was made by another text of a migration.
        package static let migrationChanged = Code(rawValue: "operations.migrationChanged")
        /// The database's history lacks a migration between those it has.
        package static let migrationMissing = Code(rawValue: "operations.migrationMissing")
        /// A migration failed; nothing was changed.
        package static let migrationFailed = Code(rawValue: "operations.migrationFailed")
        /// Migrations are yet to be applied, and the database was opened for reading only.
        package static let pending = Code(rawValue: "operations.pending")
        /// Another program, or another thread, changes the store's schema or all of its content, and did so past the
        /// deadline; the message names it.
        package static let migrationLocked = Code(rawValue: "operations.migrationLocked")
        /// The schema is none that this library knows, so that no history can be put down for it.
        package static let unknownSchema = Code(rawValue: "operations.unknownSchema")
        /// The backup is of another store.
        package static let foreignBackup = Code(rawValue: "operations.foreignBackup")
        /// The backup is damaged, or is none.
        package static let damagedBackup = Code(rawValue: "operations.damagedBackup")
        /// A crash cut off a write, and the database was opened for reading only: opening it for writing takes back
        /// what the write left.
        package static let unfinished = Code(rawValue: "operations.unfinished")
        /// Nothing is there to be opened.
        package static let missing = Code(rawValue: "operations.missing")
        /// The file or its folder cannot be written, or the database was opened for reading only.
        package static let notWritable = Code(rawValue: "operations.notWritable")
        /// The device was not unlocked since it was started, and keeps the store's files locked.
        package static let filesProtected = Code(rawValue: "operations.filesProtected")
        /// The disk, or the database, is full. Nothing was changed.
        package static let full = Code(rawValue: "operations.full")
        /// Another program kept the database past the deadline.
        package static let busy = Code(rawValue: "operations.busy")
        /// The database was closed.
        package static let closed = Code(rawValue: "operations.closed")
        /// The database is suspended.
        package static let suspended = Code(rawValue: "operations.suspended")
        /// The file system or SQLite cannot keep what is promised, such as a commit that survives power loss.
        package static let unsupported = Code(rawValue: "operations.unsupported")
        /// The disk failed during a commit, which may be there or not. Asking for it by its id decides that, and trying
        /// again with the same id is safe.
        package static let commitUnknown = Code(rawValue: "operations.commitUnknown")
        /// SQLite or the file system failed otherwise; see the cause.
        package static let storage = Code(rawValue: "operations.storage")

        // The database is well, and refuses.

        /// No such mutation: it was never there, or it is settled; `find` tells which.
        package static let notFound = Code(rawValue: "operations.notFound")
        /// The mutation is not in the state that the call is for: another caller may have been quicker.
        package static let wrongState = Code(rawValue: "operations.wrongState")
        /// The mutation's turn has not come: another of its lane, or one it depends on, is before it.
        package static let notItsTurn = Code(rawValue: "operations.notItsTurn")
        /// The mutation's time is over.
        package static let expired = Code(rawValue: "operations.expired")
        /// The id or the idempotency key is another mutation's.
        package static let duplicate = Code(rawValue: "operations.duplicate")
        /// A temporary id that no mutation reserved, or whose mutation was discarded.
        package static let unknownTemporaryID = Code(rawValue: "operations.unknownTemporaryID")
        /// An argument cannot be stored.
        package static let invalid = Code(rawValue: "operations.invalid")
        /// Work that has not reached the server would be lost, and the caller did not say that it may.
        package static let unsentWork = Code(rawValue: "operations.unsentWork")
        /// The storage has parts of uploads that were given up, whose names would be lost, and the caller did not say
        /// that they may stay there.
        package static let uploadsLeft = Code(rawValue: "operations.uploadsLeft")
        /// The partition is not the current one: another environment, or another user, was switched to.
        package static let parked = Code(rawValue: "operations.parked")
        /// Another partition is the current one, and the caller did not say that it may be left.
        package static let otherPartition = Code(rawValue: "operations.otherPartition")
        /// No such environment.
        package static let unknownEnvironment = Code(rawValue: "operations.unknownEnvironment")
        /// Another backend is stored under the environment's name.
        package static let environmentChanged = Code(rawValue: "operations.environmentChanged")
        /// The environment is the current one, or has data.
        package static let environmentInUse = Code(rawValue: "operations.environmentInUse")
        /// The environment has data already where it is to take over another's.
        package static let occupied = Code(rawValue: "operations.occupied")
        /// No such partition.
        package static let unknownPartition = Code(rawValue: "operations.unknownPartition")
        /// The environment is protected, and its name was not repeated.
        package static let protected = Code(rawValue: "operations.protected")
        /// No such watcher.
        package static let unknownWatcher = Code(rawValue: "operations.unknownWatcher")
    }
}
