/// The places of a document or a schema at which a directive may stand.
package struct DirectivePlaces: OptionSet, Sendable, Hashable {
    package var rawValue: UInt32

    package init(rawValue: UInt32) { self.rawValue = rawValue }

    package static let query = DirectivePlaces(rawValue: 1 << 0)
    package static let mutation = DirectivePlaces(rawValue: 1 << 1)
    package static let subscription = DirectivePlaces(rawValue: 1 << 2)
    package static let field = DirectivePlaces(rawValue: 1 << 3)
    package static let fragmentDefinition = DirectivePlaces(rawValue: 1 << 4)
    package static let fragmentSpread = DirectivePlaces(rawValue: 1 << 5)
    package static let inlineFragment = DirectivePlaces(rawValue: 1 << 6)
    package static let variableDefinition = DirectivePlaces(rawValue: 1 << 7)

    /// Every place has the bit of its index. The order is part of the serialized form.
    static let names = [
        "QUERY", "MUTATION", "SUBSCRIPTION", "FIELD", "FRAGMENT_DEFINITION", "FRAGMENT_SPREAD", "INLINE_FRAGMENT",
        "VARIABLE_DEFINITION", "SCHEMA", "SCALAR", "OBJECT", "FIELD_DEFINITION", "ARGUMENT_DEFINITION", "INTERFACE",
        "UNION", "ENUM", "ENUM_VALUE", "INPUT_OBJECT", "INPUT_FIELD_DEFINITION",
    ]

    /// Nil where no place has the name.
    init?(named name: String) {
        guard let index = Self.names.firstIndex(of: name) else { return nil }
        self.init(rawValue: 1 << UInt32(index))
    }

    /// The names of the places, as the language spells them.
    var description: String {
        Self.names.indices.filter { rawValue & (1 << UInt32($0)) != 0 }.map { Self.names[$0] }
            .joined(separator: " | ")
    }
}
