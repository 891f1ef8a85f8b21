import LarderGraphQL

/// Reads the YAML that tools write into configuration files: block mappings and sequences, scalars that are plain or
/// quoted, lists of scalars in brackets, comments. Anything else of YAML is refused with its line, and nothing is guessed.
/// A scalar is always a string, `null` and `~` excepted.
struct YAMLReader {
    struct Fault: Error {
        var line: Int
        var text: String
    }

    private struct Line {
        var number: Int
        var indent: Int
        var text: Substring
    }

    /// No configuration nests deeper.
    private static let maximumDepth = 32

    private var lines: [Line] = []
    private var next = 0

    static func read(_ text: String) throws(Fault) -> Value {
        var reader = YAMLReader()
        for (offset, line) in text.split(separator: /\r\n|\r|\n/, omittingEmptySubsequences: false).enumerated() {
            let indent = line.prefix { $0 == " " }.count
            let rest = try uncommented(line.dropFirst(indent), offset + 1)
            guard !rest.isEmpty, !(rest == "---" && reader.lines.isEmpty && indent == 0) else { continue }
            guard rest.first != "\t" else { throw Fault(line: offset + 1, text: "a tab indents this; use spaces") }
            reader.lines.append(Line(number: offset + 1, indent: indent, text: rest))
        }
        guard let first = reader.lines.first else { return .object([:]) }
        let value = try reader.block(at: first.indent, depth: 0)
        if reader.next < reader.lines.count { throw reader.unexpected(reader.lines[reader.next]) }
        return value
    }

    /// Without a comment, and without white space at the end.
    private static func uncommented(_ text: Substring, _ number: Int) throws(Fault) -> Substring {
        var quote: Character?
        var (end, last): (Substring.Index, Character) = (text.startIndex, " ")
        var escapes = false
        for index in text.indices {
            let character = text[index]
            if let open = quote {
                if escapes {
                    escapes = false
                } else if open == "\"", character == "\\" {
                    escapes = true
                } else if character == open {
                    quote = nil
                }
            } else if character == "#", last == " " || last == "\t" {
                break
            } else if character == "\"" || character == "'", " \t:[,-".contains(last) {
                quote = character
            }
            if character != " ", character != "\t" { end = text.index(after: index) }
            last = character
        }
        guard quote == nil else { throw Fault(line: number, text: "a quoted text does not end in its line") }
        return text[..<end]
    }

    private func unexpected(_ line: Line) -> Fault {
        Fault(line: line.number, text: "this is indented as nothing before it")
    }

    /// The lines of one indentation, and what is below them.
    private mutating func block(at indent: Int, depth: Int) throws(Fault) -> Value {
        guard depth < Self.maximumDepth else {
            throw Fault(line: lines[next].number, text: "this is nested more than \(Self.maximumDepth) deep")
        }
        return isItem(lines[next]) ? try sequence(at: indent) : try mapping(at: indent, depth: depth)
    }

    private func isItem(_ line: Line) -> Bool { line.text == "-" || line.text.hasPrefix("- ") }

    private mutating func sequence(at indent: Int) throws(Fault) -> Value {
        var items: [Value] = []
        while next < lines.count, lines[next].indent == indent, isItem(lines[next]) {
            let line = lines[next]
            next += 1
            let text = line.text.dropFirst().drop { $0 == " " }
            let begins = try key(of: text, line.number) != nil
            guard !text.isEmpty, !begins else {
                throw Fault(
                    line: line.number, text: "a list has something else than texts in it, which is not read here")
            }
            items.append(try scalar(text, line.number))
        }
        return .list(items)
    }

    private mutating func mapping(at indent: Int, depth: Int) throws(Fault) -> Value {
        var members: [String: Value] = [:]
        while next < lines.count, lines[next].indent == indent, !isItem(lines[next]) {
            let line = lines[next]
            guard let (name, rest) = try key(of: line.text, line.number) else {
                throw Fault(line: line.number, text: "this is no `name: value`")
            }
            next += 1
            var value = Value.null
            if !rest.isEmpty {
                value = try scalar(rest, line.number)
            } else if next < lines.count {
                let below = lines[next]
                // The items of a list may stand below the first letter of its name.
                if below.indent > indent || below.indent == indent && isItem(below) {
                    value = try block(at: below.indent, depth: depth + 1)
                }
            }
            if next < lines.count, lines[next].indent > indent { throw unexpected(lines[next]) }
            guard members.updateValue(value, forKey: name) == nil else {
                throw Fault(line: line.number, text: "this name is here twice")
            }
        }
        return .object(members)
    }

