import LarderGraphQL

// Documents are the same if their bytes are, as `OperationCache` finds them.

extension GraphQLOperation: Hashable {
    public static func == (left: GraphQLOperation, right: GraphQLOperation) -> Bool {
        left.document.hasSameBytes(as: right.document) && left.name == right.name && left.variables == right.variables
    }

    public func hash(into hasher: inout Hasher) {
        hasher.combineBytes(of: document)
        hasher.combine(variables)
    }
}
