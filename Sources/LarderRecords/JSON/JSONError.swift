/// Why a text is not the JSON that was expected.
public struct JSONError: Error, Sendable, Hashable {
    /// What is wrong with the text; the error's description says it in words.
    package enum Reason: String, Sendable {
        /// The text is no JSON there.
        case unexpectedEnd, unexpectedByte, invalidUTF8, invalidEscape, controlCharacter, invalidNumber, trailingBytes
        /// It is JSON that is not taken.
        case nestedTooDeep, duplicateKey, tooLarge
    }

    /// What is wrong there.
    package var reason: Reason
    /// The byte at which reading stopped, from 0.
    public var offset: Int

    init(_ reason: Reason, at offset: Int) {
        self.reason = reason
        self.offset = offset
    }
}

extension JSONError: CustomStringConvertible {
    /// What is wrong, and at which byte.
    public var description: String {
        let what =
            switch reason {
            case .unexpectedEnd: "the JSON text ends in the middle of a value"
            case .unexpectedByte: "this byte cannot stand here in JSON"
            case .invalidUTF8: "a string is not valid UTF-8"
            case .invalidEscape: "a string holds an escape that JSON does not know"
            case .controlCharacter: "a string holds a control character that must be escaped"
            case .invalidNumber: "this is not a JSON number"
            case .nestedTooDeep: "values are nested too deep: \(JSONScanner.maximumDepth) levels are read"
            case .trailingBytes: "something follows the JSON value"
            case .duplicateKey: "an object has the same key twice"
            case .tooLarge: "the JSON text has 2 GiB or more"
            }
        return "\(what), at byte \(offset)"
    }
}