    /// The name that begins a line, and what follows its colon; nil where there is none.
    private func key(of text: Substring, _ number: Int) throws(Fault) -> (name: String, rest: Substring)? {
        if let quote = text.first, quote == "\"" || quote == "'" {
            let (name, rest) = try quoted(text, number)
            let after = rest.drop { $0 == " " }
            guard after.first == ":" else { return nil }
            return (name, after.dropFirst().drop { $0 == " " || $0 == "\t" })
        }
        guard text.first.map({ !"[{".contains($0) }) == true,
            let colon = text.indices.first(where: { index in
                let after = text.index(after: index)
                return text[index] == ":" && (after == text.endIndex || text[after] == " " || text[after] == "\t")
            })
        else { return nil }
        let rest = text[text.index(after: colon)...].drop { $0 == " " || $0 == "\t" }
        guard case .string(let name) = try scalar(text[..<colon], number) else {
            throw Fault(line: number, text: "this is no name")
        }
        return (name, rest)
    }

    private func scalar(_ text: Substring, _ number: Int) throws(Fault) -> Value {
        guard let first = text.first else { return .null }
        switch first {
        case "\"", "'":
            let (value, rest) = try quoted(text, number)
            guard rest.allSatisfy({ $0 == " " }) else {
                throw Fault(line: number, text: "something follows a quoted text")
            }
            return .string(value)
        case "[": return .list(try flow(text, number))
        case "{" where text == "{}": return .object([:])
        case "{", "|", ">", "&", "*", "!", "%", "@", "`", "]", "}", ",", "?":
            throw Fault(
                line: number, text: "a value that begins with \(first) is not read here; write it plainly, or quote it")
        default:
            let plain = text.reversed().drop { $0 == " " }.reversed()
            return plain.elementsEqual("null") || plain.elementsEqual("~") ? .null : .string(String(plain))
        }
    }

    /// A list in brackets, of scalars.
    private func flow(_ text: Substring, _ number: Int) throws(Fault) -> [Value] {
        var items: [Value] = []
        var rest = text.dropFirst().drop { $0 == " " }
        while let first = rest.first, first != "]" {
            if first == "\"" || first == "'" {
                let (value, after) = try quoted(rest, number)
                items.append(.string(value))
                rest = after.drop { $0 == " " }
            } else {
                let item = rest.prefix { $0 != "," && $0 != "]" }
                guard !item.contains(where: { "[{:".contains($0) }) else {
                    throw Fault(line: number, text: "a list in brackets has something else than texts in it")
                }
                items.append(try scalar(item, number))
                rest = rest[item.endIndex...]
            }
            guard rest.first == "," || rest.first == "]" else {
                throw Fault(line: number, text: "a list in brackets does not end in its line")
            }
            if rest.first == "," { rest = rest.dropFirst().drop { $0 == " " } }
        }
        guard rest == "]" else { throw Fault(line: number, text: "a list in brackets does not end its line") }
        return items
    }

    private func quoted(_ text: Substring, _ number: Int) throws(Fault) -> (value: String, rest: Substring) {
        guard let quote = text.first else { return ("", text) }
        var (value, rest) = ("", text.dropFirst())
        while let character = rest.popFirst() {
            if character == quote {
                guard quote == "'", rest.first == "'" else { return (value, rest) }
                value.append("'")
                rest = rest.dropFirst()
            } else if character == "\\", quote == "\"" {
                guard let escaped = rest.popFirst(), let meant = Self.escapes[escaped] else {
                    throw Fault(line: number, text: "a backslash is followed by what is not read here")
                }
                value.append(meant)
            } else {
                value.append(character)
            }
        }
        throw Fault(line: number, text: "a quoted text does not end in its line")
    }

    private static let escapes: [Character: Character] = [
        "\\": "\\", "\"": "\"", "/": "/", "n": "\n", "t": "\t",
    ]
}
