/// Why an operation cannot be compiled, or its variables cannot be used.
package struct PlanError: Error, Sendable, Hashable, CustomStringConvertible {
    package enum Code: Sendable, Hashable {
        /// The document does not fit the schema.
        case invalid
        /// The document does not hold the operation or fragment that was asked for.
        case notFound
        /// The operation is legal, but larger than can be compiled.
        case tooComplex
        /// A variable is missing, unknown, or not of its type.
        case variable
    }

    package var code: Code
    package var message: String
    package var location: Location?

    package init(_ code: Code, _ message: String, location: Location? = nil) {
        self.code = code
        self.message = message
        self.location = location
    }

    package var description: String {
        guard let location else { return message }
        return "\(location.line):\(location.column): \(message)"
    }
}
