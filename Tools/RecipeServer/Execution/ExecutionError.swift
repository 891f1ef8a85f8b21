import LarderGraphQL

/// An entry of a response's `errors`.
struct ExecutionError: Error {
    enum PathStep: Sendable {
        case key(String)
        case index(Int)
    }

    var message: String
    var location: Location?
    /// nil for an error of the request as a whole.
    var path: [PathStep]?
    var code: String?

    init(_ message: String, at location: Location? = nil, path: [PathStep]? = nil, code: String? = nil) {
        self.message = message
        self.location = location
        self.path = path
        self.code = code
    }

    var response: ResponseValue {
        var fields: [(String, ResponseValue)] = [("message", .string(message))]
        if let location {
            let place = [("line", ResponseValue.int(location.line)), ("column", .int(location.column))]
            fields.append(("locations", .list([.object(place)])))
        }
        if let path {
            let steps = path.map { step -> ResponseValue in
                switch step {
                case .key(let key): .string(key)
                case .index(let index): .int(index)
                }
            }
            fields.append(("path", .list(steps)))
        }
        if let code { fields.append(("extensions", .object([("code", .string(code))]))) }
        return .object(fields)
    }
}
