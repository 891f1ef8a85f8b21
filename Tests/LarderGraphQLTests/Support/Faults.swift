import LarderGraphQL

/// The syntax error of an executable document as `line:column: message`; nil where it parses.
func syntaxFault(_ text: String, limits: ParserLimits = .default) -> String? {
    do {
        _ = try Document(parsing: text, limits: limits)
        return nil
    } catch {
        return "\(error.location): \(error.message)"
    }
}

/// The error of a schema as `code line:column: message`; nil where it is one.
func schemaFault(_ texts: String...) -> String? {
    do {
        _ = try SchemaIndex(parsing: texts)
        return nil
    } catch {
        return "\(error.code) \(error.location.map(\.description) ?? "-"): \(error.message)"
    }
}

/// The value of the only argument of the only field of `{ f(a: …) }`.
func parsedLiteral(_ text: String) throws -> Literal? {
    let document = try Document(parsing: "{f(a:\(text))}")
    guard case .field(let field)? = document.operations.first?.selections.first else { return nil }
    return field.arguments.first?.value
}
