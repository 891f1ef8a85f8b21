/// Why nothing can be imported from a source.
package struct ImportError: Error, Sendable {
    /// What kind of failure it is. The names do not change their meaning.
    package enum Code: String, Sendable, CaseIterable {
        /// There is no such file or folder.
        case missing = "import.missing"
        /// It is no database, or not one of the library that was named.
        case foreign = "import.foreign"
        /// The database is damaged.
        case damaged = "import.damaged"
        /// Another process is writing to it, or wrote to it while it was read.
        case busy = "import.busy"
        /// It is larger than what may be read.
        case tooLarge = "import.tooLarge"
        /// It may not be read, or reading failed.
        case unreadable = "import.unreadable"
        /// There are several sources, and one must be chosen.
        case ambiguous = "import.ambiguous"
        /// The store could not be written to, or the schema could not be used.
        case store = "import.store"
    }

    package var code: Code
    /// What happened and what would help.
    package var message: String

    init(_ code: Code, _ message: String) {
        self.code = code
        self.message = message
    }
}

extension ImportError: CustomStringConvertible {
    package var description: String { "\(message) [\(code.rawValue)]" }
}
