internal import LarderGraphQL
internal import LarderRecords

extension SchemaIndex {
    /// An object's data with what its cache key says: its type, whatever the data says, so that nothing is stored as
    /// what it is not; and its key fields, where the data lacks them.
    ///
    /// - Parameter key: `Type:id`, or `Type:{"a":"x","b":"y"}`, or the root of all queries. A key of another form, or
    ///   of a type that the schema does not know, adds nothing.
    func completed(_ data: [String: Value], of key: String) -> [String: Value] {
        let colon = key.utf8.firstIndex(of: UInt8(ascii: ":"))
        let named = colon.flatMap { type(named: String(key[..<$0])) }
        guard let type = key == CacheKey.queryRoot ? queryType : named else { return data }
        var complete = data
        complete["__typename"] = .string(types[type].name)
        guard let colon, let keyFields = types[type].keyFields else { return complete }
        let rest = String(key[key.utf8.index(after: colon)...])
        var values: [String: Value] = [:]
        if keyFields.count == 1 {
            values[keyFields[0]] = .string(rest)
        } else if case .object(let members)? = try? Value(json: Array(rest.utf8)) {
            // Otherwise the key names no object of this type, and storing the data will say what it lacks.
            values = members
        }
        for name in keyFields where complete[name] == nil {
            guard let value = values[name], let text = value.keyText else { continue }
            complete[name] = keyValue(text, ofField: name, of: type)
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
