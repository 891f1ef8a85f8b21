extension OperationsDatabase {
    /// How the database is opened.
    package struct Options: Sendable {
        /// Whether nothing may be written; the database must exist and be migrated.
        package var isReadOnly = false
        /// How long each access may wait for other programs.
        package var busyTimeout = Duration.seconds(5)
        /// Whether SQLite's `quick_check` reads the whole file first. O(size).
        package var verifiesAlways = false

        package init() {}
    }
}
