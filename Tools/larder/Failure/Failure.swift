import Foundation

/// Why the tool did not do what it was asked, as it will be told.
struct Failure: Error {
    /// Failures of the tool itself; those of the library keep their own codes.
    enum Code: String {
        case usage = "command.usage"
        /// A file that an argument names cannot be read, or holds what it should not.
        case file = "command.file"
        /// There is no store where one is needed.
        case noStore = "command.noStore"
        /// The folder holds something else.
        case notAStore = "command.notAStore"
        /// The verb removes much and was not told `--write`.
        case notConfirmed = "command.notConfirmed"
        /// The object is not in the cache.
        case unknownObject = "command.unknownObject"
        /// No mutation of this id is known.
        case unknownMutation = "command.unknownMutation"
        /// `check` found something.
        case findings = "command.findings"
        /// Standard output cannot be written.
        case output = "command.output"
        case unexpected = "command.unexpected"
    }

    var code: String
    /// One line, without the tool's name.
    var message: String
    var exit: ExitStatus
    /// What else `--json` tells.
    var details: [(name: String, value: JSONText)] = []

    init(_ code: Code, _ exit: ExitStatus, _ message: String, details: [(name: String, value: JSONText)] = []) {
        self.code = code.rawValue
        self.exit = exit
        self.message = message
        self.details = details
    }

    static func unknownMutation(_ id: UUID) -> Failure {
        Failure(.unknownMutation, .miss, "there is no mutation \(id.text), or its outcome was forgotten")
    }

    /// The arguments, or what they name, cannot be used.
    init(usage message: String, code: Code = .usage) { self.init(code, .usage, message) }
}
