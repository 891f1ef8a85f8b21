extension ParsedResponse {
    /// Whether any field of the root has a value other than null: of a mutation, whether anything took effect.
    package var hasAnswers: Bool {
        guard let root else { return false }
        return objects[root].fields.contains { index in
            layout.fields[Int(fields[index].field)].content != .typename
                && fields[index].cell.kind != .null && fields[index].cell.kind != .absent
        }
    }

    /// The response keys of the root's fields, but `__typename`.
    package var rootFields: Set<String> {
        let plan = layout.plan
        let cases = Set(plan.selections[plan.root].types.map(\.caseIndex))
        return Set(
            cases.flatMap { plan.fields[plan.cases[$0].fields] }
                .filter { $0.content != .typename }.map(\.responseKey))
    }
}
