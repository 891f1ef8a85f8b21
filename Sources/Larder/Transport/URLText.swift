package import Foundation

/// URLs as they may be told of: without the user, the password and the query that can stand in them.
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

    /// A message, in which URLs may stand: the user and the query of each are hidden.
    package static func hidingSecrets(in message: String) -> String {
        var (result, rest) = ("", message[...])
        while let slashes = rest.range(of: "//") {
            result += rest[..<slashes.upperBound]
            rest = rest[slashes.upperBound...]
            let end = rest.firstIndex { "/?#\"'<>`".contains($0) || $0.isWhitespace } ?? rest.endIndex
            if let at = rest[..<end].lastIndex(of: "@") {
                result += mark
                rest = rest[at...]
            }
            let url = rest[..<endOfURL(in: rest)]
            // What follows other slashes is looked at in the next round.
            let next = url.range(of: "//")?.lowerBound ?? url.endIndex
            guard let question = url[..<next].firstIndex(of: "?") else { continue }
            result += url[...question] + mark
            rest = rest[url.endIndex...]
        }
        return result + rest
    }

    /// Where a URL ends in a message. A quote may be part of a query, and ends one only where the message goes on.
    private static func endOfURL(in text: Substring) -> String.Index {
        text.indices.first { index in
            let character = text[index]
            guard character == "'" else { return "\"<>`".contains(character) || character.isWhitespace }
            let rest = text[index...].dropFirst()
            let following = rest.first.map { ",.;:)".contains($0) } == true ? rest.dropFirst() : rest
            return following.first?.isWhitespace != false
        } ?? text.endIndex
    }
}

extension URL {
    /// Whether a user or a password stands in it. HTTP has no place for them.
    package var namesUser: Bool { user(percentEncoded: true) != nil || password(percentEncoded: true) != nil }

    /// The server as it is named and kept: scheme, host, port and path. A user, a password and a query may be secrets.
    package var serverName: String? {
        guard var parts = URLComponents(url: self, resolvingAgainstBaseURL: true) else { return nil }
        (parts.percentEncodedUser, parts.percentEncodedPassword) = (nil, nil)
        (parts.percentEncodedQuery, parts.percentEncodedFragment) = (nil, nil)
        return parts.string
    }
}
