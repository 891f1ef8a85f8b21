package enum OperationKind: String, Sendable, Hashable, CaseIterable {
    case query, mutation, subscription
}

package struct OperationDefinition: Sendable, Hashable {
    package var kind: OperationKind
    /// Nil for an anonymous operation.
    package var name: String?
    package var variables: [VariableDefinition]
    package var directives: [Directive]
    package var selections: [Selection]
    @NotCompared package var location: Location

    package init(
        kind: OperationKind, name: String? = nil, variables: [VariableDefinition] = [],
        directives: [Directive] = [], selections: [Selection], location: Location = .generated
    ) {
        self.kind = kind
        self.name = name
        self.variables = variables
        self.directives = directives
        self.selections = selections
        self.location = location
    }
}

package struct VariableDefinition: Sendable, Hashable {
    /// Without the dollar sign.
    package var name: String
    package var type: TypeReference
    package var defaultValue: Literal?
    package var directives: [Directive]
    @NotCompared package var location: Location

    package init(
        name: String, type: TypeReference, defaultValue: Literal? = nil, directives: [Directive] = [],
        location: Location = .generated
    ) {
        self.name = name
        self.type = type
        self.defaultValue = defaultValue
        self.directives = directives
        self.location = location
    }
}
