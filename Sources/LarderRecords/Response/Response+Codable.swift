package import LarderGraphQL

/// The encoded form, version 1:
///
/// | key | value |
/// | --- | --- |
/// | `version` | 1 |
/// | `data` | the data as JSON text, in a string; left out where there is none |
/// | `errors` | the errors as JSON text, a list as GraphQL writes it; left out where there are none |
/// | `missing` | the missing paths, each a list of names and positions; left out where there are none |
///
/// Text inside a string, because encoders do not keep numbers as they are: JSON's writes 1.0 as 1.
/// A version that this library does not know is refused.
extension Response: Codable {
    private static let version = 1

    private enum CodingKeys: String, CodingKey {
        case version, data, errors, missing
    }

    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(Self.version, forKey: .version)
        if let data { try container.encode(String(decoding: data.json, as: UTF8.self), forKey: .data) }
        if !errors.isEmpty {
            let text = Value.list(errors.map(\.value)).json
            try container.encode(String(decoding: text, as: UTF8.self), forKey: .errors)
        }
        if !missing.isEmpty { try container.encode(missing, forKey: .missing) }
    }

    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        let version = try container.decode(Int.self, forKey: .version)
        guard version == Self.version else {
            throw DecodingError.dataCorruptedError(
                forKey: .version, in: container,
                debugDescription: "A response of version \(version) needs a newer library; this one reads 1.")
        }
        let missing = try container.decodeIfPresent([ResponsePath].self, forKey: .missing) ?? []
        self.init(
            buffer: try Self.data(container), errors: try Self.errors(container), missing: missing)
    }

    private static func data(_ container: KeyedDecodingContainer<CodingKeys>) throws -> ResponseBuffer? {
        guard let text = try container.decodeIfPresent(String.self, forKey: .data) else { return nil }
        return try unlessCorrupted(.data, container) {
            // What a server sent as a custom scalar was never looked into, and may be what JSON should not be.
            // Safe: `parsed` copies what it reads, within the closure that lends the bytes.
            unsafe try Array(text.utf8).withUnsafeBufferPointer { unsafe try ResponseBuffer.parsed($0, .keepText) }
        }
    }

    private static func errors(_ container: KeyedDecodingContainer<CodingKeys>) throws -> [GraphQLError] {
        guard let text = try container.decodeIfPresent(String.self, forKey: .errors) else { return [] }
        let value = try unlessCorrupted(.errors, container) { try Value(json: Array(text.utf8)) }
        guard case .list(let errors) = value else {
            throw DecodingError.dataCorruptedError(
                forKey: .errors, in: container, debugDescription: "The errors are no list.")
        }
        return errors.map(GraphQLError.init(kept:))
    }

    private static func unlessCorrupted<Result>(
        _ key: CodingKeys, _ container: KeyedDecodingContainer<CodingKeys>, _ body: () throws -> Result
    ) throws -> Result {
        do { return try body() } catch {
            throw DecodingError.dataCorrupted(
                .init(
                    codingPath: container.codingPath + [key], debugDescription: "This is no JSON: \(error)",
                    underlyingError: error))
        }
    }
}

extension GraphQLError {
    /// The error as GraphQL writes it, AppSync's members at its root.
    package var value: Value {
        var members: [String: Value] = ["message": .string(message)]
        if let path {
            members["path"] = .list(
                path.components.map { component in
                    switch component {
                    case .field(let name): .string(name)
                    case .index(let index): .int(Int64(index))
                    }
                })
        }
        if !locations.isEmpty {
            members["locations"] = .list(
                locations.map { location in
                    .object(["line": .int(Int64(location.line)), "column": .int(Int64(location.column))])
                })
        }
        if !extensions.isEmpty { members["extensions"] = .object(extensions) }
        if let errorType { members["errorType"] = .string(errorType) }
        members["errorInfo"] = errorInfo
        members["data"] = data
        return .object(members)
    }

    /// Unlike a server's, a kept error says its type at its root, or has none.
    fileprivate init(kept value: Value) {
        self.init(value)
        guard case .object(let members) = value, case .string(let type)? = members["errorType"] else {
            errorType = nil
            return
        }
        errorType = type
    }
}
