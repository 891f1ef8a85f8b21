/// The name under which a field's value is stored: `name`, or `name({"argument":value})` where arguments are given.
/// It is complete once the operation's variables are known.
package struct FieldKeyTemplate: Sendable, Hashable {
    package let name: String
    /// In ascending order of names.
    let arguments: [ArgumentTemplate]

    package var hasArguments: Bool { !arguments.isEmpty }

    struct ArgumentTemplate: Sendable, Hashable {
        let name: String
        let value: Literal
        let type: ResolvedType?
    }

    init(name: String, arguments: [ArgumentTemplate]) { (self.name, self.arguments) = (name, arguments) }

    init(_ field: Field, _ definition: FieldDefinition) {
        name = field.name
        arguments = field.arguments.sorted { $0.name < $1.name }.map { argument in
            ArgumentTemplate(
                name: argument.name, value: argument.value, type: definition.argument(named: argument.name)?.type)
        }
    }

    /// - Parameter variables: Coerced, defaults filled in; what the program left out is missing.
    /// - Complexity: O(n log n) in the arguments' size.
    func key(_ variables: [String: Value], _ schema: SchemaIndex) -> String {
        guard hasArguments else { return name }
        var text = Array(name.utf8)
        let start = text.count
        for argument in arguments {
            guard let value = argument.value.resolved(variables) else { continue }
            if text.count == start {
                text += [UInt8(ascii: "("), UInt8(ascii: "{")]
            } else {
                text.append(UInt8(ascii: ","))
            }
            appendJSONString(argument.name, to: &text)
            text.append(UInt8(ascii: ":"))
            appendCanonical(value, as: argument.type, in: schema, to: &text)
        }
        // Arguments that were all left out are the same as none.
        guard text.count > start else { return name }
        text += [UInt8(ascii: "}"), UInt8(ascii: ")")]
        return String(decoding: text, as: UTF8.self)
    }
}
