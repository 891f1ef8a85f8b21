package indirect enum Selection: Sendable, Hashable {
    case field(Field)
    case fragmentSpread(FragmentSpread)
    case inlineFragment(InlineFragment)
}

package struct Field: Sendable, Hashable {
    package var alias: String?
    package var name: String
    package var arguments: [Argument]
    package var directives: [Directive]
    /// Empty for a leaf.
    package var selections: [Selection]
    @NotCompared package var location: Location

    package init(
        alias: String? = nil, name: String, arguments: [Argument] = [], directives: [Directive] = [],
        selections: [Selection] = [], location: Location = .generated
    ) {
        self.alias = alias
        self.name = name
        self.arguments = arguments
        self.directives = directives
        self.selections = selections
        self.location = location
    }

    /// The key of the field's value in a response: the alias, or the name.
    package var responseKey: String { alias ?? name }
}

package struct FragmentSpread: Sendable, Hashable {
    package var name: String
    package var directives: [Directive]
    @NotCompared package var location: Location

    package init(name: String, directives: [Directive] = [], location: Location = .generated) {
        self.name = name
        self.directives = directives
        self.location = location
    }
}

package struct InlineFragment: Sendable, Hashable {
    /// Nil where the fragment has the type of what surrounds it.
    package var typeCondition: String?
    package var directives: [Directive]
    package var selections: [Selection]
    @NotCompared package var location: Location

    package init(
        typeCondition: String? = nil, directives: [Directive] = [], selections: [Selection],
        location: Location = .generated
    ) {
        self.typeCondition = typeCondition
        self.directives = directives
        self.selections = selections
        self.location = location
    }
}

package struct Argument: Sendable, Hashable {
    package var name: String
    package var value: Literal
    @NotCompared package var location: Location

    package init(name: String, value: Literal, location: Location = .generated) {
        self.name = name
        self.value = value
        self.location = location
    }
}

/// A directive where it is used: `@include(if: $wanted)`.
package struct Directive: Sendable, Hashable {
    /// Without the at sign.
    package var name: String
    package var arguments: [Argument]
    @NotCompared package var location: Location

    package init(name: String, arguments: [Argument] = [], location: Location = .generated) {
        self.name = name
        self.arguments = arguments
        self.location = location
    }
}
