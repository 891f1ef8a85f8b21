/// The name under which a field's value is stored: `name`, or `name({"argument":value})` where arguments are
/// given. It is complete once the operation's variables are known.
package struct FieldKeyTemplate: Sendable, Hashable {
    package let name: String
    /// In ascending order of names.
    let arguments: [ArgumentTemplate]

    struct ArgumentTemplate: Sendable, Hashable {
        let name: String
        let value: Literal
        let type: InputTypeShape
    }

    /// Whether the key is the same for all variables.
    package var isConstant: Bool { !arguments.contains { $0.value.usesVariables } }

    /// - Parameter variables: Coerced, defaults filled in; what the program left out is missing.
    /// - Complexity: O(n log n) in the arguments' size.
    func key(_ variables: [String: Value], _ schema: SchemaIndex) throws(BindingError) -> String {
        guard !arguments.isEmpty else { return name }
        var text: [UInt8] = []
        for argument in arguments {
            guard let value = argument.value.resolved(variables) else { continue }
            text.append(text.isEmpty ? UInt8(ascii: "{") : UInt8(ascii: ","))
            appendCanonicalString(argument.name, to: &text)
            text.append(UInt8(ascii: ":"))
            appendCanonical(value, as: argument.type, in: schema, to: &text)
        }
        // Arguments that were all left out are the same as none.
        if text.isEmpty { return name }
        text.append(UInt8(ascii: "}"))
        return "\(name)(\(String(decoding: text, as: UTF8.self)))"
    }
}
