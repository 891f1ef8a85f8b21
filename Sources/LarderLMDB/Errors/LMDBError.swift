/// What went wrong with an LMDB environment, and what to do about it.
///
/// One word wide, so that functions which throw it return as cheaply as functions which do not.
package struct LMDBError: Error, Sendable {
    private let details: Details

    /// - Parameters:
    ///   - message: says what happened and the remedy, in one or two sentences.
    ///   - status: LMDB's return code (negative) or `errno` (positive); zero where neither spoke.
    package init(
        _ code: Code,
        _ message: String,
        path: String? = nil,
        page: UInt64? = nil,
        status: Int32 = 0,
        cause: (any Error)? = nil,
        isWorthRepeating: Bool = false
    ) {
        details = Details(
            code: code, message: message, path: path, page: page, status: status, cause: cause,
            isWorthRepeating: isWorthRepeating)
    }

    /// The stable name of this kind of failure; compare this, never the message.
    package var code: Code { details.code }
    /// What happened and the remedy, in English, for a log or a developer.
    package var message: String { details.message }
    /// The file or folder concerned.
    package var path: String? { details.path }
    /// The page of the data file concerned, counted from zero.
    package var page: UInt64? { details.page }
    /// LMDB's return code (negative), or `errno` (positive), or zero.
    package var status: Int32 { details.status }
    /// The error that led to this one.
    package var cause: (any Error)? { details.cause }
    /// Whether something was done about it, so that the same transaction may now succeed.
    package var isWorthRepeating: Bool { details.isWorthRepeating }

    private final class Details: Sendable {
        let code: Code
        let message: String
        let path: String?
        let page: UInt64?
        let status: Int32
        let cause: (any Error)?
        let isWorthRepeating: Bool

        init(
            code: Code, message: String, path: String?, page: UInt64?, status: Int32, cause: (any Error)?,
            isWorthRepeating: Bool
        ) {
            self.code = code
            self.message = message
            self.path = path
            self.page = page
            self.status = status
            self.cause = cause
            self.isWorthRepeating = isWorthRepeating
        }
    }
}

extension LMDBError: CustomStringConvertible {
    package var description: String {
        var text = "\(code): \(message)"
        if let path { text += " [\(path)" + (page.map { ", page \($0)]" } ?? "]") }
        if status != 0 { text += " (status \(status))" }
        return text
    }
}
