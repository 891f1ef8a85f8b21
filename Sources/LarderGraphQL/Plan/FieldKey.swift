/// The name of a field of an object in a cache: its name in the schema, with the arguments that it was asked with.
///
/// `recipes`, or `recipe({"id":"7"})`. A field that was asked with two sets of arguments is two fields.
public struct FieldKey: Sendable, Hashable {
    /// The key as it is stored.
    public let text: String

    /// A key by its text; a name is the key of a field without arguments.
    public init(_ text: String) { self.text = text }

    /// The key of a field with arguments, in whatever order they are given.
    ///
    /// The key knows no schema: give values of the kind that the schema says, an `ID` as a string, a `Float` as a float,
    /// and one value of a list as a list of one, and leave out the arguments that the schema keeps out of the key, as
    /// those that choose a page. `Schema.fieldKey(_:of:arguments:)` of Larder does all that.
    ///
    /// - Parameters:
    ///   - name: The field's name in the schema, not an alias.
    ///   - arguments: None for a field without arguments.
    public init(_ name: String, arguments: [String: Value]) {
        guard !arguments.isEmpty else {
            text = name
            return
        }
        var bytes = Array("\(name)(".utf8)
        appendCanonical(.object(arguments), as: nil, in: nil, to: &bytes)
        bytes.append(UInt8(ascii: ")"))
        text = String(decoding: bytes, as: UTF8.self)
    }
}

extension FieldKey: ExpressibleByStringInterpolation {
    /// The key of this text.
    public init(stringLiteral text: String) { self.init(text) }
}

extension FieldKey: CustomStringConvertible {
    /// The key's text.
    public var description: String { text }
}

extension FieldKey: Comparable {
    /// By their texts.
    public static func < (left: FieldKey, right: FieldKey) -> Bool { left.text < right.text }
}

extension FieldKey: Codable {
    /// From its text.
    public init(from decoder: any Decoder) throws { text = try decoder.singleValueContainer().decode(String.self) }

    /// As its text.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(text)
    }
}
