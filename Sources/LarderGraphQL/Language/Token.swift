/// A lexical token, as a range of the text's UTF-8 bytes.
struct Token {
    enum Kind: UInt8 {
        case end
        case exclamation, dollar, ampersand, parenthesisOpen, parenthesisClose, spread, colon, equals, at
        case bracketOpen, bracketClose, braceOpen, braceClose, pipe
        case name, int, float, string, blockString
    }

    var kind: Kind
    var start: Int
    var end: Int
    var location: Location
}

extension Token.Kind {
    /// What a message calls a token of this kind that was expected.
    var expectation: String {
        switch self {
        case .end: "the end of the document"
        case .exclamation: "'!'"
        case .dollar: "'$'"
        case .ampersand: "'&'"
        case .parenthesisOpen: "'('"
        case .parenthesisClose: "')'"
        case .spread: "'...'"
        case .colon: "':'"
        case .equals: "'='"
        case .at: "'@'"
        case .bracketOpen: "'['"
        case .bracketClose: "']'"
        case .braceOpen: "'{'"
        case .braceClose: "'}'"
        case .pipe: "'|'"
        case .name: "Name"
        case .int: "Int"
        case .float: "Float"
        case .string, .blockString: "String"
        }
    }
}
