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
