/// Why a tool did not do what it was asked, as it will be told.
package struct Failure: Error {
    /// Failures of a tool itself; those of the library keep their own codes.
    package struct Code: RawRepresentable, Hashable, Sendable {
        package let rawValue: String
        package init(rawValue: String) { self.rawValue = rawValue }

        package static let usage = Code(rawValue: "command.usage")
        /// A file that an argument names cannot be read, or holds what it should not.
        package static let file = Code(rawValue: "command.file")
        /// There is no store where one is needed.
        package static let noStore = Code(rawValue: "command.noStore")
        /// The folder holds something else.
        package static let notAStore = Code(rawValue: "command.notAStore")
        /// The verb removes much and was not told that it may.
        package static let notConfirmed = Code(rawValue: "command.notConfirmed")
        /// The store may be a copy, whose original may have sent what is queued.
        package static let mayBeCopy = Code(rawValue: "command.mayBeCopy")
        /// A check found something.
        package static let findings = Code(rawValue: "command.findings")
        /// Standard output cannot be written.
        package static let output = Code(rawValue: "command.output")
        /// Something waits that could not be carried out in time.
        package static let remaining = Code(rawValue: "command.remaining")
        /// There is no backup where one is needed.
        package static let noBackup = Code(rawValue: "command.noBackup")
        package static let unexpected = Code(rawValue: "command.unexpected")
    }

    package var code: String
    /// One line, without the tool's name.
    package var message: String
    package var exit: ExitStatus
    /// What to do next, where the verb knows it better than the code says.
    package var advice: String?
    /// What else `--json` tells.
    package var details: [(name: String, value: JSONText)] = []

    package init(
        _ code: Code, _ exit: ExitStatus, _ message: String, details: [(name: String, value: JSONText)] = []
    ) {
        self.code = code.rawValue
        self.exit = exit
        self.message = message
        self.details = details
    }

    /// The arguments, or what they name, cannot be used.
    package init(usage message: String, code: Code = .usage) { self.init(code, .usage, message) }
}
