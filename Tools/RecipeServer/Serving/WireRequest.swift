import Foundation
import LarderGraphQL

/// The JSON that a client sends, and the same as parameters of a URL.
struct WireRequest: Decodable {
    var query: String
    var operationName: String?
    var variables: [String: JSONInput]?

    /// nil where the bytes are no such object.
    init?(json: [UInt8]) {
        guard let request = try? JSONDecoder().decode(WireRequest.self, from: Data(json)) else { return nil }
        self = request
    }

    /// nil where there is no `query`, or `variables` is not a JSON object.
    init?(uri: String) {
        let items = URLComponents(string: uri)?.queryItems ?? []
        let parameters = Dictionary(items.map { ($0.name, $0.value ?? "") }) { first, _ in first }
        guard let query = parameters["query"] else { return nil }
        self.query = query
        operationName = parameters["operationName"]
        if let text = parameters["variables"], !text.isEmpty {
            guard let variables = try? JSONDecoder().decode([String: JSONInput].self, from: Data(text.utf8)) else {
                return nil
            }
            self.variables = variables
        }
    }

    var request: Executor.Request {
        Executor.Request(
            document: query, operationName: operationName, variables: (variables ?? [:]).mapValues(\.value)
        )
    }
}

/// A JSON value as an input value.
struct JSONInput: Decodable {
    let value: Value

    init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        if container.decodeNil() {
            value = .null
        } else if let boolean = try? container.decode(Bool.self) {
            value = .boolean(boolean)
        } else if let int = try? container.decode(Int64.self) {
            value = .int(int)
        } else if let float = try? container.decode(Double.self) {
            value = .float(float)
        } else if let string = try? container.decode(String.self) {
            value = .string(string)
        } else if let list = try? container.decode([JSONInput].self) {
            value = .list(list.map(\.value))
        } else {
            value = .object(try container.decode([String: JSONInput].self).mapValues(\.value))
        }
    }
}
