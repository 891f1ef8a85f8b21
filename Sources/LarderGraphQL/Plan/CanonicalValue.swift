/// Appends an argument's value in the one form that all ways of writing it share.
///
/// Keys of objects ascend; an ID is a string and a Float has a point whichever way they were given; one value for a
/// list is a list of one. Values of custom scalars, and all without a type, stay as they are. The recursion is as deep
/// as the value, and each step is to take little of the stack.
func appendCanonical(_ value: Value, as type: ResolvedType?, in schema: SchemaIndex?, to bytes: inout [UInt8]) {
    if let type, type.isList, value != .null {
        let elements = if case .list(let elements) = value { elements } else { [value] }
        appendList(elements, as: type.element, in: schema, to: &bytes)
        return
    }
    let name = typeName(type, schema)
    switch value {
    case .null: bytes.append(contentsOf: "null".utf8)
    case .boolean(let value): bytes.append(contentsOf: (value ? "true" : "false").utf8)
    case .int(let number):
        switch name {
        case "ID": appendJSONString(String(number), to: &bytes)
        case "Float": bytes.append(contentsOf: Double(number).description.utf8)
        default: bytes.append(contentsOf: String(number).utf8)
        }
    case .float(let number): bytes.append(contentsOf: number.description.utf8)
    case .number(let text):
        // A Float is a double wherever it is used, so that all ways of writing the same double are one.
        if name == "ID" {
            appendJSONString(text, to: &bytes)
        } else if name == "Float", let number = Double(text), number.isFinite {
            bytes.append(contentsOf: number.description.utf8)
        } else {
            bytes.append(contentsOf: text.utf8)
        }
    case .string(let text): appendJSONString(text, to: &bytes)
    case .list(let elements): appendList(elements, as: nil, in: schema, to: &bytes)
    case .object(let members):
        bytes.append(UInt8(ascii: "{"))
        for (index, member) in members.sorted(by: { $0.key < $1.key }).enumerated() {
            if index > 0 { bytes.append(UInt8(ascii: ",")) }
            appendJSONString(member.key, to: &bytes)
            bytes.append(UInt8(ascii: ":"))
            appendCanonical(member.value, as: memberType(member.key, of: type, schema), in: schema, to: &bytes)
        }
        bytes.append(UInt8(ascii: "}"))
    }
}

private func typeName(_ type: ResolvedType?, _ schema: SchemaIndex?) -> String? {
    guard let type, let schema else { return nil }
    return schema.types[type.named].name
}

private func memberType(_ name: String, of type: ResolvedType?, _ schema: SchemaIndex?) -> ResolvedType? {
    guard let type, let schema else { return nil }
    return schema.types[type.named].inputField(named: name)?.type
}

private func appendList(
    _ elements: [Value], as type: ResolvedType?, in schema: SchemaIndex?, to bytes: inout [UInt8]
) {
    bytes.append(UInt8(ascii: "["))
    for (index, element) in elements.enumerated() {
        if index > 0 { bytes.append(UInt8(ascii: ",")) }
        appendCanonical(element, as: type, in: schema, to: &bytes)
    }
    bytes.append(UInt8(ascii: "]"))
}

extension Literal {
    /// The value with the variables' values in it; nil for a variable that was left out.
    ///
    /// An enum's value is the same as its name in a string, as which a variable would bring it.
    package func resolved(_ variables: [String: Value]) -> Value? {
        switch self {
        case .variable(let name): variables[name]
        case .int(let text): Int64(text).map(Value.int) ?? .number(text)
        case .float(let text): Double(text).flatMap { $0.isFinite ? Value.float($0) : nil } ?? .number(text)
        case .string(let text), .enumeration(let text): .string(text)
        case .boolean(let value): .boolean(value)
        case .null: .null
        case .list(let elements): .list(elements.map { $0.resolved(variables) ?? .null })
        case .object(let fields):
            .object(
                Dictionary(
                    fields.compactMap { field in field.value.resolved(variables).map { (field.name, $0) } },
                    uniquingKeysWith: { _, last in last }))
        }
    }

    var usesVariables: Bool {
        switch self {
        case .variable: true
        case .list(let elements): elements.contains(where: \.usesVariables)
        case .object(let fields): fields.contains(where: \.value.usesVariables)
        default: false
        }
    }
}
