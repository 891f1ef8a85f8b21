package import Foundation

/// What went wrong in the operations database, `larder.sqlite`.
package struct OperationsError: Error, Sendable {
    /// What kind of failure it is; compare this, never the message.
    package var code: Code
    /// What happened and what would help, in English, for developers.
    package var message: String
    /// The mutation concerned.
    package var mutation: UUID?
    /// Of `.unsentWork` and `.uploadsLeft`: how much there is.
    package var unsent: Unsent?
    /// The error of the layer below: a `SQLiteFailure`, or what the file system said.
    package var cause: (any Error)?

    package init(
        _ code: Code, _ message: String, mutation: UUID? = nil, unsent: Unsent? = nil, cause: (any Error)? = nil
    ) {
        self.code = code
        self.message = message
        self.mutation = mutation
        self.unsent = unsent
        self.cause = cause
    }

    /// What the server may not have.
    package struct Unsent: Sendable, Hashable {
        package var mutations = 0
        package var uploads = 0
    }
}

extension OperationsError: CustomStringConvertible {
    /// The message, the mutation, the code and the cause.
    package var description: String {
        var text = message
        if let mutation { text += ", mutation \(mutation.uuidString.lowercased())" }
        text += " [\(code.rawValue)]"
        if let cause { text += ": \(cause)" }
        return text
    }
}

/// What SQLite said.
package struct SQLiteFailure: Error, Sendable, Hashable, CustomStringConvertible {
    /// The extended result code.
    package let resultCode: Int32
    package let message: String
    /// The statement, without its arguments: those are a user's data.
    package let sql: String?

    package var description: String {
        "SQLite \(resultCode): \(message)" + (sql.map { ", in \($0)" } ?? "")
    }
}
