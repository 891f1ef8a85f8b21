extension SchemaIndex {
    /// Says which fields identify an object of a type, in place of what the schema says.
    ///
    /// On an interface it is said of all types that implement it and say nothing of their own.
    /// - Parameter keyFields: None: objects of the type have no identity.
    /// - Throws: ``SchemaError`` of code `policy` or `unknownType`; the schema is then as it was.
    package mutating func setKeyFields(_ keyFields: [String], for type: String) throws(SchemaError) {
        try change { (index) throws(SchemaError) in
            try index.declareKeyFields(keyFields, for: try index.knownType(type))
        }
    }

    /// Says how the arguments of a field name what it returns, in place of what the schema says.
    ///
    /// - Throws: ``SchemaError`` of code `policy` or `unknownType`; the schema is then as it was.
    package mutating func setFieldPolicy(
        _ policy: FieldPolicy, forField field: String, of type: String
    ) throws(SchemaError) {
        try change { (index) throws(SchemaError) in
            try index.declareFieldPolicy(policy, for: field, of: try index.knownType(type))
        }
    }

    /// Says what becomes of parts of a type that come again, in place of what the schema says.
    ///
    /// On an interface it is said of all types that implement it and say nothing of their own.
    /// - Throws: ``SchemaError`` of code `policy` or `unknownType`; the schema is then as it was.
    package mutating func setPartPolicy(_ policy: PartPolicy, for type: String) throws(SchemaError) {
        try change { (index) throws(SchemaError) in try index.declareParts(policy, for: try index.knownType(type)) }
    }

    /// Says what becomes of the part in a field when one comes again, in place of what the schema says.
    ///
    /// - Throws: ``SchemaError`` of code `policy` or `unknownType`; the schema is then as it was.
    package mutating func setPartPolicy(
        _ policy: PartPolicy, forField field: String, of type: String
    ) throws(SchemaError) {
        try change { (index) throws(SchemaError) in
            try index.declareParts(policy, forField: field, of: try index.knownType(type))
        }
    }

    /// Says that the objects of a type have versions, in the field `_version`: an older one is never stored over a newer
    /// one. On an interface it is said of all types that implement it.
    ///
    /// - Throws: ``SchemaError`` of code `policy` or `unknownType`; the schema is then as it was.
    package mutating func setVersioned(_ type: String) throws(SchemaError) {
        try change { (index) throws(SchemaError) in try index.declareVersioned(try index.knownType(type)) }
    }

    /// Says for how many seconds the fields of a type may be used once they came, in place of what the schema says.
    ///
    /// On an interface it is said of all types that implement it and say nothing of their own.
    /// - Parameter field: One field of the type; it goes before what is said of the type.
    /// - Throws: ``SchemaError`` of code `policy` or `unknownType`.
    package mutating func setMaxAge(
        _ maxAge: Int?, forField field: String? = nil, of type: String
    ) throws(SchemaError) {
        let id = try knownType(type)
        guard [.object, .interface].contains(types[id].kind) else {
            throw SchemaError(.policy, "\(type) is \(types[id].kind.noun) and cannot have a maximum age")
        }
        guard let field else { return types[id].maxAge = maxAge }
        guard let index = types[id].fieldIndex(named: field) else {
            throw SchemaError(.policy, "Maximum age of \(field), which is no field of \(type)")
        }
        types[id].fields[index].maxAge = maxAge
    }

    /// For how many seconds a field of a type may be used once it came: as the field says, or else the same field of an
    /// interface, or else the type, or else an interface; of several interfaces the least. Nil where nothing is said.
    func maxAge(of field: FieldDefinition, of id: TypeID) -> Int? {
        let type = types[id]
        return field.maxAge
            ?? type.interfaces.compactMap { types[$0].field(named: field.name)?.maxAge }.min()
            ?? type.maxAge
            ?? type.interfaces.compactMap { types[$0].maxAge }.min()
    }

    /// All of the change, or nothing of it.
    private mutating func change(
        _ declare: (inout SchemaIndex) throws(SchemaError) -> Void
    ) throws(SchemaError) {
        var changed = self
        try declare(&changed)
        try changed.derivePolicies()
        self = changed
    }

    private func knownType(_ name: String) throws(SchemaError) -> TypeID {
        guard let id = type(named: name) else { throw SchemaError(.unknownType, "Unknown type \(name)") }
        return id
    }

    // MARK: - Declaring

    mutating func declareKeyFields(_ keyFields: [String], for id: TypeID) throws(SchemaError) {
        let type = types[id]
        guard type.kind == .object || type.kind == .interface else {
            throw SchemaError(.policy, "\(type.name) is \(type.kind.noun) and cannot have key fields")
        }
        for (index, name) in keyFields.enumerated() {
            guard let field = type.field(named: name) else {
                throw SchemaError(.policy, "Key field \(name) is no field of \(type.name)")
            }
            guard !keyFields[..<index].contains(name) else {
                throw SchemaError(.policy, "Key field \(name) of \(type.name) is named twice")
            }
            guard isKeyField(field) else {
                throw SchemaError(.policy, "Key field \(type.name).\(name) is no scalar or enum, or is a list")
            }
            // The cache adds key fields to what is sent, and has no value for an argument.
            guard !field.arguments.contains(where: \.isRequired) else {
                throw SchemaError(.policy, "Key field \(type.name).\(name) has an argument that must be given")
            }
        }
        types[id].declaredKeyFields = keyFields
    }

    mutating func declareFieldPolicy(
        _ policy: FieldPolicy, for name: String, of id: TypeID
    ) throws(SchemaError) {
        let type = types[id]
        guard let index = type.fieldIndex(named: name) else {
            throw SchemaError(.policy, "Field policy for \(name), which is no field of \(type.name)")
        }
        let field = type.fields[index]
        let place = "\(type.name).\(name)"
        if !policy.keyArgs.isEmpty, !types[field.type.named].kind.isComposite {
            throw SchemaError(.policy, "\(place) has a field policy with keyArgs and returns no objects")
        }
        for path in policy.keyArgs {
            try check(path, of: field, place: place, namesList: !policy.paginationArgs.isEmpty)
        }
        for name in policy.paginationArgs where field.argument(named: name) == nil {
            throw SchemaError(.policy, "Pagination argument \(name) is no argument of \(place)")
        }
        if let limit = policy.maxLimit, limit < 1 || policy.paginationArgs.isEmpty {
            throw SchemaError(.policy, "The maxLimit of \(place) needs paginationArgs, and must be more than 0")
        }
        types[id].fields[index].declaredPolicy = policy
    }

    mutating func declareParts(_ policy: PartPolicy, for id: TypeID) throws(SchemaError) {
        let type = types[id]
        guard type.kind == .object || type.kind == .interface else {
            throw SchemaError(.policy, "\(type.name) is \(type.kind.noun) and cannot have a policy for parts")
        }
        types[id].declaredParts = policy
    }

    mutating func declareParts(_ policy: PartPolicy, forField name: String, of id: TypeID) throws(SchemaError) {
        let type = types[id]
        guard let index = type.fieldIndex(named: name) else {
            throw SchemaError(.policy, "Field policy for \(name), which is no field of \(type.name)")
        }
        let field = type.fields[index]
        guard types[field.type.named].kind.isComposite, !field.type.isList else {
            throw SchemaError(
                .policy,
                "\(type.name).\(name) has a policy for parts and returns no single object; parts in a list "
                    + "always replace the earlier ones")
        }
        types[id].fields[index].declaredParts = policy
    }

    mutating func declareVersioned(_ id: TypeID) throws(SchemaError) {
        let type = types[id]
        guard type.kind == .object || type.kind == .interface else {
            throw SchemaError(.policy, "\(type.name) is \(type.kind.noun) and cannot have versions")
        }
        for name in VersionField.all {
            guard let field = type.field(named: name) else {
                guard name != VersionField.version else {
                    throw SchemaError(.policy, "\(type.name) is to have versions, and has no field \(name)")
                }
                continue
            }
            guard isKeyField(field), !field.arguments.contains(where: \.isRequired) else {
                throw SchemaError(
                    .policy, "\(type.name).\(name) is no scalar, or has an argument that must be given")
            }
        }
        types[id].isVersioned = true
    }

    private func isKeyField(_ field: FieldDefinition) -> Bool {
        let kind = types[field.type.named].kind
        return !field.type.isList && (kind == .scalar || kind == .enumeration)
    }

    /// - Parameter namesList: Whether the argument tells one list from another, for which any type will do.
    private func check(
        _ path: ArgumentPath, of field: FieldDefinition, place: String, namesList: Bool
    ) throws(SchemaError) {
        var input = path.components.first.flatMap { field.argument(named: $0) }
        for component in path.components.dropFirst() {
            guard let outer = input else { break }
            guard !outer.type.isList else {
                throw SchemaError(.policy, "Key argument \(path) of \(place) leads through a list")
            }
            input = types[outer.type.named].inputField(named: component)
        }
        guard let input else {
            throw SchemaError(.policy, "Key argument \(path) is no argument of \(place)")
        }
        guard namesList || types[input.type.named].kind != .inputObject && input.type.listDepth <= 1 else {
            throw SchemaError(.policy, "Key argument \(path) of \(place) is no scalar, enum or list of those")
        }
    }

    // MARK: - Deriving

    /// Works out what each type and field is given by its own declarations, its interfaces' and the defaults.
    mutating func derivePolicies() throws(SchemaError) {
        let composite = types.indices.filter { types[$0].kind == .object || types[$0].kind == .interface }
        for id in composite {
            types[id].keyFields = try derivedKeyFields(of: id)
            types[id].parts = try derivedParts(of: id)
            if types[id].interfaces.contains(where: { types[$0].isVersioned }) { types[id].isVersioned = true }
        }
        for id in composite {
            for index in types[id].fields.indices {
                let policy = try derivedPolicy(ofField: index, of: id)
                if types[id].fields[index].policy != policy { types[id].fields[index].policy = policy }
                let parts = try derivedParts(ofField: index, of: id)
                if types[id].fields[index].parts != parts { types[id].fields[index].parts = parts }
            }
        }
        mergePartsWithPages(among: composite)
    }

    /// Has parts merged that have pages, themselves or in a part of theirs, where no policy says otherwise: a page that
    /// came with other fields beside it would take all pages away.
    private mutating func mergePartsWithPages(among composite: [TypeID]) {
        var merged = Set<TypeID>()
        var count = -1
        while count < merged.count {
            count = merged.count
            for id in composite where types[id].parts != .replace && types[id].keyFields == nil {
                let hasPages = types[id].fields.contains { field in
                    field.hasPages || !field.type.isList && merged.contains(field.type.named)
                }
                guard hasPages else { continue }
                types[id].parts = .merge
                merged.insert(id)
            }
        }
    }

    private func derivedKeyFields(of id: TypeID) throws(SchemaError) -> [String]? {
        let type = types[id]
        var declared = type.declaredKeyFields
        if declared == nil {
            var giver: String?
            for interface in type.interfaces {
                guard let inherited = types[interface].declaredKeyFields else { continue }
                if let other = declared, other != inherited {
                    throw SchemaError(
                        .policy,
                        "\(type.name) needs key fields of its own: those of \(giver ?? "") and "
                            + "\(types[interface].name) differ")
                }
                declared = inherited
                giver = types[interface].name
            }
        }
        if let declared { return declared.isEmpty ? nil : declared }
        guard let id = type.field(named: "id"), isKeyField(id), !id.arguments.contains(where: \.isRequired) else {
            return nil
        }
        return ["id"]
    }

    private func derivedPolicy(ofField index: Int, of id: TypeID) throws(SchemaError) -> FieldPolicy? {
        let type = types[id]
        let field = type.fields[index]
        if let own = field.declaredPolicy { return own }
        var policy: FieldPolicy?
        for interface in type.interfaces {
            guard let inherited = types[interface].field(named: field.name)?.declaredPolicy else { continue }
            if let other = policy, other != inherited {
                throw SchemaError(
                    .policy, "\(type.name).\(field.name) needs a field policy of its own: its interfaces' differ")
            }
            policy = inherited
        }
        return policy ?? (id == queryType ? impliedPolicy(of: field) : nil)
    }

    /// A field of the query root whose arguments are exactly the key fields of the object that it returns asks for that
    /// object. A policy without `keyArgs` says that it does not.
    private func impliedPolicy(of field: FieldDefinition) -> FieldPolicy? {
        let returned = types[field.type.named]
        guard returned.kind == .object, !field.type.isList, let keyFields = returned.keyFields,
            keyFields.count == field.arguments.count
        else { return nil }
        for name in keyFields {
            guard let argument = field.argument(named: name), !argument.type.isList,
                argument.type.named == returned.field(named: name)?.type.named
            else { return nil }
        }
        return FieldPolicy(keyArgs: keyFields.map { ArgumentPath($0) })
    }

    private func derivedParts(of id: TypeID) throws(SchemaError) -> PartPolicy? {
        let type = types[id]
        if let own = type.declaredParts { return own }
        return try agreed(type.interfaces.map { types[$0].declaredParts }, type.name)
    }

    private func derivedParts(ofField index: Int, of id: TypeID) throws(SchemaError) -> PartPolicy? {
        let (type, field) = (types[id], types[id].fields[index])
        if let own = field.declaredParts { return own }
        let inherited = type.interfaces.map { types[$0].field(named: field.name)?.declaredParts }
        return try agreed(inherited, "\(type.name).\(field.name)")
    }

    /// What the interfaces say that say anything.
    private func agreed(_ policies: [PartPolicy?], _ place: String) throws(SchemaError) -> PartPolicy? {
        let said = Set(policies.compactMap(\.self))
        guard said.count <= 1 else {
            throw SchemaError(.policy, "\(place) needs a policy for parts of its own: its interfaces' differ")
        }
        return said.first
    }
}
