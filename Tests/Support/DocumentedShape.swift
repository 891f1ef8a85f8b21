import Foundation

/// What a value of `--json` may be, as a table of CommandLine.md has it: `changes: {epoch, last, first}`.
package indirect enum DocumentedShape {
    case any
    case list(DocumentedShape)
    /// - Parameter isOpen: Whether it ends in `…`: there may be more.
    case object([String: DocumentedShape], isOpen: Bool)

    package struct Unreadable: Error { package var text: String }

    /// The rows of the tables of results, by their first cell.
    ///
    /// In a row the members come first, each in a code span; after the first semicolon a span such as `failure: {code}`
    /// says of what a member that was named is made. What stands in parentheses are remarks. "as one of `verb`" takes
    /// over the members of the elements of the first list of another row.
    package static func all() throws -> [String: DocumentedShape] {
        let file = packageRoot.appending(path: "Sources/Larder/Larder.docc/CommandLine.md")
        let lines = try String(contentsOf: file, encoding: .utf8).split(
            separator: "\n", omittingEmptySubsequences: false)
        var (shapes, isTable) = ([String: DocumentedShape](), false)
        for line in lines {
            guard line.hasPrefix("|") else {
                isTable = false
                continue
            }
            if line == "| verb | `result` |" { isTable = true }
            let cells = line.replacing("\\|", with: "¦").split(separator: "|").map {
                $0.trimmingCharacters(in: .whitespaces)
            }
            guard isTable, cells.count == 2, cells[0] != "verb", cells[0] != "---" else { continue }
            shapes[cells[0]] = try row(cells[1], shapes)
        }
        return shapes
    }

    private static func row(_ cell: String, _ others: [String: DocumentedShape]) throws -> DocumentedShape {
        var members: [String: DocumentedShape] = [:]
        var (depth, isPastMembers, rest) = (0, false, cell[...])
        if let base = cell.firstMatch(of: /as one of `([^`]+)`/) {
            guard case .object(let other, _)? = others["`\(base.1)`"],
                case .list(.object(let element, _))? = other.values.first(where: {
                    if case .list = $0 { true } else { false }
                })
            else { throw Unreadable(text: cell) }
            members = element
        }
        while let character = rest.popFirst() {
            switch character {
            case "(": depth += 1
            case ")": depth -= 1
            case ";" where depth == 0: isPastMembers = true
            case "`":
                guard let end = rest.firstIndex(of: "`") else { throw Unreadable(text: cell) }
                let span = rest[..<end]
                rest = rest[rest.index(after: end)...]
                guard depth == 0, var parsed = read(span) else { continue }
                if isPastMembers {
                    parsed = parsed.filter { if case .any = $0.value { false } else { true } }
                    members = members.mapValues { $0.refined(by: parsed) }
                    for (name, shape) in parsed where members[name] != nil { members[name] = shape }
                } else {
                    members.merge(parsed) { $1 }
                }
            default: break
            }
        }
        return .object(members, isOpen: false)
    }

    private func refined(by parts: [String: DocumentedShape]) -> DocumentedShape {
        switch self {
        case .any: .any
        case .list(let element): .list(element.refined(by: parts))
        case .object(let members, let isOpen):
            .object(
                Dictionary(
                    uniqueKeysWithValues: members.map { name, shape in
                        if case .any = shape, let part = parts[name] { return (name, part) }
                        return (name, shape.refined(by: parts))
                    }), isOpen: isOpen)
        }
    }

    /// The members that a code span names; nil where it is something else.
    private static func read(_ span: Substring) -> [String: DocumentedShape]? {
        var rest = span
        guard case .object(let members, false)? = readMembers(&rest), rest.isEmpty, !members.isEmpty else { return nil }
        return members
    }

    private static func readMembers(_ rest: inout Substring) -> DocumentedShape? {
        var (found, isOpen) = ([String: DocumentedShape](), false)
        while true {
            rest = rest.drop { $0 == " " }
            let name = rest.prefix { ($0.isLetter || $0.isNumber) && $0.isASCII }
            rest = rest.dropFirst(name.count)
            if name.isEmpty, rest.first == "…" {
                rest.removeFirst()
                isOpen = true
            } else if name.isEmpty {
                return nil
            } else if rest.first == ":" {
                rest.removeFirst()
                guard let shape = readValue(&rest) else { return nil }
                found[String(name)] = shape
            } else {
                found[String(name)] = .any
            }
            guard rest.first == "," else { return .object(found, isOpen: isOpen) }
            rest.removeFirst()
        }
    }

    private static func readValue(_ rest: inout Substring) -> DocumentedShape? {
        rest = rest.drop { $0 == " " }
        guard let start = rest.popFirst() else { return nil }
        switch start {
        case "{":
            guard let shape = readMembers(&rest), rest.popFirst() == "}" else { return nil }
            return shape
        case "[":
            guard let element = readValue(&rest), rest.popFirst() == "]" else { return nil }
            return .list(element)
        default: return nil
        }
    }

    // MARK: Comparing

    /// What is printed and not documented, and what is of another type.
    ///
    /// - Parameter seen: The paths of the members that were printed.
    package func differences(
        from value: Any, at path: String = "", types: [String: Set<DocumentedType>], seen: inout Set<String>
    ) -> [String] {
        switch self {
        case .any:
            let name = path.split(separator: ".").last.map(String.init) ?? ""
            let known = DocumentedType.types(of: name, types)
            if value is NSNull || known.contains(where: { $0.admits(value) }) { return [] }
            return ["\(path) is not of type \(known.map(\.rawValue).sorted().joined(separator: " or ")): \(value)"]
        case .list(let element):
            if value is NSNull { return [] }
            guard let values = value as? [Any] else { return ["\(path) is no list: \(value)"] }
            var found: [String] = []
            for value in values { found += element.differences(from: value, at: path, types: types, seen: &seen) }
            return found
        case .object(let members, let isOpen):
            if value is NSNull { return [] }
            guard let values = value as? [String: Any] else { return ["\(path) is no object: \(value)"] }
            var found: [String] = []
            for (name, value) in values {
                let place = "\(path).\(name)"
                seen.insert(place)
                if let shape = members[name] {
                    found += shape.differences(from: value, at: place, types: types, seen: &seen)
                } else if !isOpen {
                    found.append("\(place) is not documented")
                }
            }
            return found
        }
    }

    /// The paths of all documented members.
    package func paths(at path: String = "") -> Set<String> {
        switch self {
        case .any: return []
        case .list(let element): return element.paths(at: path)
        case .object(let members, _):
            return members.reduce(into: []) { paths, member in
                paths.insert("\(path).\(member.key)")
                paths.formUnion(member.value.paths(at: "\(path).\(member.key)"))
            }
        }
    }
}

