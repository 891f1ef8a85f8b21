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
        String(decoding: text(variables, schema).text, as: UTF8.self)
    }

    /// The key up to the value of one argument, and from there on.
    func parts(
        around argument: String, _ variables: [String: Value], _ schema: SchemaIndex
    ) -> (before: String, after: String) {
        let (text, value) = text(variables, schema, around: argument)
        return (
            String(decoding: text[..<value.lowerBound], as: UTF8.self),
            String(decoding: text[value.upperBound...], as: UTF8.self)
        )
    }

    /// Whether an argument's value stands in a key as a text whichever way it was given.
    func isText(_ argument: String, _ schema: SchemaIndex) -> Bool {
        let type = arguments.first { $0.name == argument }?.type
        return type.map { schema.types[$0.named].name } == "ID"
    }

    private func text(
        _ variables: [String: Value], _ schema: SchemaIndex, around name: String? = nil
    ) -> (text: [UInt8], value: Range<Int>) {
        var text = Array(self.name.utf8)
        let start = text.count
        var place = start..<start
        for argument in arguments {
            guard let value = argument.value.resolved(variables) else { continue }
            if text.count == start {
                text += [UInt8(ascii: "("), UInt8(ascii: "{")]
            } else {
                text.append(UInt8(ascii: ","))
            }
            appendJSONString(argument.name, to: &text)
            text.append(UInt8(ascii: ":"))
            let first = text.count
            appendCanonical(value, as: argument.type, in: schema, to: &text)
            if argument.name == name { place = first..<text.count }
        }
        // Arguments that were all left out are the same as none.
        guard text.count > start else { return (text, place) }
        text += [UInt8(ascii: "}"), UInt8(ascii: ")")]
        return (text, place)
    }
}
