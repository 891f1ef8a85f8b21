/// A text that is not GraphQL, and where it stops being so.
package struct SyntaxError: Error, Sendable, Hashable, CustomStringConvertible {
    /// What was expected and what was found, such as `Expected Name, found '}'`.
    package var message: String
    package var location: Location
    /// The name of the file or other source, where the caller gave one.
    package var sourceName: String?

    package init(message: String, location: Location, sourceName: String? = nil) {
        self.message = message
        self.location = location
        self.sourceName = sourceName
    }

    package var description: String {
        "\(sourceName ?? "GraphQL"):\(location.line):\(location.column): \(message)"
    }
}
