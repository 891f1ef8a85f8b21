/// The name of an object in a cache, and of the roots.
///
/// `Type:id` where one field identifies an object, otherwise `Type:{"a":"x","b":"y"}` with the key fields in the order
/// of the policy; a type's name holds no colon, so that no two objects share a key. Values are text: `1` and `"1"` are
/// the same.
package enum CacheKey {
    /// The root of all queries.
    package static let queryRoot = "QUERY_ROOT"

    package static func text(type: String, fields: [(name: String, value: String)]) -> String {
        guard fields.count != 1 else { return "\(type):\(fields[0].value)" }
        var bytes = Array(type.utf8)
        for (index, field) in fields.enumerated() {
            bytes.append(contentsOf: (index == 0 ? ":{" : ",").utf8)
            appendJSONString(field.name, to: &bytes)
            bytes.append(UInt8(ascii: ":"))
            appendJSONString(field.value, to: &bytes)
        }
        bytes.append(UInt8(ascii: "}"))
        return String(decoding: bytes, as: UTF8.self)
    }
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
