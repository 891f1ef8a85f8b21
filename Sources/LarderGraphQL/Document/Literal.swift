/// A value as it is written in a document, where a part of it may be a variable.
package indirect enum Literal: Sendable {
    /// The name, without the dollar sign.
    case variable(String)
    /// The text of the number; it may be larger than any integer type.
    case int(String)
    /// The text of the number.
    case float(String)
    /// The value of the string, whichever way it was quoted.
    case string(String)
    case boolean(Bool)
    case null
    case enumeration(String)
    case list([Literal])
    /// The fields in the order of the text.
    case object([ObjectField])

    package struct ObjectField: Sendable {
        package var name: String
        package var value: Literal

        package init(name: String, value: Literal) {
            self.name = name
            self.value = value
        }
    }
}
