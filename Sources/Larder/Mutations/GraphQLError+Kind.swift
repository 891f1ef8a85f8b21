internal import LarderGraphQL
internal import LarderRecords

extension GraphQLError {
    /// What kind of error it is, as the server names it: AppSync's `errorType`, or `extensions.code`.
    var kind: String? {
        if let errorType { return errorType }
        for name in ["code", "errorType"] {
            if case .string(let kind)? = extensions[name] { return kind }
        }
        return nil
    }

    /// As the server would say it, for people to look at.
    var value: Value {
        var members: [String: Value] = ["message": .string(message)]
        if let errorType { members["errorType"] = .string(errorType) }
        if let path { members["path"] = .string(path.description) }
        if !extensions.isEmpty { members["extensions"] = .object(extensions) }
        return .object(members)
    }
}
