extension ParsedResponse {
    /// Whether any field of the root has a value other than null: of a mutation, whether anything took effect.
    package var hasAnswers: Bool {
        guard let root else { return false }
        return objects[root].fields.contains { index in
            layout.fields[Int(fields[index].field)].content != .typename
                && fields[index].cell.kind != .null && fields[index].cell.kind != .absent
        }
    }
}
