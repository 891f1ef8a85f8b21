package import Foundation

/// URLs as they may be told of: without the user and the password that can stand in them.
package enum URLText {
    private static let mark = "…"

    /// A text that is meant to be a URL, and may be none: all before its last `@` is hidden, but for the scheme.
    package static func hidingUser(ofURL text: String) -> String {
        guard let at = text.lastIndex(of: "@") else { return text }
        let start = text.range(of: "//").flatMap { $0.upperBound <= at ? $0.upperBound : nil } ?? text.startIndex
        return String(text[..<start]) + mark + String(text[at...])
    }

    /// A text that is meant to be a URL, and may be none: all after its first `?` is hidden.
    package static func hidingQuery(ofURL text: String) -> String {
        guard let question = text.firstIndex(of: "?") else { return text }
        return text[...question] + mark
    }

    /// A message, in which URLs may stand.
    package static func hidingUsers(in message: String) -> String {
        var (result, rest) = ("", message[...])
        while let slashes = rest.range(of: "//") {
            result += rest[..<slashes.upperBound]
            rest = rest[slashes.upperBound...]
            let end = rest.firstIndex { "/?#\"'<>`".contains($0) || $0.isWhitespace } ?? rest.endIndex
            guard let at = rest[..<end].lastIndex(of: "@") else { continue }
            result += mark
            rest = rest[at...]
        }
        return result + rest
    }
}

extension URL {
    /// Whether a user or a password stands in it. HTTP has no place for them.
    package var namesUser: Bool { user(percentEncoded: true) != nil || password(percentEncoded: true) != nil }
}
