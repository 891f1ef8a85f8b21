package struct FragmentDefinition: Sendable, Hashable {
    package var name: String
    package var typeCondition: String
    package var directives: [Directive]
    package var selections: [Selection]
    @NotCompared package var location: Location

    package init(
        name: String, typeCondition: String, directives: [Directive] = [], selections: [Selection],
        location: Location = .generated
    ) {
        self.name = name
        self.typeCondition = typeCondition
        self.directives = directives
        self.selections = selections
        self.location = location
    }
}
