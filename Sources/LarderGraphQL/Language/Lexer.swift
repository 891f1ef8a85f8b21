/// Cuts UTF-8 text into the lexical tokens of the October 2021 specification (section 2.1).
///
/// Characters outside ASCII stand in strings and comments only; a byte order mark is skipped wherever it stands.
struct Lexer {
    let bytes: [UInt8]
    let sourceName: String?

    private var position = 0
    private var line = 1
    /// The byte offset at which the current line would start if each scalar before `position` took one byte.
    private var columnOrigin = 0

    init(_ text: String, sourceName: String?) {
        bytes = Array(text.utf8)
        self.sourceName = sourceName
        if hasByteOrderMark(at: 0) {
            position = 3
            columnOrigin = 3
        }
    }

    /// The next token; of kind `end`, again and again, after the last one. Time: linear in the bytes passed.
    mutating func next() throws(SyntaxError) -> Token {
        skipIgnored()
        let start = position
        let location = location(of: start)
        guard start < bytes.count else { return Token(kind: .end, start: start, end: start, location: location) }
        let kind: Token.Kind
        switch bytes[start] {
        case UInt8(ascii: "!"): kind = .exclamation
        case UInt8(ascii: "$"): kind = .dollar
        case UInt8(ascii: "&"): kind = .ampersand
        case UInt8(ascii: "("): kind = .parenthesisOpen
        case UInt8(ascii: ")"): kind = .parenthesisClose
        case UInt8(ascii: ":"): kind = .colon
        case UInt8(ascii: "="): kind = .equals
        case UInt8(ascii: "@"): kind = .at
        case UInt8(ascii: "["): kind = .bracketOpen
        case UInt8(ascii: "]"): kind = .bracketClose
        case UInt8(ascii: "{"): kind = .braceOpen
        case UInt8(ascii: "}"): kind = .braceClose
        case UInt8(ascii: "|"): kind = .pipe
        case UInt8(ascii: "."):
            guard byte(at: start + 1) == UInt8(ascii: "."), byte(at: start + 2) == UInt8(ascii: ".") else {
                throw unexpectedCharacter(at: start)
            }
            position = start + 3
            return Token(kind: .spread, start: start, end: position, location: location)
        case UInt8(ascii: "\""):
            let isBlock = byte(at: start + 1) == UInt8(ascii: "\"") && byte(at: start + 2) == UInt8(ascii: "\"")
            if isBlock { try skipBlockString(from: location) } else { try skipString() }
            return Token(kind: isBlock ? .blockString : .string, start: start, end: position, location: location)
        case UInt8(ascii: "-"), UInt8(ascii: "0")...UInt8(ascii: "9"):
            let kind = try skipNumber()
            return Token(kind: kind, start: start, end: position, location: location)
        case let byte where byte.isNameStart:
            repeat { position += 1 } while position < bytes.count && bytes[position].isNameContinue
            return Token(kind: .name, start: start, end: position, location: location)
        default:
            throw unexpectedCharacter(at: start)
        }
        position = start + 1
        return Token(kind: kind, start: start, end: position, location: location)
    }

    /// The text of a token as it stands in the source.
    func text(of token: Token) -> String {
        String(decoding: bytes[token.start..<token.end], as: UTF8.self)
    }

    func error(_ message: String, at location: Location) -> SyntaxError {
        SyntaxError(message: message, location: location, sourceName: sourceName)
    }

    func byte(at index: Int) -> UInt8? { index < bytes.count ? bytes[index] : nil }

    // MARK: - What lies between tokens

    private mutating func skipIgnored() {
        while position < bytes.count {
            switch bytes[position] {
            case UInt8(ascii: " "), UInt8(ascii: "\t"), UInt8(ascii: ","):
                position += 1
            case UInt8(ascii: "\n"), UInt8(ascii: "\r"):
                skipLineTerminator()
            case UInt8(ascii: "#"):
                while position < bytes.count, !bytes[position].isLineTerminator { skipByte() }
            case 0xEF where hasByteOrderMark(at: position):
                position += 3
                columnOrigin += 2
            default:
                return
            }
        }
    }

    /// Passes one byte of a string or a comment. The continuation bytes of a scalar do not move the column.
    private mutating func skipByte() {
        if bytes[position] & 0xC0 == 0x80 { columnOrigin += 1 }
        position += 1
    }

    private mutating func skipLineTerminator() {
        let isPair = bytes[position] == UInt8(ascii: "\r") && byte(at: position + 1) == UInt8(ascii: "\n")
        position += isPair ? 2 : 1
        line += 1
        columnOrigin = position
    }

    private func hasByteOrderMark(at index: Int) -> Bool {
        byte(at: index) == 0xEF && byte(at: index + 1) == 0xBB && byte(at: index + 2) == 0xBF
    }

    private func location(of index: Int) -> Location { Location(line: line, column: index - columnOrigin + 1) }

