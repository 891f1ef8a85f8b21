/// The name of an object in a cache, and of the roots.
///
/// `Type:id` where one field identifies an object, otherwise `Type:{"a":"x","b":"y"}` with the key fields in the order
/// of the policy; a type's name holds no colon, so that no two objects share a key. Values are text: `1` and `"1"` are
/// the same.
public struct CacheKey: Sendable, Hashable {
    /// The key as it is stored.
    public let text: String

    /// A key by its text, such as `Recipe:7`.
    public init(_ text: String) { self.text = text }

    /// The key of an object that one field identifies.
    ///
    /// - Parameters:
    ///   - type: The name of its type.
    ///   - id: The value of that field; of a number, its digits.
    public init(type: String, id: String) { self.init(Self.text(type: type, fields: [("id", id)])) }

    /// The key of an object that several fields identify.
    ///
    /// - Parameters:
    ///   - type: The name of its type.
    ///   - fields: The key fields in the order in which the schema or the program names them, with their values.
    public init(type: String, fields: KeyValuePairs<String, String>) {
        self.init(Self.text(type: type, fields: fields.map { (name: $0.key, value: $0.value) }))
    }

    /// The root of all queries.
    public static let queryRoot = CacheKey("QUERY_ROOT")

    package static func text(type: String, fields: [(name: String, value: String)]) -> String {
        guard fields.count != 1 else { return "\(type):\(fields[0].value)" }
        var bytes = Array("\(type):{".utf8)
        for (index, field) in fields.enumerated() {
            if index > 0 { bytes.append(UInt8(ascii: ",")) }
            appendJSONString(field.name, to: &bytes)
            bytes.append(UInt8(ascii: ":"))
            appendJSONString(field.value, to: &bytes)
        }
        bytes.append(UInt8(ascii: "}"))
        return String(decoding: bytes, as: UTF8.self)
    }
}

extension CacheKey: ExpressibleByStringInterpolation {
    /// The key of this text.
    public init(stringLiteral text: String) { self.init(text) }
}

extension CacheKey: CustomStringConvertible {
    /// The key's text.
    public var description: String { text }
}

extension Value {
    /// The text by which a value identifies an object; nil for what cannot: null, lists and objects.
    package var keyText: String? {
        switch self {
        case .string(let text), .number(let text): text
        case .int(let number): String(number)
        case .float(let number): number.description
        case .boolean(let value): value ? "true" : "false"
        case .null, .list, .object: nil
        }
    }
}
