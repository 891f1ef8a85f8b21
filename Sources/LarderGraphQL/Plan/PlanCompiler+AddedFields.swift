extension PlanCompiler {
    /// The fields that the cache needs beside the planned ones. Fields that are part of the answer come first.
    mutating func addedFields(
        to planned: [FieldPlan], names: inout [String], _ type: SchemaIndex.TypeID, _ staticType: SchemaIndex.TypeID
    ) throws(PlanError) -> [FieldPlan] {
        func isPlanned(_ name: String) -> Bool {
            let key = addedKey(name, of: type)
            return planned.contains { $0.name == name && $0.responseKey == key }
        }
        var shown: [FieldPlan] = []
        var hidden: [FieldPlan] = []
        func add(_ field: FieldPlan) {
            if field.slot == nil { hidden.append(field) } else { shown.append(field) }
        }
        if !isPlanned("__typename") {
            // An object of a concrete type need not say which.
            let isShown = exposesAdded && schema.types[staticType].kind.isAbstract
            add(
                addedField(
                    "__typename", under: "__typename", .typename, FieldTypeShape(listDepth: 0, nonNull: 1), key: nil,
                    slot: isShown ? names.count : nil))
            if isShown { names.append("__typename") }
        }
        let keyFields = schema.types[type].keyFields ?? []
        for name in schema.types[type].addedFields where !isPlanned(name) {
            guard let definition = schema.field(named: name, of: type), let responseKey = addedKey(name, of: type)
            else {
                continue
            }
            // What a program changes and writes back has no version of its own.
            let isShown = exposesAdded && keyFields.contains(name)
            add(
                addedField(
                    name, under: responseKey, .leaf(leaf(definition.type)), try shape(definition.type, nil),
                    key: keyNumber(FieldKeyTemplate(Field(name: name), definition)),
                    slot: isShown ? names.count : nil))
            if isShown { names.append(responseKey) }
        }
        return shown + hidden
    }

    /// The response key of a field that is added; nil where the type does not have it.
    func addedKey(_ name: String, of type: SchemaIndex.TypeID) -> String? {
        if name == "__typename" { return name }
        return schema.field(named: name, of: type).map { added.responseKey(of: name, $0.type, in: schema) }
    }

    private func addedField(
        _ name: String, under responseKey: String, _ content: FieldPlan.Content, _ type: FieldTypeShape, key: Int?,
        slot: Int?
    ) -> FieldPlan {
        FieldPlan(
            name: name, responseKey: responseKey, slot: slot, type: type, content: content, key: key,
            policy: nil, parts: nil, maxAge: nil)
    }
}