    private func unexpectedCharacter(at index: Int) -> SyntaxError {
        error("Unexpected character \(description(ofCharacterAt: index))", at: location(of: index))
    }

    /// The character at a byte in quotes, or its code point where it cannot be shown; or the end.
    func description(ofCharacterAt index: Int) -> String {
        guard index < bytes.count else { return "the end of the document" }
        let end = min(index + 4, bytes.count)
        guard let scalar = String(decoding: bytes[index..<end], as: UTF8.self).unicodeScalars.first else { return "" }
        if scalar.value < 0x20 || (0x7F...0xA0).contains(scalar.value) || scalar.value == 0xFEFF {
            let digits = String(scalar.value, radix: 16, uppercase: true)
            return "U+" + String(repeating: "0", count: max(0, 4 - digits.count)) + digits
        }
        return "'\(scalar)'"
    }

    // MARK: - Numbers

    private mutating func skipNumber() throws(SyntaxError) -> Token.Kind {
        var kind = Token.Kind.int
        if bytes[position] == UInt8(ascii: "-") { position += 1 }
        if byte(at: position) == UInt8(ascii: "0") {
            position += 1
            if let digit = byte(at: position), digit.isDigit {
                throw invalidNumber("unexpected digit after 0: ")
            }
        } else {
            try skipDigits()
        }
        if byte(at: position) == UInt8(ascii: ".") {
            kind = .float
            position += 1
            try skipDigits()
        }
        if let byte = byte(at: position), byte | 0x20 == UInt8(ascii: "e") {
            kind = .float
            position += 1
            if let sign = self.byte(at: position), sign == UInt8(ascii: "+") || sign == UInt8(ascii: "-") {
                position += 1
            }
            try skipDigits()
        }
        if let byte = byte(at: position), byte == UInt8(ascii: ".") || byte.isNameStart {
            throw invalidNumber("it is followed by ")
        }
        return kind
    }

    private mutating func skipDigits() throws(SyntaxError) {
        guard let first = byte(at: position), first.isDigit else {
            throw invalidNumber("expected a digit, found ")
        }
        while let next = byte(at: position), next.isDigit { position += 1 }
    }

    private func invalidNumber(_ what: String) -> SyntaxError {
        error("Invalid number, \(what)\(description(ofCharacterAt: position))", at: location(of: position))
    }

    // MARK: - Strings

    private mutating func skipString() throws(SyntaxError) {
        position += 1
        while position < bytes.count {
            switch bytes[position] {
            case UInt8(ascii: "\""):
                position += 1
                return
            case UInt8(ascii: "\\"):
                let length = try escapeLength()
                position += length
            case UInt8(ascii: "\n"), UInt8(ascii: "\r"):
                throw error("Unterminated string", at: location(of: position))
            case let byte where byte < 0x20 && byte != UInt8(ascii: "\t"):
                throw invalidCharacterInString()
            default:
                skipByte()
            }
        }
        throw error("Unterminated string", at: location(of: position))
    }

    /// The length of the valid escape sequence that starts at `position`.
    private func escapeLength() throws(SyntaxError) -> Int {
        if let escape = EscapeSequence(in: bytes, at: position) { return escape.length }
        var end = position + 1
        if byte(at: end) == UInt8(ascii: "u") {
            end += 1
            while end < position + 10, let byte = byte(at: end), byte.isHexadecimal || byte == UInt8(ascii: "{") {
                end += 1
            }
            if byte(at: end) == UInt8(ascii: "}") { end += 1 }
            let text = String(decoding: bytes[position..<end], as: UTF8.self)
            throw error("Invalid Unicode escape sequence '\(text)'", at: location(of: position))
        }
        let what = end < bytes.count ? description(ofCharacterAt: end) : "at the end of the document"
        throw error("Invalid escape sequence, '\\' before \(what)", at: location(of: position))
    }

    private mutating func skipBlockString(from start: Location) throws(SyntaxError) {
        position += 3
        while position < bytes.count {
            switch bytes[position] {
            case UInt8(ascii: "\"") where isTripleQuote(at: position):
                position += 3
                return
            case UInt8(ascii: "\\") where isTripleQuote(at: position + 1):
                position += 4
            case UInt8(ascii: "\n"), UInt8(ascii: "\r"):
                skipLineTerminator()
            case let byte where byte < 0x20 && byte != UInt8(ascii: "\t"):
                throw invalidCharacterInString()
            default:
                skipByte()
            }
        }
        throw error("Unterminated block string, which starts at \(start)", at: location(of: position))
    }

    private func isTripleQuote(at index: Int) -> Bool {
        byte(at: index) == UInt8(ascii: "\"") && byte(at: index + 1) == UInt8(ascii: "\"")
            && byte(at: index + 2) == UInt8(ascii: "\"")
    }

    private func invalidCharacterInString() -> SyntaxError {
        error("Invalid character \(description(ofCharacterAt: position)) in a string", at: location(of: position))
    }
}
