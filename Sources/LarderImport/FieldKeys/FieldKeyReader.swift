import LarderGraphQL

/// A field with the arguments that its key had.
struct SourceField: Sendable, Hashable {
    /// As a document selects it: `hero(episode: EMPIRE)`.
    var selection: ExactText
    var name: String
    var type: ResolvedType
    var hasArguments: Bool
}

/// Reads the keys of fields, such as `hero(episode:EMPIRE)`, by the schema.
///
/// The text does not say where a value ends, nor of what kind it is: `a:1,b:2` may be two arguments or one. All ways in
/// which the schema allows to read it are tried, and only where there is exactly one is the field known.
struct FieldKeyReader {
    let schema: SchemaIndex
    let style: KeyStyle

    enum Failure: Error {
        case unknownField, notUnderstood, ambiguous

        var reason: Omission.Reason {
            switch self {
            case .unknownField: .unknownField
            case .notUnderstood: .argumentsNotUnderstood
            case .ambiguous: .argumentsAmbiguous
            }
        }
    }

    /// - Complexity: bounded, however the text is made: one that has too many ways to be read is ambiguous.
    func field(_ key: String, of type: SchemaIndex.TypeID) throws(Failure) -> SourceField {
        let bytes = Array(key.utf8)
        let open = bytes.firstIndex(of: UInt8(ascii: "("))
        let name = String(decoding: bytes[..<(open ?? bytes.count)], as: UTF8.self)
        guard let definition = schema.field(named: name, of: type) else { throw .unknownField }
        guard let open else {
            guard !definition.arguments.contains(where: \.isRequired) else { throw .notUnderstood }
            return SourceField(selection: ExactText(name), name: name, type: definition.type, hasArguments: false)
        }
        guard bytes.last == UInt8(ascii: ")") else { throw .notUnderstood }
        var readings = ArgumentReadings(schema: schema, style: style)
        let found = readings.items(bytes[(open + 1)..<(bytes.count - 1)], sorted(definition.arguments))
        guard !readings.isExhausted else { throw .ambiguous }
        guard let arguments = found.first else { throw .notUnderstood }
        guard found.count == 1 else { throw .ambiguous }
        guard !arguments.values.contains(where: \.isPartlyUnknown) else { throw .notUnderstood }
        var literals: [String] = []
        for argument in sorted(definition.arguments) {
            guard let value = arguments[argument.name] else { continue }
            literals.append("\(argument.name): \(schema.literal(value, as: argument.type))")
        }
        let selection = literals.isEmpty ? name : "\(name)(\(literals.joined(separator: ", ")))"
        return SourceField(
            selection: ExactText(selection), name: name, type: definition.type, hasArguments: !literals.isEmpty)
    }
}

extension Value {
    /// Whether some of it is printed in a form that is not read.
    fileprivate var isPartlyUnknown: Bool {
        switch self {
        case .list(let elements): elements.contains(where: \.isPartlyUnknown)
        case .object(let members): members.values.contains(where: \.isPartlyUnknown)
        default: self == ArgumentReadings.unknown
        }
    }
}

/// In the order in which keys have them.
func sorted(_ inputs: [InputDefinition]) -> [InputDefinition] { inputs.sorted { $0.name < $1.name } }

extension SchemaIndex {
    /// A value as a document has it. The recursion is as deep as the value, which a key's text has bounded.
    func literal(_ value: Value, as type: ResolvedType) -> String {
        switch value {
        case .list(let elements):
            return "[" + elements.map { literal($0, as: type.element ?? type) }.joined(separator: ", ") + "]"
        case .object(let members):
            let fields = members.sorted { $0.key < $1.key }.map { name, value in
                let field = types[type.named].inputField(named: name)
                return "\(name): \(literal(value, as: field?.type ?? type))"
            }
            return "{" + fields.joined(separator: ", ") + "}"
        case .string(let text):
            if types[type.named].kind == .enumeration { return text }
            var bytes: [UInt8] = []
            appendJSONString(text, to: &bytes)
            return String(decoding: bytes, as: UTF8.self)
        case .float(let number): return number.description
        case .int(let number): return String(number)
        case .number(let text): return text
        case .boolean(let flag): return flag ? "true" : "false"
        case .null: return "null"
        }
    }
}
