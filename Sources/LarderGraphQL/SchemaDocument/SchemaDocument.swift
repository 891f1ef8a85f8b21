/// A text in the schema definition language: definitions and extensions in the order of the text, nothing resolved.
///
/// Equality looks at what the document says and not at the locations of its parts.
package struct SchemaDocument: Sendable, Hashable {
    package var schemas: [SchemaDefinition] = []
    package var types: [TypeDefinition] = []
    package var directives: [DirectiveDefinition] = []

    package init() {}

    /// Parses a text, which may be empty: a program's policies are optional. Time and memory: linear.
    package init(
        parsing text: String, sourceName: String? = nil, limits: ParserLimits = .schema
    ) throws(SyntaxError) {
        var parser = try Parser(text, sourceName: sourceName, limits: limits)
        self = try parser.parseSchemaDocument()
    }
}

extension SchemaDocument {
    /// `schema { … }` or `extend schema { … }`.
    package struct SchemaDefinition: Sendable, Hashable {
        package var isExtension: Bool
        package var description: String?
        package var directives: [Directive]
        package var roots: [RootType]
        @NotCompared package var location: Location
    }

    package struct RootType: Sendable, Hashable {
        package var kind: OperationKind
        package var type: TypeName
    }

    /// The definition or the extension of a type. Only the lists that its kind has are filled.
    package struct TypeDefinition: Sendable, Hashable {
        package var kind: TypeKind
        package var isExtension: Bool
        package var name: String
        package var description: String?
        package var directives: [Directive] = []
        package var interfaces: [TypeName] = []
        package var fields: [FieldDefinition] = []
        package var members: [TypeName] = []
        package var enumValues: [EnumValueDefinition] = []
        package var inputFields: [InputValueDefinition] = []
        @NotCompared package var location: Location
    }

    package struct FieldDefinition: Sendable, Hashable {
        package var name: String
        package var description: String?
        package var arguments: [InputValueDefinition]
        package var type: TypeReference
        package var directives: [Directive]
        @NotCompared package var location: Location
    }

    /// An argument, or a field of an input object.
    package struct InputValueDefinition: Sendable, Hashable {
        package var name: String
        package var description: String?
        package var type: TypeReference
        package var defaultValue: Literal?
        package var directives: [Directive]
        @NotCompared package var location: Location
    }

    package struct EnumValueDefinition: Sendable, Hashable {
        package var name: String
        package var description: String?
        package var directives: [Directive]
        @NotCompared package var location: Location
    }

    package struct DirectiveDefinition: Sendable, Hashable {
        package var name: String
        package var description: String?
        package var arguments: [InputValueDefinition]
        package var isRepeatable: Bool
        package var places: DirectivePlaces
        @NotCompared package var location: Location
    }

    /// The name of a type where it is mentioned.
    package struct TypeName: Sendable, Hashable {
        package var name: String
        @NotCompared package var location: Location
    }
}
