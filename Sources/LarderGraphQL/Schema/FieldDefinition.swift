/// A field of an object type or an interface of a schema.
package struct FieldDefinition: Sendable, Hashable {
    package let name: String
    package let type: ResolvedType
    package let arguments: [InputDefinition]
    /// Seconds, from `@cacheControl(maxAge:)` on the field, or the program.
    package internal(set) var maxAge: Int?
    /// What a `@fieldPolicy` of the type says of this field, or the program.
    var declaredPolicy: FieldPolicy?
    /// What is declared; or else what the type's interfaces declare, where they agree.
    package internal(set) var policy: FieldPolicy?
    /// What a `@fieldPolicy` of the type says of the part in this field, or the program.
    var declaredParts: PartPolicy?
    /// What is declared; or else what the type's interfaces declare, where they agree.
    package internal(set) var parts: PartPolicy?

    init(
        name: String, type: ResolvedType, arguments: [InputDefinition] = [], maxAge: Int? = nil,
        declaredPolicy: FieldPolicy? = nil, policy: FieldPolicy? = nil, declaredParts: PartPolicy? = nil,
        parts: PartPolicy? = nil
    ) {
        self.name = name
        self.type = type
        self.arguments = arguments
        self.maxAge = maxAge
        self.declaredPolicy = declaredPolicy
        self.policy = policy
        self.declaredParts = declaredParts
        self.parts = parts
    }

    /// Time: linear in the number of arguments.
    package func argument(named name: String) -> InputDefinition? {
        arguments.first { $0.name == name }
    }

    /// Whether it is a page of a list, by its policy.
    var hasPages: Bool { policy?.paginationArgs.isEmpty == false }
}

/// An argument, or a field of an input object.
package struct InputDefinition: Sendable, Hashable {
    package let name: String
    package let type: ResolvedType
    package let defaultValue: Literal?

    init(name: String, type: ResolvedType, defaultValue: Literal? = nil) {
        self.name = name
        self.type = type
        self.defaultValue = defaultValue
    }

    /// Whether a value must be given.
    package var isRequired: Bool { type.isNonNull && defaultValue == nil }
}

/// A directive that a schema defines, or the language.
package struct DirectiveDefinition: Sendable, Hashable {
    package let name: String
    package let arguments: [InputDefinition]
    package let isRepeatable: Bool
    package let places: DirectivePlaces

    package func argument(named name: String) -> InputDefinition? {
        arguments.first { $0.name == name }
    }
}
