internal import LarderGraphQL

// Documents are the same if their bytes are, as the operations that a partition keeps are found.

extension GraphQLOperation: Hashable {
    public static func == (left: GraphQLOperation, right: GraphQLOperation) -> Bool {
        left.document.hasSameBytes(as: right.document) && left.name == right.name && left.variables == right.variables
    }

    public func hash(into hasher: inout Hasher) {
        hasher.combineBytes(of: document)
        hasher.combine(variables)
    }
}

extension GraphQLFragment: Hashable {
    public static func == (left: GraphQLFragment, right: GraphQLFragment) -> Bool {
        left.document.hasSameBytes(as: right.document) && left.name == right.name && left.variables == right.variables
    }

    public func hash(into hasher: inout Hasher) {
        hasher.combineBytes(of: document)
        hasher.combine(variables)
    }
}
