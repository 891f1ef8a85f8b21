import LarderGraphQL

/// What a cache holds of one object, for people and tools.
package struct StoredRecord: Sendable, Hashable {
    package enum Kind: Sendable, Hashable {
        /// An object with a cache key.
        case entity
        /// An object without identity, which belongs to the field that holds it.
        case part
        /// An object that is known to be no more.
        case tombstone
    }

    /// An entity's cache key; a part's way from the entity that it belongs to, such as
    /// `QUERY_ROOT.repository({"name":"x"}).issues.nodes[3]`.
    package let key: String
    package let kind: Kind
    package let type: String
    /// Whether its fields are entries of their own, because they are many.
    package let isSplit: Bool
    /// The bytes that it takes, without what LMDB adds.
    package let byteCount: Int
    /// By field key, in ascending order of bytes.
    package let fields: [Field]

    package struct Field: Sendable, Hashable {
        package let name: String
        package let value: StoredValue
    }
}

/// A stored value.
package indirect enum StoredValue: Sendable, Hashable {
    case null
    case boolean(Bool)
    case int(Int64)
    case float(Double)
    /// The text of a number that is neither.
    case number(String)
    case string(String)
    /// The JSON text of an object or list of a custom scalar.
    case json(String)
    /// The cache key of another object.
    case reference(String)
    /// The way to an object without identity: what `RecordCache.Inspection.record(key:)` takes.
    case part(String)
    case list([StoredValue])

    /// As JSON: a reference is `{"$ref":"key"}`, a part `{"$part":"path"}`.
    package var json: [UInt8] {
        var bytes: [UInt8] = []
        append(to: &bytes)
        return bytes
    }

    // The recursion is as deep as the field's type has lists.
    private func append(to bytes: inout [UInt8]) {
        switch self {
        case .null: bytes += Value.null.json
        case .boolean(let value): bytes += Value.boolean(value).json
        case .int(let value): bytes += Value.int(value).json
        case .float(let value): bytes += Value.float(value).json
        case .number(let text), .json(let text): bytes += text.utf8
        case .string(let text): bytes += Value.string(text).json
        case .reference(let key): bytes += Value.object(["$ref": .string(key)]).json
        case .part(let path): bytes += Value.object(["$part": .string(path)]).json
        case .list(let elements):
            bytes.append(UInt8(ascii: "["))
            for (index, element) in elements.enumerated() {
                if index > 0 { bytes.append(UInt8(ascii: ",")) }
                element.append(to: &bytes)
            }
            bytes.append(UInt8(ascii: "]"))
        }
    }
}
