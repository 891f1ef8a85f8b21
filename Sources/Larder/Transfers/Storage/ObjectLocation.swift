/// Where an object is: a key in a bucket.
public struct ObjectLocation: Sendable, Hashable, Codable {
    /// The bucket's name.
    public var bucket: String
    /// The object's key: 1 to 1,024 bytes of UTF-8, any characters. No `/` leads it unless it is part of the key.
    public var key: String
    /// The cloud's region that the bucket is in; nil: the transport's.
    public var region: String?

    /// A place; it need not hold anything yet.
    public init(bucket: String, key: String, region: String? = nil) {
        self.bucket = bucket
        self.key = key
        self.region = region
    }
}

extension ObjectLocation: CustomStringConvertible {
    /// `bucket/key`.
    public var description: String { "\(bucket)/\(key)" }
}
