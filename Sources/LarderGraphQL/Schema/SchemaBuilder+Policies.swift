extension SchemaBuilder {
    /// Reads `@typePolicy`, `@fieldPolicy` and `@cacheControl(forField:)` of definitions and extensions; what comes later overrides.
    func applyPolicies(to schema: SchemaIndex) throws(SchemaError) -> SchemaIndex {
        var schema = schema
        for (id, collected) in types.enumerated() {
            for part in collected.parts {
                for directive in part.type.directives {
                    switch directive.name {
                    case "typePolicy":
                        let names = try names(of: "keyFields", in: directive, part: part)
                        let parts = try parts(in: directive, part: part)
                        let isVersioned = directive.arguments.first { $0.name == "versioned" }?.value
                        try located(directive, part) { () throws(SchemaError) in
                            guard names != nil || parts != nil || isVersioned != nil else {
                                throw SchemaError(
                                    .policy,
                                    "@typePolicy of \(collected.name) has neither keyFields nor parts nor versioned")
                            }
                            switch isVersioned {
                            case nil, .null, .boolean(false): break
                            case .boolean(true): try schema.declareVersioned(id)
                            default: throw SchemaError(.policy, "versioned of @typePolicy is no Boolean")
                            }
                            if let names { try schema.declareKeyFields(names, for: id) }
                            if let parts { try schema.declareParts(parts, for: id) }
                        }
                    case "fieldPolicy":
                        let keyArgs = try names(of: "keyArgs", in: directive, part: part)
                        let paginationArgs = try names(of: "paginationArgs", in: directive, part: part)
                        let parts = try parts(in: directive, part: part)
                        let maxLimit = try maxLimit(in: directive, part: part)
                        try located(directive, part) { () throws(SchemaError) in
                            let name = directive.arguments.first { $0.name == "forField" }?.value
                            guard case .string(let field)? = name else {
                                throw SchemaError(.policy, "@fieldPolicy of \(collected.name) has no forField")
                            }
                            if let parts { try schema.declareParts(parts, forField: field, of: id) }
                            // One that speaks of parts alone leaves to others what the arguments say.
                            guard parts == nil || keyArgs != nil || paginationArgs != nil || maxLimit != nil else {
                                return
                            }
                            let policy = FieldPolicy(
                                keyArgs: (keyArgs ?? []).map { ArgumentPath($0) }, paginationArgs: paginationArgs ?? [],
                                maxLimit: maxLimit)
                            try schema.declareFieldPolicy(policy, for: field, of: id)
                        }
                    case "cacheControl":
                        guard let name = directive.arguments.first(where: { $0.name == "forField" })?.value else {
                            break
                        }
                        let maxAge = try maxAge(in: [directive], source: part.source)
                        try located(directive, part) { () throws(SchemaError) in
                            guard case .string(let field) = name else {
                                throw SchemaError(
                                    .policy, "forField of @cacheControl of \(collected.name) is no string")
                            }
                            try schema.setMaxAge(maxAge, forField: field, of: collected.name)
                        }
                    default:
                        break
                    }
                }
            }
        }
        try schema.derivePolicies()
        return schema
    }

    /// Gives an error without a place the directive's.
    private func located(
        _ directive: Directive, _ part: Part, _ body: () throws(SchemaError) -> Void
    ) throws(SchemaError) {
        do {
            try body()
        } catch {
            throw self.error(error.code, error.message, directive.location, part.source)
        }
    }

    /// The argument `parts`, a string or an enum value; nil where there is none.
    private func parts(in directive: Directive, part: Part) throws(SchemaError) -> PartPolicy? {
        guard let value = directive.arguments.first(where: { $0.name == "parts" })?.value else { return nil }
        switch value {
        case .null: return nil
        case .string(let name), .enumeration(let name): if let policy = PartPolicy(rawValue: name) { return policy }
        default: break
        }
        let message = "parts of @\(directive.name) is neither \"merge\" nor \"replace\""
        throw error(.policy, message, directive.location, part.source)
    }

    /// The argument `maxLimit`; nil where there is none.
    private func maxLimit(in directive: Directive, part: Part) throws(SchemaError) -> Int? {
        guard let value = directive.arguments.first(where: { $0.name == "maxLimit" })?.value else { return nil }
        switch value {
        case .null: return nil
        case .int(let text): if let limit = Int32(text) { return Int(limit) }
        default: break
        }
        throw error(.policy, "maxLimit of @\(directive.name) is no Int", directive.location, part.source)
    }

    /// The names in an argument that is a string, with spaces between names, or a list of strings.
    private func names(
        of argument: String, in directive: Directive, part: Part
    ) throws(SchemaError) -> [String]? {
        guard let value = directive.arguments.first(where: { $0.name == argument })?.value else { return nil }
        switch value {
        case .string(let text):
            return text.split(whereSeparator: \.isWhitespace).map(String.init)
        case .list(let elements):
            var names: [String] = []
            for element in elements {
                guard case .string(let name) = element else { break }
                names.append(name)
            }
            if names.count == elements.count { return names }
        case .null:
            return nil
        default:
            break
        }
        let message = "\(argument) of @\(directive.name) is neither a string nor a list of strings"
        throw error(.policy, message, directive.location, part.source)
    }
}
