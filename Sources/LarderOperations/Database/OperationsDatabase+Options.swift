package import LarderFiles

extension OperationsDatabase {
    /// How the database is opened.
    package struct Options: Sendable {
        /// Whether nothing may be written; the database must exist and be migrated.
        package var isReadOnly = false
        /// How long each access may wait for other programs.
        package var busyTimeout = Duration.seconds(5)
        /// Whether SQLite's `quick_check` reads the whole file first. O(size).
        package var verifiesAlways = false
        /// What becomes of migrations that are missing.
        package var schema = SchemaUse.migrated

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
