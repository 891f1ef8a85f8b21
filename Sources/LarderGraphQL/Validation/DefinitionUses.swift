/// What one operation or fragment uses itself, not through fragments.
struct DefinitionUses {
    struct VariableUse {
        var name: String
        /// The type that the place expects; nil where anything goes, or nothing is known.
        var expected: ResolvedType?
        /// Whether the place has a default for a variable that is absent.
        var placeHasDefault: Bool
        var location: Location
    }

    struct Spread {
        /// In the document's fragments.
        var fragment: Int
        var location: Location
    }

    var variables: [VariableUse] = []
    /// Of fragments that exist.
    var spreads: [Spread] = []
    /// The outermost selection set in the graph; nil where its type is unknown.
    var set: Int?
}
