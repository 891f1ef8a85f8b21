import LarderGraphQL
import LarderTestSupport

@testable import LarderImport

/// Prints arguments as the libraries do, and makes some up. What they print is a fact of theirs; see `KeyStyle`.
struct KeyPrinter {
    let schema: SchemaIndex
    let style: KeyStyle

    func key(_ name: String, _ arguments: [String: Value]) -> String {
        let text = items(arguments)
        return text.isEmpty ? name : "\(name)(\(text))"
    }

    private func items(_ members: [String: Value]) -> String {
        members.filter { style.printsNull || $0.value != .null }.sorted { $0.key < $1.key }.map { name, value in
            switch value {
            case .object(let inner): "[\(name):\(items(inner))]"
            case .list(let elements): "\(name):\(list(elements))"
            default: "\(name):\(scalar(value))"
            }
        }.joined(separator: ",")
    }

    private func list(_ elements: [Value]) -> String {
        let objects = elements.compactMap { if case .object(let members) = $0 { members } else { nil } }
        if objects.count == elements.count, style == .apollo { return "[\(objects.map(items).joined(separator: ","))]" }
        return "[\(elements.map(element).joined(separator: ", "))]"
    }

    private func element(_ value: Value) -> String {
        switch value {
        case .null: "<null>"
        case .string(let text): style == .apollo ? text : text.debugDescription
        // As Swift prints a dictionary, in whatever order.
        case .object(let members): "[\(members.map { "\"\($0)\": \(element($1))" }.joined(separator: ", "))]"
        default: scalar(value)
        }
    }

    private func scalar(_ value: Value) -> String {
        switch value {
        case .string(let text): text
        case .int(let number): String(number)
        case .float(let number): number.description
        case .boolean(let flag): flag ? "true" : "false"
        default: "null"
        }
    }
}

/// Arguments that fit a schema, with texts that look like parts of keys.
struct ArgumentMaker {
    let schema: SchemaIndex
    var random: SeededNumbers

    mutating func arguments(_ inputs: [InputDefinition], depth: Int = 0) -> [String: Value] {
        var made: [String: Value] = [:]
        for input in inputs where input.isRequired || Int.random(in: 0..<4, using: &random) == 0 {
            made[input.name] = value(input.type, depth)
        }
        return made
    }

    private mutating func value(_ type: ResolvedType, _ depth: Int) -> Value {
        if !type.isNonNull, Int.random(in: 0..<10, using: &random) == 0 { return .null }
        if let element = type.element {
            return .list((0..<Int.random(in: 0..<4, using: &random)).map { _ in value(element, depth) })
        }
        let named = schema.types[type.named]
        switch named.name {
        case "Int": return .int(Int64.random(in: -20...20, using: &random))
        case "Float": return .float(Double(Int.random(in: -9...9, using: &random)) / 4)
        case "Boolean": return .boolean(Bool.random(using: &random))
        default: break
        }
        if named.kind == .enumeration { return .string(named.enumValues.randomElement(using: &random) ?? "") }
        if named.kind == .inputObject {
            return .object(depth > 2 ? [:] : arguments(named.inputFields, depth: depth + 1))
        }
        let pieces = [
            "a", "b", "7", ",", ", ", ":", "[", "]", "(", ")", "text:", ",text:x", ",first:1", "[filter:", ",b:", "\"",
            "null", "<null>", "true", "é", ".", "\\", "\n", "course:MAIN",
        ]
        return .string(
            (0..<Int.random(in: 0..<4, using: &random)).map { _ in
                pieces.randomElement(using: &random) ?? ""
            }.joined())
    }
}