/// Of what type a member's value may be, as the table of types in CommandLine.md has it.
package enum DocumentedType: String, CaseIterable {
    case boolean, integer
    case time = "time: ISO 8601 text"
    case texts = "list of texts"
    case json = "JSON value"
    case text

    /// The types of each member that the table names.
    package static func all() throws -> [String: Set<DocumentedType>] {
        let file = packageRoot.appending(path: "Sources/Larder/Larder.docc/CommandLine.md")
        var types: [String: Set<DocumentedType>] = [:]
        for line in try String(contentsOf: file, encoding: .utf8).split(separator: "\n") {
            for type in allCases where line.hasPrefix("| \(type.rawValue) | ") {
                for name in line.matches(of: /`([A-Za-z0-9]+)`/) { types[String(name.1), default: []].insert(type) }
            }
        }
        return types
    }

    /// What a member may be: what the table says of its name, otherwise text.
    static func types(of name: String, _ all: [String: Set<DocumentedType>]) -> Set<DocumentedType> {
        if let types = all[name] { return types }
        return name.starts(with: /(is|has)[A-Z]/) ? [.boolean] : [.text]
    }

    func admits(_ value: Any) -> Bool {
        let number = (value as? NSNumber).map { String(cString: $0.objCType) }
        return switch self {
        case .boolean: number == "c"
        case .integer: number != nil && number != "c" && number != "d"
        case .time: (value as? String).flatMap { try? Date($0, strategy: .iso8601) } != nil
        case .texts: value is [String]
        case .json: true
        case .text: value is String
        }
    }
}

/// Compares what a verb prints, in each state that a test brings about, with what is documented.
package struct DocumentedResults {
    private let shapes: [String: DocumentedShape]
    private let types: [String: Set<DocumentedType>]
    private var seen: [String: Set<String>] = [:]
    /// What is printed and not documented, or not printed and documented.
    package private(set) var problems: [String] = []

    package init() throws { (shapes, types) = (try DocumentedShape.all(), try DocumentedType.all()) }

    /// - Parameters:
    ///   - row: The first cell of the verb's row.
    ///   - output: What the verb printed: a line for each result.
    package mutating func compare(_ row: String, _ output: String) throws {
        guard let shape = shapes[row] else { throw DocumentedShape.Unreadable(text: "no row \(row)") }
        for line in output.split(separator: "\n") {
            let object = try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any]
            guard let result = object?["result"] else { throw DocumentedShape.Unreadable(text: "no result: \(line)") }
            var paths = seen[row] ?? []
            problems += shape.differences(from: result, types: types, seen: &paths).map { "\(row): \($0)" }
            seen[row] = paths
        }
    }

    /// Says of each row that was compared what it documents and nothing printed.
    package mutating func finish() {
        for (row, paths) in seen.sorted(by: { $0.key < $1.key }) {
            for path in (shapes[row]?.paths() ?? []).subtracting(paths).sorted() {
                problems.append("\(row): \(path) is documented and was never printed")
            }
        }
    }
}
