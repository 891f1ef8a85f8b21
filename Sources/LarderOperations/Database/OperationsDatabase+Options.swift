package import LarderFiles

extension OperationsDatabase {
    /// How the database is opened.
    package struct Options: Sendable {
        /// Whether nothing may be written; the database must exist and be migrated.
        package var isReadOnly = false
        /// How long each access may wait for other programs.
        package var busyTimeout = Duration.seconds(5)
        /// How long a call waits while the database is suspended.
        package var suspensionWait = Duration.zero
        /// Whether SQLite's `quick_check` reads the whole file first. O(size).
        package var verifiesAlways = false
        /// What becomes of migrations that are missing.
        package var schema = SchemaUse.migrated

        /// The folder relative to which the paths of transfers are stored; nil: they are stored whole.
        package var home: HomeFolder?
        /// By which a copy of the database is known; nil: it is not.
        package var device: DeviceMark?
        /// Told how many mutations were set aside where the database is a copy.
        package var foundCopied: @Sendable (Int) -> Void = { _ in }

        /// Called once what was committed can be read.
        package var committed: @Sendable () -> Void = {}

        /// By which this layer makes its own calls of the system; SQLite makes others.
        package var files = FileSystem()

        package init() {}
    }

    /// What opening does about migrations that are missing.
    package enum SchemaUse: Sendable, Hashable {
        /// They are applied; it is an error where nothing may be written, and where the history is another one.
        case migrated
        /// Nothing: for callers that look at the history, or apply them later. The tables may be others than the rest
        /// of this type expects.
        case asItIs
    }
}
