extension Value {
    /// How deep objects and lists may nest in what is read, sent, stored or taken for a variable. What walks a value
    /// recurses as deep, which fits the smallest stack of any thread (512 KiB) in debug builds too, where a level takes
    /// 2.7 KiB at most.
    package static let greatestDepth = 128

    /// Why JSON cannot say this value, or nil: what only a program can make, and no text.
    ///
    /// To be asked before anything walks a value that a program has made. The recursion ends at the limit.
    package var fault: String? { fault(depth: 0) }

    private func fault(depth: Int) -> String? {
        switch self {
        case .null, .boolean, .int, .string: return nil
        case .float(let value): return value.isFinite ? nil : "\(value) is no number that JSON or GraphQL has"
        case .number(let text): return isNumber(text) ? nil : "\"\(text.prefix(40))\" is no number"
        case .list(let elements):
            guard depth < Self.greatestDepth else { return Self.tooDeep }
            for element in elements {
                if let fault = element.fault(depth: depth + 1) { return fault }
            }
            return nil
        case .object(let members):
            guard depth < Self.greatestDepth else { return Self.tooDeep }
            for member in members.values {
                if let fault = member.fault(depth: depth + 1) { return fault }
            }
            return nil
        }
    }

    private static var tooDeep: String { "objects and lists nest deeper than \(greatestDepth) levels" }
}

/// Whether a text is a number in the grammar that JSON and GraphQL share.
private func isNumber(_ text: String) -> Bool {
    var rest = text.utf8[...]
    func digits() -> Int {
        let count = rest.prefix { $0 >= UInt8(ascii: "0") && $0 <= UInt8(ascii: "9") }.count
        rest = rest.dropFirst(count)
        return count
    }
    func skip(_ characters: String) -> Bool {
        guard let first = rest.first, characters.utf8.contains(first) else { return false }
        rest = rest.dropFirst()
        return true
    }
    _ = skip("-")
    let startsWithZero = rest.first == UInt8(ascii: "0")
    let whole = digits()
    guard whole > 0, !startsWithZero || whole == 1 else { return false }
    if skip("."), digits() == 0 { return false }
    if skip("eE") {
        _ = skip("+-")
        guard digits() > 0 else { return false }
    }
    return rest.isEmpty
}
