/// What an answer's headers say of its age: `max-age` of `Cache-Control`, and `Age` (RFC 9111, sections 5.1 and 5.2.2).
///
/// Directives that forbid caching, such as `no-store`, say nothing here: servers of GraphQL send them with every answer,
/// and mean caches of HTTP, which know no objects.
package struct CacheControl: Sendable, Hashable {
    package private(set) var maxAge: Duration?
    package private(set) var age: Duration?

    /// - Parameter fields: The values of all headers of the name `Cache-Control`, in their order.
    package init(_ fields: [String], age: [String] = []) {
        for directive in fields.flatMap(Self.directives) {
            let parts = directive.split(separator: "=", maxSplits: 1)
            guard parts.count == 2, Self.trimmed(parts[0]).lowercased() == "max-age" else { continue }
            let value = Self.trimmed(parts[1])
            // What comes first counts where a server contradicts itself.
            maxAge = maxAge ?? Self.seconds(value.filter { $0 != "\"" })
        }
        self.age = age.first.flatMap { Self.seconds(Self.trimmed($0[...])) }
    }

    /// What stands between the commas that are not in quotes.
    private static func directives(_ field: String) -> [Substring] {
        var isQuoted = false
        return field.split { character in
            if character == "\"" { isQuoted.toggle() }
            return character == "," && !isQuoted
        }
    }

    /// Nil where the text is no number without a sign. What is beyond a century is as good as one.
    private static func seconds(_ text: String) -> Duration? {
        guard !text.isEmpty, text.utf8.allSatisfy({ (0x30...0x39).contains($0) }) else { return nil }
        return .seconds(min(Int(text) ?? .max, 100 * 366 * 86_400))
    }

    private static func trimmed(_ text: Substring) -> String {
        let start = text.drop { $0 == " " || $0 == "\t" }
        return String(start.reversed().drop { $0 == " " || $0 == "\t" }.reversed())
    }
}
