import Foundation
import LarderGraphQL
import LarderRecords

/// Makes a value of a program's own type, in the forms in which reading takes it apart: dates as text of ISO 8601, and
/// null for a property that is nil. A property that the type does not have stays absent, which is not null.
struct ValueEncoder: Encoder {
    /// The value that is being made, and what holds it.
    fileprivate final class Node {
        var scalar: Value?
        var elements: [Node]?
        var members: [String: Node]?

        /// What nothing was encoded for is null, as an empty optional is.
        var value: Value {
            if let members { return .object(members.mapValues(\.value)) }
            if let elements { return .list(elements.map(\.value)) }
            return scalar ?? .null
        }
    }

    fileprivate let node: Node
    let codingPath: [any CodingKey]
    let userInfo: [CodingUserInfoKey: Any] = [:]

    static func value(of data: some Encodable) throws -> Value {
        let node = Node()
        try ValueEncoder(node: node, codingPath: []).encode(data)
        return node.value
    }

    fileprivate func encode(_ value: some Encodable) throws {
        if let scalar = try Self.scalar(value) { node.scalar = scalar } else { try value.encode(to: self) }
    }

    func container<Key: CodingKey>(keyedBy type: Key.Type) -> KeyedEncodingContainer<Key> {
        node.members = node.members ?? [:]
        return KeyedEncodingContainer(Members(encoder: self))
    }

    func unkeyedContainer() -> any UnkeyedEncodingContainer {
        node.elements = node.elements ?? []
        return Elements(encoder: self)
    }

    func singleValueContainer() -> any SingleValueEncodingContainer { Single(encoder: self) }

    fileprivate func member(_ key: some CodingKey) -> ValueEncoder {
        let member = Node()
        node.members?[key.stringValue] = member
        return ValueEncoder(node: member, codingPath: codingPath + [key])
    }

    fileprivate func element() -> ValueEncoder {
        let element = Node()
        node.elements?.append(element)
        return ValueEncoder(node: element, codingPath: codingPath)
    }

    /// Nil for what encodes itself.
    private static func scalar(_ value: some Encodable) throws -> Value? {
        switch value {
        case let value as Bool: .boolean(value)
        case let value as String: .string(value)
        case let value as Double: .float(value)
        // As it is written, and not as the nearest double.
        case let value as Float: .float(Double(value.description) ?? Double(value))
        case let value as any BinaryInteger: Int64(exactly: value).map(Value.int) ?? .number("\(value)")
        case let value as Date: .string(text(of: value))
        case let value as URL: .string(value.absoluteString)
        case let value as Data: .string(value.base64EncodedString())
        case let value as Decimal: try Value(json: Array(value.description.utf8))
        default: nil
        }
    }

    /// With milliseconds where there are any.
    private static func text(of date: Date) -> String {
        let milliseconds = (date.timeIntervalSinceReferenceDate * 1_000).rounded()
        let hasFraction = milliseconds.truncatingRemainder(dividingBy: 1_000) != 0
        // A little more, so that what formatting cuts off is not a millisecond.
        return Date(timeIntervalSinceReferenceDate: milliseconds / 1_000 + 0.000_2)
            .formatted(Date.ISO8601FormatStyle(includingFractionalSeconds: hasFraction))
    }
}

private struct Single: SingleValueEncodingContainer {
    let encoder: ValueEncoder
    var codingPath: [any CodingKey] { encoder.codingPath }

    func encodeNil() { encoder.node.scalar = .null }
    func encode<T: Encodable>(_ value: T) throws { try encoder.encode(value) }
}

private struct Elements: UnkeyedEncodingContainer {
    let encoder: ValueEncoder
    var codingPath: [any CodingKey] { encoder.codingPath }
    var count: Int { encoder.node.elements?.count ?? 0 }

    func encodeNil() { encoder.element().node.scalar = .null }
    func encode<T: Encodable>(_ value: T) throws { try encoder.element().encode(value) }

    func nestedContainer<Key: CodingKey>(keyedBy type: Key.Type) -> KeyedEncodingContainer<Key> {
        encoder.element().container(keyedBy: type)
    }

    func nestedUnkeyedContainer() -> any UnkeyedEncodingContainer { encoder.element().unkeyedContainer() }
    func superEncoder() -> any Encoder { encoder.element() }
}

private struct Members<Key: CodingKey>: KeyedEncodingContainerProtocol {
    let encoder: ValueEncoder
    var codingPath: [any CodingKey] { encoder.codingPath }

    func encodeNil(forKey key: Key) { encoder.member(key).node.scalar = .null }
    func encode<T: Encodable>(_ value: T, forKey key: Key) throws { try encoder.member(key).encode(value) }

    // A property that is nil is null. The standard ones leave it out.
    private func encode(optional value: (some Encodable)?, _ key: Key) throws {
        if let value { try encode(value, forKey: key) } else { encodeNil(forKey: key) }
    }

    func encodeIfPresent<T: Encodable>(_ value: T?, forKey key: Key) throws { try encode(optional: value, key) }
    func encodeIfPresent(_ value: Bool?, forKey key: Key) throws { try encode(optional: value, key) }
    func encodeIfPresent(_ value: String?, forKey key: Key) throws { try encode(optional: value, key) }
    func encodeIfPresent(_ value: Double?, forKey key: Key) throws { try encode(optional: value, key) }
    func encodeIfPresent(_ value: Float?, forKey key: Key) throws { try encode(optional: value, key) }
    func encodeIfPresent(_ value: Int?, forKey key: Key) throws { try encode(optional: value, key) }
    func encodeIfPresent(_ value: Int8?, forKey key: Key) throws { try encode(optional: value, key) }
    func encodeIfPresent(_ value: Int16?, forKey key: Key) throws { try encode(optional: value, key) }
    func encodeIfPresent(_ value: Int32?, forKey key: Key) throws { try encode(optional: value, key) }
    func encodeIfPresent(_ value: Int64?, forKey key: Key) throws { try encode(optional: value, key) }
    func encodeIfPresent(_ value: UInt?, forKey key: Key) throws { try encode(optional: value, key) }
    func encodeIfPresent(_ value: UInt8?, forKey key: Key) throws { try encode(optional: value, key) }
    func encodeIfPresent(_ value: UInt16?, forKey key: Key) throws { try encode(optional: value, key) }
    func encodeIfPresent(_ value: UInt32?, forKey key: Key) throws { try encode(optional: value, key) }
    func encodeIfPresent(_ value: UInt64?, forKey key: Key) throws { try encode(optional: value, key) }

    func nestedContainer<Nested: CodingKey>(
        keyedBy type: Nested.Type, forKey key: Key
    ) -> KeyedEncodingContainer<Nested> { encoder.member(key).container(keyedBy: type) }

    func nestedUnkeyedContainer(forKey key: Key) -> any UnkeyedEncodingContainer {
        encoder.member(key).unkeyedContainer()
    }

    func superEncoder() -> any Encoder { encoder.member(PathName("super")) }
    func superEncoder(forKey key: Key) -> any Encoder { encoder.member(key) }
}

private struct PathName: CodingKey {
    let stringValue: String
    var intValue: Int? { nil }

    init(_ name: String) { stringValue = name }
    init?(stringValue: String) { self.init(stringValue) }
    init?(intValue: Int) { nil }
}
