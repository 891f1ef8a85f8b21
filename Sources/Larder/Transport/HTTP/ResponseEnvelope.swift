import Foundation

/// The outermost level of a GraphQL response, read only where a status or a refusal must be understood.
package struct ResponseEnvelope: Decodable {
    package struct GraphQLError: Decodable {
        package struct Extensions: Decodable {
            package var code: String?
        }

        package var message: String?
        package var extensions: Extensions?

        private enum CodingKeys: CodingKey { case message, extensions }

        package init(from decoder: any Decoder) throws {
            let fields = try decoder.container(keyedBy: CodingKeys.self)
            message = try? fields.decode(String.self, forKey: .message)
            extensions = try? fields.decode(Extensions.self, forKey: .extensions)
        }
    }

    /// Whether `data` is there and not null.
    package let hasData: Bool
    package let errors: [GraphQLError]?

    /// nil where the body is not a GraphQL response: not a JSON object with `data` or with a list of `errors`.
    package init?(_ body: [UInt8]) {
        guard let envelope = try? JSONDecoder().decode(ResponseEnvelope.self, from: Data(body)) else { return nil }
        self = envelope
    }

    private enum CodingKeys: CodingKey { case data, errors }

    package init(from decoder: any Decoder) throws {
        let fields = try decoder.container(keyedBy: CodingKeys.self)
        hasData = fields.contains(.data) && (try? fields.decodeNil(forKey: .data)) == false
        errors = try? fields.decode([GraphQLError].self, forKey: .errors)
        guard fields.contains(.data) || errors?.isEmpty == false else {
            throw DecodingError.dataCorrupted(.init(codingPath: [], debugDescription: "neither data nor errors"))
        }
    }
}
