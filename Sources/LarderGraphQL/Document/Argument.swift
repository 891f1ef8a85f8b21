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
