import LarderGraphQL
import LarderRecords

extension BoundOperation {
    /// The fields that are asked of a root of this type; none where it may not be of the type.
    fileprivate func rootFields(ofType name: String) -> ArraySlice<FieldPlan> {
        let plan = layout.plan
        guard let type = plan.selections[plan.root].types.first(where: { $0.name == name }) else { return [] }
        return plan.fields[plan.cases[type.caseIndex].fields]
    }

    /// Whether the field is the one of that name, as a key field is: without arguments.
    fileprivate func isPlain(_ field: FieldPlan) -> Bool {
        field.key.map { !layout.plan.keys[$0].hasArguments } ?? false
    }
}

extension SchemaIndex {
    /// An object's data with what its cache key says: its type, whatever the data says, so that nothing is stored as
    /// what it is not; and its key fields, where the data lacks them. Both under whatever names they are asked for.
    ///
    /// - Parameters:
    ///   - key: `Type:id`, or `Type:{"a":"x","b":"y"}`, or the root of all queries. A key of another form, or of a type
    ///     that the schema does not know, adds nothing.
    ///   - operation: What the data answers.
    func completed(_ data: [String: Value], of key: String, _ operation: BoundOperation) -> [String: Value] {
        let colon = key.utf8.firstIndex(of: UInt8(ascii: ":"))
        let named = colon.flatMap { type(named: String(key[..<$0])) }
        guard let type = key == CacheKey.queryRoot.text ? queryType : named else { return data }
        var complete = data
        let fields = operation.rootFields(ofType: types[type].name)
        complete["__typename"] = .string(types[type].name)
        for field in fields where field.content == .typename {
            complete[field.responseKey] = .string(types[type].name)
        }
        guard let colon, let keyFields = types[type].keyFields else { return complete }
        let rest = String(key[key.utf8.index(after: colon)...])
        var values: [String: Value] = [:]
        if keyFields.count == 1 {
            values[keyFields[0]] = .string(rest)
        } else if case .object(let members)? = try? Value(json: Array(rest.utf8)) {
            // Otherwise the key names no object of this type, and storing the data will say what it lacks.
            values = members
        }
        for name in keyFields {
            guard let text = values[name]?.keyText else { continue }
            let asked = fields.filter { $0.name == name && operation.isPlain($0) }.map(\.responseKey)
            // Data that says otherwise under one name is made to say so under all, and is refused.
            let other = asked.lazy.compactMap { complete[$0] }.first { value in
                !(value.keyText.map { $0.utf8.elementsEqual(text.utf8) } ?? false)
            }
            for responseKey in asked where other != nil || complete[responseKey] == nil {
                complete[responseKey] = other ?? keyValue(text, ofField: name, of: type)
            }
        }
        return complete
    }

    /// A key field's value from its text, in the kind that the field's type asks for.
    private func keyValue(_ text: String, ofField name: String, of type: TypeID) -> Value {
        guard let field = field(named: name, of: type) else { return .string(text) }
        return switch types[field.type.named].name {
        case "Int": Int64(text).map(Value.int) ?? .string(text)
        case "Float": Double(text).map(Value.float) ?? .string(text)
        case "Boolean": text == "true" ? .boolean(true) : text == "false" ? .boolean(false) : .string(text)
        default: .string(text)
        }
    }
}
