extension Response: CustomStringConvertible {
    /// The data as JSON.
    public var description: String { String(decoding: json, as: UTF8.self) }
}

extension ResponseValue: CustomStringConvertible {
    /// The value as JSON.
    public var description: String { String(decoding: json, as: UTF8.self) }
}
