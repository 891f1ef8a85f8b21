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

    /// Whether something else has changed meanwhile.
    var isConflict: Bool { kind.map(ServerErrorKind.init) == .conflict }

    /// The errors of a JSON list; none where it is none.
    static func list(_ json: [UInt8]?) -> [GraphQLError] {
        guard let json, case .list(let errors)? = try? Value(json: json) else { return [] }
        return errors.map { GraphQLError($0) }
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
