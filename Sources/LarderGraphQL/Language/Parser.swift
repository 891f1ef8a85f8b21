/// A recursive descent parser with one token of look-ahead. What executable documents and schema definitions
/// share stands here; their own rules stand in extensions.
struct Parser {
    /// The next token, not yet consumed.
    private(set) var token: Token
    private var lexer: Lexer
    private let limits: ParserLimits
    private var tokensLeft: Int
    private var nesting = 0

    init(_ text: String, sourceName: String?, limits: ParserLimits) throws(SyntaxError) {
        lexer = Lexer(text, sourceName: sourceName)
        self.limits = limits
        tokensLeft = limits.tokens
        token = Token(kind: .end, start: 0, end: 0, location: Location(line: 1, column: 1))
        try advance()
    }

    // MARK: - Tokens

    mutating func advance() throws(SyntaxError) {
        token = try lexer.next()
        guard token.kind != .end else { return }
        guard tokensLeft > 0 else {
            throw lexer.error("More than \(limits.tokens) tokens", at: token.location)
        }
        tokensLeft -= 1
    }

    /// Consumes a token of the kind, if that is what comes next.
    mutating func skip(_ kind: Token.Kind) throws(SyntaxError) -> Bool {
        guard token.kind == kind else { return false }
        try advance()
        return true
    }

    mutating func expect(_ kind: Token.Kind) throws(SyntaxError) {
        guard token.kind == kind else { throw unexpected(kind.expectation) }
        try advance()
    }

    /// Whether the next token is this name. Costs no allocation.
    func isKeyword(_ keyword: StaticString) -> Bool {
        guard token.kind == .name, token.end - token.start == keyword.utf8CodeUnitCount else { return false }
        return keyword.withUTF8Buffer { $0.elementsEqual(lexer.bytes[token.start..<token.end]) }
    }

    mutating func skipKeyword(_ keyword: StaticString) throws(SyntaxError) -> Bool {
        guard isKeyword(keyword) else { return false }
        try advance()
        return true
    }

    mutating func expectKeyword(_ keyword: StaticString) throws(SyntaxError) {
        guard try skipKeyword(keyword) else { throw unexpected("'\(keyword)'") }
    }

    mutating func parseName() throws(SyntaxError) -> String {
        guard token.kind == .name else { throw unexpected("Name") }
        let name = lexer.text(of: token)
        try advance()
        return name
    }

    /// The error that something else than the next token was expected.
    func unexpected(_ expectation: String) -> SyntaxError {
        error("Expected \(expectation), found \(found)", at: token.location)
    }

    func error(_ message: String, at location: Location) -> SyntaxError { lexer.error(message, at: location) }

    private var found: String {
        switch token.kind {
        case .end: "the end of the document"
        case .string, .blockString: "a string"
        default: "'\(lexer.text(of: token).prefix(64))'"
        }
    }

    // MARK: - Nesting

    /// Called before each recursion; pairs with ``leave()``. After an error the count no longer matters.
    mutating func enter() throws(SyntaxError) {
        guard nesting < limits.nesting else {
            throw error("Nested more than \(limits.nesting) levels deep", at: token.location)
        }
        nesting += 1
    }

    mutating func leave() { nesting -= 1 }

    // MARK: - Values

    mutating func parseStringValue() throws(SyntaxError) -> String {
        let value: String
        switch token.kind {
        case .string:
            value = StringValue.ofString(lexer.bytes, in: token.start + 1..<token.end - 1)
        case .blockString:
            value = StringValue.ofBlockString(lexer.bytes, in: token.start + 3..<token.end - 3)
        default:
            throw unexpected("String")
        }
        try advance()
        return value
    }

    /// - Parameter isConstant: Whether variables are out of place here.
    mutating func parseLiteral(isConstant: Bool) throws(SyntaxError) -> Literal {
        // What recurses stands apart from what does not, to keep the recursion's stack frames small.
        switch token.kind {
        case .bracketOpen: try parseList(isConstant: isConstant)
        case .braceOpen: try parseObject(isConstant: isConstant)
        default: try parseLeafLiteral(isConstant: isConstant)
        }
    }

    private mutating func parseLeafLiteral(isConstant: Bool) throws(SyntaxError) -> Literal {
        switch token.kind {
        case .dollar where !isConstant:
            try advance()
            return .variable(try parseName())
        case .dollar:
            throw error("Expected a constant value, found a variable", at: token.location)
        case .int:
            let text = lexer.text(of: token)
            try advance()
            return .int(text)
        case .float:
            let text = lexer.text(of: token)
            try advance()
            return .float(text)
        case .string, .blockString:
            return .string(try parseStringValue())
        case .name:
            if try skipKeyword("true") { return .boolean(true) }
            if try skipKeyword("false") { return .boolean(false) }
            if try skipKeyword("null") { return .null }
            return .enumeration(try parseName())
        default:
            throw unexpected("a value")
        }
    }

    private mutating func parseList(isConstant: Bool) throws(SyntaxError) -> Literal {
        try enter()
        try expect(.bracketOpen)
        var elements: [Literal] = []
        while try !skip(.bracketClose) {
            elements.append(try parseLiteral(isConstant: isConstant))
        }
        leave()
        return .list(elements)
    }

    private mutating func parseObject(isConstant: Bool) throws(SyntaxError) -> Literal {
        try enter()
        try expect(.braceOpen)
        var fields: [Literal.ObjectField] = []
        while try !skip(.braceClose) {
            let name = try parseName()
            try expect(.colon)
            fields.append(.init(name: name, value: try parseLiteral(isConstant: isConstant)))
        }
        leave()
        return .object(fields)
    }

    // MARK: - Types, arguments, directives

    mutating func parseType() throws(SyntaxError) -> TypeReference {
        let type: TypeReference
        if token.kind == .bracketOpen {
            try enter()
            try advance()
            type = .list(try parseType())
            try expect(.bracketClose)
            leave()
        } else {
            type = .named(try parseName())
        }
        return try skip(.exclamation) ? .nonNull(type) : type
    }

    /// The arguments in parentheses, where there are any; empty parentheses are an error.
    mutating func parseArguments(isConstant: Bool) throws(SyntaxError) -> [Argument] {
        guard try skip(.parenthesisOpen) else { return [] }
        var arguments: [Argument] = []
        repeat {
            let location = token.location
            let name = try parseName()
            try expect(.colon)
            let value = try parseLiteral(isConstant: isConstant)
            arguments.append(Argument(name: name, value: value, location: location))
        } while try !skip(.parenthesisClose)
        return arguments
    }

    mutating func parseDirectives(isConstant: Bool) throws(SyntaxError) -> [Directive] {
        var directives: [Directive] = []
        while token.kind == .at {
            let location = token.location
            try advance()
            let name = try parseName()
            let arguments = try parseArguments(isConstant: isConstant)
            directives.append(Directive(name: name, arguments: arguments, location: location))
        }
        return directives
    }
}
