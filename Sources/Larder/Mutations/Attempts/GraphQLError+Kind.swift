import LarderGraphQL
import LarderRecords

extension GraphQLError {
    /// What kind of error it is, as the server names it: AppSync's `errorType`, or `extensions.code`.
    var kind: String? {
        if let errorType { return errorType }
        for name in ["code", "errorType"] {
            if case .string(let kind)? = extensions[name] { return kind }
        }
        return nil
    }

    /// Whether the mutation took effect, and the server failed after that.
    var isLate: Bool { kind.map(ServerErrorKind.init) == .late }

    /// The errors of a JSON list; none where it is none.
    static func list(_ json: [UInt8]?) -> [GraphQLError] {
        guard let json, case .list(let errors)? = try? Value(json: json) else { return [] }
        return errors.map { GraphQLError($0) }
    }

    /// As the server would say it, for people to look at.
    var value: Value {
        var members: [String: Value] = ["message": .string(message)]
        if let errorType { members["errorType"] = .string(errorType) }
        members["errorInfo"] = errorInfo
        members["data"] = data
        if let path {
            members["path"] = .list(
                path.components.map { step in
                    switch step {
                    case .field(let name): .string(name)
                    case .index(let index): .int(Int64(index))
                    }
                })
        }
        if !extensions.isEmpty { members["extensions"] = .object(extensions) }
        return .object(members)
    }
}

extension ParsedResponse {
    /// The errors as a JSON list.
    var errorList: [UInt8] { Value.list(errors.map(\.value)).json }

    /// The first of the errors as a JSON list of so many bytes at most; nil where there are none.
    func errorList(upTo limit: Int) -> [UInt8]? {
        guard !errors.isEmpty else { return nil }
        var left = limit
        let first = errors.prefix { error in
            left -= error.value.json.count + 1
            return left > 0
        }
        return Value.list(first.map(\.value)).json
    }
}
